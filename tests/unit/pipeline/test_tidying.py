"""Erasing a user, putting files together, bringing older tables up to date, other readers."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.pipeline_chain import PLANNING, SAMPLE, table_hashes

from distributary.cli import main
from distributary.errors import BadInput
from distributary.pipeline.jobs.convert import convert
from distributary.pipeline.jobs.erase import erase
from distributary.pipeline.jobs.prune import prune
from distributary.pipeline.jobs.run import run
from distributary.pipeline.running import marked, oldest_running
from distributary.pipeline.schemas import TABLES, table_schema
from distributary.pipeline.store import Store

EMPTY_ROWS = {"decisions", "quarantine"}


def listed(rows: pa.Table) -> list[str]:
    """Return rows in an order of their own, as text; maps as pairs: every reader has others."""

    def plain(value: object) -> object:
        if isinstance(value, dict):
            pairs = value.items() if "key" not in value else [(value["key"], value["value"])]
            return sorted((str(name), plain(item)) for name, item in pairs)
        if isinstance(value, list):
            if value and all(
                isinstance(item, dict) and set(item) == {"key", "value"} for item in value
            ):
                return sorted((str(item["key"]), plain(item["value"])) for item in value)
            if value and all(isinstance(item, tuple) for item in value):
                return sorted((str(name), plain(item)) for name, item in value)
            return [plain(item) for item in value]
        return value.astimezone(UTC) if isinstance(value, datetime) else value

    return sorted(str([plain(value) for value in row.values()]) for row in rows.to_pylist())


def test_polars_and_duckdb_read_every_table_as_we_do(store: Store) -> None:
    """And all tables are there: those that no job of the chain writes are written here."""
    run(store, (SAMPLE, *PLANNING))
    for name in EMPTY_ROWS:
        store.write(name, table_schema(name).arrow.empty_table())
    for name in TABLES:
        place = store.path(name)
        ours = listed(store.read(name))
        assert listed(polars.read_delta(place).to_arrow()) == ours, name
        theirs = DeltaTable(place)
        if not theirs.file_uris():
            assert ours == []
            continue
        # DuckDB is told the day by the folder; the log has no other one.
        every = duckdb.read_parquet(theirs.file_uris(), hive_partitioning=table_schema(name).by_day)
        rows = every.project(
            ", ".join(f'"{name}"' for name in store.read(name, limit=0).column_names)
        )
        assert listed(rows.to_arrow_table()) == ours, name
    erased(store)


def erased(store: Store) -> None:
    """Check that nothing about somebody is left, in tables that were made of everybody."""
    published = store.read("publications", ["publisher", "day"])["publisher"].to_pylist()
    user = max(set(published), key=published.count)
    before = {name: store.row_count(name) for name in TABLES if store.has(name)}
    counted = erase(store, user, dry_run=True)
    assert {name: store.row_count(name) for name in before if name != "runs"} == {
        name: count for name, count in before.items() if name != "runs"
    }
    report = erase(store, user)
    assert report.figures == counted.figures
    assert report.figures["publications_removed"] == published.count(user) > 0
    for name in TABLES:
        rows = store.read(name).to_pylist()
        assert not [
            row
            for row in rows
            if user in [row.get(key) for key in ("user", "publisher", "partner")]
        ]
        assert len(rows) == report.rows_out.get(name, len(rows))
    # What was made of the publications of others is left.
    keys = {(row["source"], row["event_id"]) for row in store.read("publications").to_pylist()}
    for name in ("deliveries", "plans"):
        left = {(row["source"], row["event_id"]) for row in store.read(name).to_pylist()}
        assert left <= keys
        assert left
    with pytest.raises(BadInput, match="nothing here is about"):
        erase(store, user)
    assert user not in str(store.read("runs", ["options"]).to_pylist())


def test_putting_files_together_changes_no_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(str(tmp_path))
    moment = pa.array([datetime(2026, 1, 5, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    for number in range(5):
        rows = pa.table({"object": [f"o{number}"], "time": moment, "value": [1.0]})
        store.publish(store.draft("quotes", rows), append=True)
    before = table_hashes(tmp_path)
    assert main(["pipeline", "compact", "--data", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == ["quotes", "5", "files", "became", "1"]
    assert table_hashes(tmp_path) == before
    assert store.changes("quotes", 4) == {5: frozenset()}
    assert store.read("quotes", since=date(2026, 1, 5)).num_rows == 5
    # A commit that was under way meanwhile replaces what the files have become.
    late = Store(str(tmp_path))
    draft = late.draft("quotes", rows)
    store.publish(store.draft("quotes", rows), append=True)
    assert (
        main(["pipeline", "compact", "--data", str(tmp_path), "--table", "quotes", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out) == {"tables": {"quotes": {"removed": 2, "added": 1}}}
    late.publish(draft, append=True)
    assert late.read("quotes").num_rows == 7


def test_older_tables_are_brought_up_to_date_by_a_migration_that_is_named(store: Store) -> None:
    moment = datetime(2026, 1, 5, 9, tzinfo=UTC)
    publication: tuple[object, ...] = ("/s", "e1", None, moment, {}, {}, {}, "text/plain", 17)
    frame = store.spark.createDataFrame([publication], table_schema("publications").struct_type)
    # A folder as somebody exports it: no log, and no days.
    folder = Path(store.path("publications"))
    frame.write.parquet(str(folder))
    old = pa.table({"source": ["/s"], "event_id": ["e1"], "subscription_id": ["s1"], "user": ["u"],
                    "broker": ["b"], "media_type": ["text/plain"]})  # fmt: skip
    write_deltalake(store.path("deliveries"), old, description="version 1")
    store.write("users", pa.table({"user": ["u"], "broker": ["b"]}))
    with pytest.raises(
        BadInput, match=r"has version '1' of its columns.* hint: distributary pipeline convert"
    ):
        store.read("deliveries")
    report = convert(store)
    assert report.figures == {
        "publications": "laid-out-anew", "deliveries": "bytes-from-publications"
    }  # fmt: skip
    (row,) = store.read("deliveries").to_pylist()
    assert (row["bytes"], row["day"]) == (17, date(2026, 1, 5))
    assert store.days("publications") == {date(2026, 1, 5)}
    assert convert(store).figures == {}


def test_days_of_others_are_read_wherever_their_files_are(store: Store) -> None:
    """A table that delta-rs alone has written, by day, in folders that it names itself."""
    rows = pa.table(
        {
            "source": ["/s"] * 3, "event_id": ["a", "b", "c"], "subscription_id": ["s"] * 3,
            "user": ["u"] * 3, "broker": ["b"] * 3, "media_type": ["t"] * 3, "bytes": [1, 2, 3],
            "day": pa.array([date(2026, 1, 5), date(2026, 1, 6), None], pa.date32()),
        }
    )  # fmt: skip
    place = Path(store.path("deliveries"))
    write_deltalake(place, rows, partition_by=["day"])
    frame = store.frame("deliveries", with_day=True)
    assert {(row.event_id, row.day) for row in frame.collect()} == {
        ("a", date(2026, 1, 5)), ("b", date(2026, 1, 6)), ("c", None)
    }  # fmt: skip
    # A folder that does not say which day its files are of: the log does.
    log = next(place.glob("_delta_log/*.json"))
    (named,) = place.glob("day=2026-01-06/*")
    shutil.move(named, place / "elsewhere.parquet")
    log.write_text(log.read_text().replace(f"day=2026-01-06/{named.name}", "elsewhere.parquet"))
    frame = store.frame("deliveries", with_day=True)
    assert {(row.event_id, row.day) for row in frame.collect()} == {
        ("a", date(2026, 1, 5)), ("b", date(2026, 1, 6)), ("c", None)
    }  # fmt: skip
    assert prune(store, before=datetime(2026, 1, 6, tzinfo=UTC)).rows_out == {"deliveries": 2}


def test_nothing_goes_that_is_younger_than_a_job_that_still_runs(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.write("users", pa.table({"user": ["u"], "broker": ["b"]}))
    assert oldest_running(store.folder) is None
    with marked(store):
        began = oldest_running(store.folder)
        assert began is not None
        assert store.run.startswith(f"{began:%Y%m%dT%H%M%S}-")
        os.kill(os.getpid(), 0)
    assert oldest_running(store.folder) is None
    # A job that was killed has left its mark.
    (tmp_path / "_running-20200101T000000-12345678").write_text(
        f"{os.uname().nodename} 999999999\n"
    )
    assert oldest_running(store.folder) is None
    assert not list(tmp_path.glob("_running-*"))


def test_other_file_systems_are_told_what_they_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Store(str(tmp_path)).write("users", pa.table({"user": ["u"], "broker": ["b"]}))
    asked = ["pipeline", "show", "users", "--data", str(tmp_path), "--storage-option"]
    assert main([*asked, "timeout=30s"]) == 0
    assert capsys.readouterr().out == "user  broker\nu     b\n"
    assert main([*asked, "timeout"]) == 2
    assert "--storage-option: 'timeout' is not KEY=VALUE" in capsys.readouterr().err


def test_files_beside_a_log_are_not_read(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.write("users", pa.table({"user": ["u"], "broker": ["b"]}))
    pq.write_table(pa.table({"user": ["v"], "broker": ["b"]}), tmp_path / "users" / "more.parquet")
    assert store.read("users")["user"].to_pylist() == ["u"]


@pytest.mark.parametrize(
    "command",
    [
        ["history"],
        ["compact"],
        ["vacuum"],
        ["convert"],
        ["prune", "--keep", "3d"],
        ["erase", "ann"],
    ],
    ids=lambda words: words[0],
)
def test_a_folder_that_is_misspelt_is_not_tidy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """It would end well, having done nothing, and some would make the folder."""
    place = tmp_path / "markt"
    assert main(["pipeline", *command, "--data", str(place)]) == 2
    assert "--data: there is no folder" in capsys.readouterr().err
    assert not place.exists()
