"""Every row of every file is in the table or in quarantine, once, however often it is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput
from distributary.pipeline.jobs.ingest import check, frames, ingest
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.sources.files import found_files
from distributary.pipeline.sources.source_rows import layout_of
from distributary.pipeline.sources.splits import counted_splits, planned_splits, split_frame
from distributary.pipeline.store import Store
from distributary.pipeline.transforms.ingest import ingested, kept, quarantined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

USERS = "user,broker\nu1,b1\nbroken\nu2,\nu1,b2\n"


def users(store: Store) -> list[tuple[str, str | None]]:
    return sorted(tuple(row) for row in store.frame("users").collect())


def quarantine(store: Store) -> list[tuple[str, str, int, str]]:
    return sorted(
        (row.table, Path(row.file).name, row.line, row.reason)
        for row in store.frame("quarantine").collect()
    )


BROKEN = "line has 1 fields where 2 are expected"


def test_the_same_files_again_give_the_same_table(store: Store, tmp_path: Path) -> None:
    """Bad lines and repeated rows go to quarantine; of rows with one key the first is kept."""
    (tmp_path / "a.csv").write_text(USERS)
    (tmp_path / "b.csv").write_text("broker,more,user\nb3,x,u3\nb4,x,u2\n")
    names = [str(tmp_path / "b.csv"), str(tmp_path / "a.csv")]
    told: list[str] = []
    expected = [("u1", "b1"), ("u2", None), ("u3", "b3")]
    aside = [
        ("users", "a.csv", 3, BROKEN),
        ("users", "a.csv", 5, "repeated"),
        ("users", "b.csv", 3, "repeated"),
    ]
    for _ in range(2):
        report = ingest(store, "users", names, warn=told.append)
        assert report.rows_in == {"users": 6}
        assert report.rows_out == {"users": 3, "quarantine": 3}
        assert users(store) == expected
        assert quarantine(store) == aside
    assert len(told) == 2
    assert "'more' is no column of users" in told[0]
    assert sorted(store.folder.names()) == ["quarantine", "runs", "users"]


def test_what_is_added_joins_what_is_there(store: Store, tmp_path: Path) -> None:
    """A key that the table has already stays as it is; adding the same again changes nothing."""
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text('{"user": "u1"}\n')
    second.write_text('{"user": "u1", "broker": "b"}\n{"user": "u2"}\nx\n')
    assert ingest(store, "users", [str(first)], add=True).rows_out["users"] == 1
    assert not store.has("quarantine")
    added = ingest(store, "users", [str(second)], add=True)
    assert added.rows_out == {"users": 1, "quarantine": 2}
    assert users(store) == [("u1", None), ("u2", None)]
    assert [row[2:] for row in quarantine(store)] == [
        (1, "already there"),
        (3, "column 1: malformed JSON: expecting value"),
    ]
    again = ingest(store, "users", [str(second)], add=True)
    assert again.rows_out == {"users": 0, "quarantine": 3}
    assert users(store) == [("u1", None), ("u2", None)]


EVENTS = """\
{"specversion":"1.0","id":"1","source":"/s","type":"t","publisher":"ann","clientid":"bob"}
{"specversion":"1.0","id":"2","source":"/s","type":"t","clientid":"ann"}
{"specversion":"1.0","id":"3","source":"ann","type":"t","clientid":""}
{"specversion":"1.0","id":"4","source":"ann","type":"t","publisher":"eve"}
{"specversion":"1.0","id":"5","source":"/s","type":"t","publisher":"bob","dataref":"s3://a/b/c","datasize":"9000000000","datacontenttype":"video/mp4"}
{"specversion":"1.0","id":"6","source":"/s","type":"t","publisher":"bob","dataref":"s3://a/b/c","datasize":-1}
"""


@pytest.fixture
def people(store: Store, tmp_path: Path) -> str:
    """A folder with users ann and bob, and a file of events that name other publishers too."""
    (tmp_path / "users.csv").write_text("user,broker\nann,\nbob,\n")
    ingest(store, "users", [str(tmp_path / "users.csv")])
    (tmp_path / "events.jsonl").write_text(EVENTS)
    return str(tmp_path / "events.jsonl")


def publishers(store: Store) -> dict[str, str | None]:
    return {row.event_id: row.publisher for row in store.frame("publications").collect()}


BAD_SIZE = "datasize: must be a number of bytes from 0 to 1,000,000,000,000,000, not '-1'"


def test_a_publisher_is_named_by_an_attribute_and_has_to_be_a_user(
    store: Store, people: str
) -> None:
    report = ingest(store, "publications", [people])
    assert report.rows_out == {"publications": 3, "quarantine": 3}
    assert publishers(store) == {"1": "ann", "3": "ann", "5": "bob"}
    assert quarantine(store) == [
        ("publications", "events.jsonl", 2, "publisher: '/s' is not in users"),
        ("publications", "events.jsonl", 4, "publisher: 'eve' is not in users"),
        ("publications", "events.jsonl", 6, BAD_SIZE),
    ]
    # Content that is kept elsewhere counts with the size that is declared.
    sizes = {row.event_id: row.bytes for row in store.frame("publications").collect()}
    assert sizes == {"1": 0, "3": 0, "5": 9_000_000_000}


def test_another_attribute_can_name_the_publisher(store: Store, people: str) -> None:
    """It names nobody where it is missing or empty, and the source does not stand in."""
    ingest(store, "publications", [people], publisher="clientid")
    assert publishers(store) == {"1": "bob", "2": "ann"}
    assert [(row[2], row[3]) for row in quarantine(store)] == [
        (3, "clientid: is empty, and names the publisher"),
        (4, "clientid: is missing, and names the publisher"),
        (5, "clientid: is missing, and names the publisher"),
        (6, BAD_SIZE),
    ]
    ingest(store, "publications", [people], publisher="source")
    assert publishers(store) == {"3": "ann", "4": "ann"}


def test_publications_of_strangers_can_be_kept_as_nobodys(store: Store, people: str) -> None:
    report = ingest(store, "publications", [people], any_publisher=True)
    assert report.rows_out == {"publications": 5, "quarantine": 1}
    assert publishers(store) == {"1": "ann", "2": None, "3": "ann", "4": None, "5": "bob"}
    found = frames(store, "publications", [people], any_publisher=True)
    assert found["publications"].count() == 5
    assert found["quarantine"].count() == 1


def test_rows_of_tables_name_publishers_too(store: Store, people: str, tmp_path: Path) -> None:
    """A row without a publisher is nobody's, and belongs into the table."""
    rows = to_arrow(
        [Publication({"id": name, "source": "/s", "type": "t"}) for name in "abc"],
        publishers=["ann", "eve", None],
    )
    pq.write_table(pa.Table.from_batches([rows]), tmp_path / "rows.parquet")
    ingest(store, "publications", [str(tmp_path / "rows.parquet")])
    assert publishers(store) == {"a": "ann", "c": None}


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("publications", {"publisher": "clientId"}, "--publisher: 'clientId' is not the name of"),
        ("publications", {"publisher": ""}, "--publisher: '' is not the name of an attribute"),
        ("users", {"publisher": "name"}, "--publisher: is for publications, not for users"),
        ("users", {"any_publisher": True}, "--any-publisher: is for publications, not for users"),
    ],
)
def test_options_about_publishers_are_checked_before_anything_is_read(
    table: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        check(table, ["no such file"], **options)


def test_a_clean_file_empties_the_quarantine_of_its_table_alone(
    store: Store, tmp_path: Path
) -> None:
    bad = [("users", "old.csv", 1, "x", "bad"), ("quotes", "q.csv", 1, "x", "bad")]
    columns = table_schema("quarantine").struct_type
    store.write("quarantine", store.spark.createDataFrame(bad, columns))
    path = tmp_path / "users.parquet"
    pq.write_table(pa.table({"user": ["u1"], "broker": pa.array([None], pa.string())}), path)
    assert ingest(store, "users", [str(path)]).rows_out == {"users": 1, "quarantine": 0}
    assert quarantine(store) == [("quotes", "q.csv", 1, "bad")]


def test_rows_that_do_not_agree_with_the_others_are_put_aside(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    path.write_text('user,costs\nu1,"[1,2]"\nu2,[1]\nu3,"[3,4]"\n')
    assert ingest(store, "access_costs", [str(path)]).rows_out["access_costs"] == 2
    assert [row[2:] for row in quarantine(store)] == [
        (3, "costs: has a length of 1 where the table has 2")
    ]


def test_an_empty_file_makes_an_empty_table(store: Store, tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("")
    assert ingest(store, "users", [str(tmp_path)]).rows_in == {"users": 0}
    assert users(store) == []


def test_however_a_file_is_cut_its_lines_have_their_own_numbers(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [f"u{line},b" if line % 3 else "broken" for line in range(2, 40)]
    (tmp_path / "users.csv").write_text("\n".join(["user,broker", *lines]))
    target = table_schema("users")
    plan = planned_splits(
        found_files([str(tmp_path / "users.csv")]), layout_of(target), split_bytes=50
    )
    assert len(plan.splits) > 4
    parts = split_frame(spark, counted_splits(spark, plan))
    rows = ingested(parts, target, origins=True).collect()
    assert sorted(row.line for row in rows) == list(range(2, 40))
    assert all((row.reason is None) == (row.user == f"u{row.line}") for row in rows)


def test_files_that_a_stream_lists_are_read_whole(spark: SparkSession, tmp_path: Path) -> None:
    """A file that is not what it should be is a row in quarantine: a stream gets past it."""
    (tmp_path / "good.csv").write_text(USERS)
    (tmp_path / "bad.csv").write_text("name\nu1\n")
    listed = spark.read.format("binaryFile").load(str(tmp_path)).select("path", "length")
    rows = ingested(listed, table_schema("users"), refuse_files=False).persist()
    assert kept(rows, table_schema("users")).count() == 3
    aside = quarantined(rows, table_schema("users")).collect()
    assert sorted((Path(row.file).name, row.line) for row in aside) == [
        ("bad.csv", None),
        ("good.csv", 3),
    ]
    assert any("column 'user' is missing" in row.reason for row in aside)
    rows.unpersist()


def test_what_cannot_be_read_is_one_sentence_and_leaves_the_table(
    store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "users.csv"
    path.write_text("user,broker\nu1,b\n")
    ingest(store, "users", [str(path)])
    path.write_text("user\nu1\n")
    with pytest.raises(BadInput, match=r"users\.csv: column 'broker' is missing"):
        ingest(store, "users", [str(path)])
    with pytest.raises(BadInput, match="'quarantine' is not filled from files"):
        ingest(store, "quarantine", [str(path)])
    with pytest.raises(BadInput, match="'people' is not a table"):
        ingest(store, "people", [str(path)])
    assert users(store) == [("u1", "b")]
    nothing = table_schema("quotes").arrow.empty_table()
    store.publish(store.draft("quotes", nothing), append=True, batch=("stream-a", 0))
    (tmp_path / "quotes.csv").write_text("object,time,value\n")
    with pytest.raises(BadInput, match="is written by a stream"):
        ingest(store, "quotes", [str(tmp_path / "quotes.csv")], add=True)


def test_a_name_that_means_nothing_is_told_before_spark_starts(tmp_path: Path) -> None:
    for name, file, problem in (
        ("people", "users.csv", "'people' is not a table"),
        ("users", "none.csv", r"none\.csv: does not exist"),
        ("users", "users.txt", r"users\.txt: has a name that does not tell its format"),
    ):
        (tmp_path / "users.txt").write_text("")
        with pytest.raises(BadInput, match=problem):
            check(name, [str(tmp_path / file)])


def test_the_plan_can_be_shown_before_anything_runs(store: Store, tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text(USERS)
    planned = frames(store, "users", [str(tmp_path / "users.csv")])
    assert list(planned) == ["users", "quarantine"]
    assert planned["users"].columns == list(table_schema("users").column_names)
    assert not store.has("users")
