"""Files become rows, or rows with a reason, whatever they hold; read here without Spark's help."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distributary.content.timestamps import parse_timestamp, timestamp_ns
from distributary.errors import BadInput
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.sources.files import found_files
from distributary.pipeline.sources.lines import LINE_BYTES_MAX, line_blocks, lines_begun, readable
from distributary.pipeline.sources.reading import split_rows
from distributary.pipeline.sources.source_rows import RAW_CHARACTERS_MAX, Faults, layout_of
from distributary.pipeline.sources.splits import Split, planned_splits
from distributary.pipeline.sources.texts import times_of, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[dict[str, Any]]
Read = Callable[..., tuple[Rows, Rows]]
QUOTE = '{"object": "a", "time": "2026-01-31T12:00:00Z", "value": 1}'


@pytest.fixture
def read(spark: SparkSession, tmp_path: Path) -> Read:
    """Writes a file, and returns its good rows and its bad ones."""

    def read_file(
        name: str, content: str | bytes, table_name: str, *, origins: bool = False
    ) -> tuple[Rows, Rows]:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return rows_of(path, table_name, origins=origins)

    return read_file


def rows_of(path: Path, table_name: str, *, origins: bool = False) -> tuple[Rows, Rows]:
    layout = layout_of(table_schema(table_name))
    plan = planned_splits(found_files([str(path)]), layout)
    rows = [
        row
        for split in plan.splits
        for batch in split_rows(split, layout, origins=origins, refuse_files=True)
        for row in batch.to_pylist()
    ]
    good = [row for row in rows if row["reason"] is None]
    return good, [row for row in rows if row["reason"] is not None]


def reasons(rows: Rows) -> dict[int, str]:
    return {row["line"]: row["reason"] for row in rows}


@settings(deadline=None, max_examples=60)
@given(
    lines=st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line), max_size=12),
    ended=st.booleans(),
    size=st.integers(1, 40),
)
def test_every_line_is_in_the_part_in_which_it_begins(
    lines: list[bytes], ended: bool, size: int
) -> None:
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    expected = data.split(b"\n")[: -1 if data.endswith(b"\n") or not data else None]
    found: list[bytes] = []
    for start in range(0, len(data), size):
        end = min(start + size, len(data))
        first = len(found) + 1
        part = [
            block.data[block.offsets[row] : block.offsets[row + 1]]
            for block in line_blocks(pa.BufferReader(data), start=start, end=end, first_line=first)
            for row in range(len(block.offsets) - 1)
        ]
        assert lines_begun(pa.BufferReader(data), start, end) == len(part)
        found += part
    if expected and expected[0].startswith(b"\xef\xbb\xbf"):
        expected[0] = expected[0].removeprefix(b"\xef\xbb\xbf")
    assert [line.removesuffix(b"\n") for line in found] == expected


def test_lines_of_csv_that_are_broken_are_told_from_those_that_are_not(read: Read) -> None:
    content = (
        b'\xef\xbb\xbfbroker,note,user\r\n"b,1",x,u1\r\n,"",u2\r\n\r\n   \r\n'
        b'"b ""2""",x,u3\nb3,x\nb3,x,u4,y\n"open,x,u5\nb4,x"y,u6\n"b"5,x,u7\n'
        b"b6\rx,x,u8\nb7,\xff,u9\nb8,x\0,u10\nb9,x,u11"
    )
    good, bad = read("users.csv", content, "users")
    assert [(row["user"], row["broker"]) for row in good] == [
        ("u1", "b,1"),
        ("u2", None),
        ("u3", 'b "2"'),
        ("u11", "b9"),
    ]
    found = reasons(bad)
    assert sorted(found) == [7, 8, 9, 10, 11, 12, 13, 14]
    assert found[7] == "line has 2 fields where 3 are expected"
    assert found[8] == "line has 4 fields where 3 are expected"
    assert {found[line] for line in (9, 10, 11, 12)} == {
        "line has a quoted field that does not end in it, or a stray quote"
    }
    assert found[13] == "line is not UTF-8 text"
    assert found[14] == "line has a NUL byte"
    assert {row["raw"] for row in bad if row["line"] in (8, 13)} == {"b3,x,u4,y", "b7,\ufffd,u9"}


def test_a_line_that_is_too_long_is_refused_and_the_next_one_read(read: Read) -> None:
    long = b"u" * (LINE_BYTES_MAX + 10)
    good, bad = read("users.csv", b"user,broker\n" + long + b",b\nu2,b\n", "users")
    assert [row["user"] for row in good] == ["u2"]
    assert reasons(bad) == {2: "line is longer than 16,777,216 bytes"}
    assert len(bad[0]["raw"]) == RAW_CHARACTERS_MAX


def test_good_rows_say_where_they_come_from_when_asked(read: Read) -> None:
    good, _ = read("users.csv", 'user,broker\n\nu1,"b"\r\n', "users", origins=True)
    assert [(row["line"], row["raw"]) for row in good] == [(3, 'u1,"b"')]
    assert good[0]["file"].endswith("users.csv")
    good, _ = read("users.csv", "user,broker\nu1,b\n", "users")
    assert good[0]["file"] is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("user\nu1\n", "column 'broker' is missing"),
        ("user,broker,user\nu,b,v\n", "column 'user' is given twice"),
        (b"\xff\xfeu\0s\0e\0r\0\n", "first line that is not UTF-8"),
        ('"user,broker\nu,b\n', "first line that is not CSV"),
    ],
)
def test_a_csv_file_without_the_columns_is_refused_by_name(
    read: Read, content: str | bytes, problem: str
) -> None:
    with pytest.raises(BadInput, match=rf"users\.csv: .*{problem}"):
        read("users.csv", content, "users")


@settings(deadline=None, max_examples=300)
@given(
    text=st.one_of(
        st.from_regex(
            r"(1999|2000|2024|2026|1900)-(0[1-9]|1[0-3])-(0[1-9]|[1-3][0-9])[Tt ]"
            r"([01][0-9]|2[0-4]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]{1,10})?"
            r"([Zz]|[+-](0[0-9]|2[0-4]):[0-6][0-9])?",
            fullmatch=True,
        ),
        st.datetimes(timezones=st.just(UTC)).map(lambda time: time.isoformat()),
        st.text(max_size=8),
    )
)
def test_times_of_a_column_are_those_of_events(text: str) -> None:
    faults = Faults(2)
    times = times_of("time", pa.array([text, None]), faults).cast(pa.int64()).to_pylist()
    expected: int | None = None
    refusal: list[str] = []
    try:
        expected = timestamp_ns(parse_timestamp("time", text)) // 1000
    except BadInput as error:
        refusal = [str(error)]
    assert times == [expected, None]
    assert faults.reasons().to_pylist() == refusal


def test_texts_become_numbers_and_lists_or_are_marked() -> None:
    def values(texts: list[str | None], kind: pa.DataType) -> tuple[list[Any], list[bool]]:
        faults = Faults(len(texts))
        return typed("x", pa.array(texts), kind, faults).to_pylist(), faults.bad.tolist()

    texts = ["1", " 2.5 ", "-1e3", "NaN", "inf", "1e999", "0x1", "", None]
    assert values(texts, pa.float64()) == (
        [1.0, 2.5, -1000.0, None, None, None, None, None, None],
        [False, False, False, True, True, True, True, True, False],
    )
    assert values(["7", "-0", "1.0", "2147483648"], pa.int32()) == (
        [7, 0, None, None],
        [False, False, True, True],
    )
    assert values(["[1, 2.5]", "[]", " [ ] ", "1", "[1,]", "[x]"], pa.list_(pa.float64())) == (
        [[1.0, 2.5], [], [], None, None, None],
        [False, False, False, True, True, True],
    )


def test_lines_of_json_are_read_alike_together_and_one_by_one(read: Read) -> None:
    good_lines = [
        QUOTE,
        '{"value": -2.5e0, "object": "\\u00fc", "time": "2026-01-31T12:00:00+01:00", "x": [{}]}',
    ]
    together, none = read("quotes.jsonl", "\r\n".join(good_lines), "quotes")
    apart, bad = read("quotes.jsonl", "\n".join([*good_lines, "{}}"]), "quotes")
    assert not none
    assert len(bad) == 1
    assert together == apart
    assert together[1]["time"] == datetime(2026, 1, 31, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nope", "column 1: malformed JSON: expecting value"),
        ("[1]", "line: must be an object, not a list"),
        ('{"object": "a"', "column 15: malformed JSON: expecting ',' delimiter"),
        (QUOTE + QUOTE, "column 60: malformed JSON: extra data"),
        (QUOTE.replace("1}", '"1"}'), "value: must be a number, not the string '1'"),
        (QUOTE.replace("1}", "true}"), "value: must be a number, not true"),
        (QUOTE.replace("1}", "NaN}"), "value: is NaN, which is not a number in JSON"),
        (QUOTE.replace("1}", "1e999}"), "value: is not a finite number"),
        (QUOTE.replace("1}", "null}"), "value: has no value"),
        (QUOTE.replace('"a"', '""'), "object: must not be empty"),
        (QUOTE.replace('"a"', "5"), "object: must be a string, not 5"),
        (QUOTE.replace('"a"', '"\\ud800"'), "object: has half of a surrogate pair"),
        (QUOTE.replace("Z", ""), "time: '2026-01-31T12:00:00' has no offset from UTC"),
        (QUOTE.replace("01-31", "02-30"), "time: '2026-02-30T12:00:00Z' is not a time that exists"),
        (QUOTE.replace("{", '{"value": 2, '), "value: is given twice"),
    ],
)
def test_a_line_of_json_that_is_wrong_says_why(read: Read, line: str, reason: str) -> None:
    good, bad = read("quotes.ndjson", f"{QUOTE}\n{line}\n\n", "quotes")
    assert len(good) == 1
    assert [row["line"] for row in bad] == [2]
    assert bad[0]["reason"].startswith(reason)
    assert bad[0]["raw"] == line


def test_publications_are_events_or_rows(read: Read) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": {"p": 1.5}}
    row = {
        "source": "/s",
        "event_id": "2",
        "attributes": {"type": {"type": "String", "text": "t"}},
        "numbers": {"/p": 2},
        "texts": {},
        "bytes": 3,
    }
    lines = [
        event,
        row,
        {**event, "data": {"event_id": "x"}},
        {**event, "time": "2026-01-31T12:00:00"},
        {**row, "numbers": {f"/{leaf}": 1 for leaf in range(257)}},
        {**row, "bytes": -1},
        {**row, "attributes": {"type": {"type": "Text", "text": "t"}}},
        {**row, "texts": {"/t": 5}},
    ]
    good, bad = read("events.jsonl", "\n".join(map(json.dumps, lines)), "publications")
    assert [(r["event_id"], dict(r["numbers"]), dict(r["texts"])) for r in good] == [
        ("1", {"/p": 1.5}, {}),
        ("2", {"/p": 2.0}, {}),
        ("1", {}, {"/event_id": "x"}),
    ]
    assert dict(good[0]["attributes"])["type"] == {"type": "String", "text": "t"}
    assert {line: reason.partition(";")[0] for line, reason in reasons(bad).items()} == {
        4: "time: '2026-01-31T12:00:00' has no offset from UTC",
        5: "numbers: has more than 256 entries",
        6: "bytes: must not be negative",
        7: "attributes: must have a text and one of the types Boolean, Integer, String",
        8: "texts: must be a string, not 5",
    }
    header = "source,event_id,publisher,time,attributes,numbers,texts,media_type,bytes\n"
    attributes = json.dumps(row["attributes"]).replace('"', '""')
    line = f'/s,2,,,"{attributes}","{{""/p"": 2}}",{{}},,3\n'
    written, bad = read("rows.csv", header + line + line.replace("2}", "x}"), "publications")
    assert written == good[1:2]
    assert reasons(bad) == {3: "numbers: malformed JSON: expecting value"}


def test_subscriptions_must_be_readable(read: Read) -> None:
    lines: list[dict[str, object]] = [
        {"filters": [{"exact": {"type": "t"}}], "profile": {"accept": ["*/*"]}},
        {"filters": '[{"sql": "a = 1"}]', "tolerance": None},
        {"filters": [{"exct": {}}]},
        {"filters": "nope"},
        {"filters": [], "profile": {"accept": []}},
        {"filters": [], "tolerance": '{"value": "/p", "divergence": "absolute", "amount": 0}'},
    ]
    text = "\n".join(json.dumps({"subscription_id": "s", "user": "u", **line}) for line in lines)
    good, bad = read("subscriptions.jsonl", text, "subscriptions")
    assert good[0]["filters"] == '[{"exact":{"type":"t"}}]'
    assert good[0]["profile"] == '{"accept":["*/*"]}'
    assert len(good) == 2
    found = {line: reason.partition(":")[0] for line, reason in reasons(bad).items()}
    assert found == {
        3: "filters[0].exct",
        4: "filters",
        5: "profile.accept",
        6: "tolerance.amount",
    }


@pytest.mark.parametrize(
    ("table_name", "content", "reason"),
    [
        ("brokers", "broker,capacity\nb,-1\n", "capacity: must not be negative"),
        ("brokers", "broker,capacity\n,1\n", "broker: has no value"),
        ("access_costs", 'user,costs\nu,"[1,-1]"\n', "costs: must be finite numbers of at least 0"),
        ("overlay", 'broker,identifier,delays\nb,XY,"[1]"\n', "identifier: is not made of"),
        ("quotes", "object,time,value\na,2026-01-31T12:00:00Z,\n", "value: has no value"),
        ("partners", "user,rank,partner,bytes_per_second\nu,1.5,p,1\n", "rank: is not a whole"),
    ],
)
def test_every_table_has_its_rules(read: Read, table_name: str, content: str, reason: str) -> None:
    good, bad = read("rows.csv", content, table_name)
    assert not good
    assert bad[0]["reason"].startswith(reason)


def test_parquet_is_read_in_types_that_are_near_enough(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "quotes.parquet"
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    rows = pa.table(
        {
            "value": pa.array([1, 2, None], pa.int32()),
            "time": pa.array([moment] * 3, pa.timestamp("ns", "Europe/Vienna")),
            "object": pa.array(["a", "b", "c"]).dictionary_encode(),
            "more": [1, 2, 3],
        }
    )
    pq.write_table(rows, path, row_group_size=2)
    good, bad = rows_of(path, "quotes")
    assert [(row["object"], row["time"], row["value"]) for row in good] == [
        ("a", moment, 1.0),
        ("b", moment, 2.0),
    ]
    assert reasons(bad) == {3: "value: has no value"}
    assert '"object": "c"' in bad[0]["raw"]
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    assert rows_of(path, "quotes")[0] == good


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"user": ["u"]}, "column 'broker' is missing"),
        ({"user": [1], "broker": ["b"]}, "column 'user' is int64, and must be string"),
    ],
)
def test_parquet_of_other_columns_is_refused(
    spark: SparkSession, tmp_path: Path, columns: dict[str, list[object]], problem: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "users.parquet")
    with pytest.raises(BadInput, match=rf"users\.parquet: {problem}"):
        rows_of(tmp_path / "users.parquet", "users")


def test_times_without_a_zone_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    naive = pa.array([datetime(2026, 1, 31)], pa.timestamp("us"))
    pq.write_table(
        pa.table({"object": ["a"], "time": naive, "value": [1.0]}), tmp_path / "q.parquet"
    )
    with pytest.raises(BadInput, match="must be a timestamp with a time zone"):
        rows_of(tmp_path / "q.parquet", "quotes")


def test_half_a_file_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    whole = tmp_path / "users.parquet"
    pq.write_table(pa.table({"user": ["u"] * 1000, "broker": ["b"] * 1000}), whole)
    whole.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(BadInput, match=r"users\.parquet: is not a Parquet file, or only half"):
        rows_of(whole, "users")
    packed = tmp_path / "users.csv.gz"
    packed.write_bytes(gzip.compress(b"user,broker\n" + b"u,b\n" * 100_000)[:-40])
    with pytest.raises(BadInput, match=r"users\.csv\.gz: cannot be read: truncated"):
        rows_of(packed, "users")
    layout = layout_of(table_schema("users"))
    split = Split(str(packed), 0, 1, 1)
    batches = split_rows(split, layout, origins=False, refuse_files=False)
    *_, last = (row for batch in batches for row in batch.to_pylist())
    assert last["file"] == str(packed)
    assert "truncated" in last["reason"]


def test_packed_lines_are_read_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    content = b"user,broker\nu1,b\nu2,\n"
    for name, packed in (
        ("users.csv.gz", gzip.compress(content)),
        ("users.csv.zst", pa.compress(content, "zstd", asbytes=True)),
    ):
        (tmp_path / name).write_bytes(packed)
        good, bad = rows_of(tmp_path / name, "users")
        assert [row["user"] for row in good] == ["u1", "u2"]
        assert not bad


def test_files_are_found_by_name_and_in_folders(tmp_path: Path) -> None:
    folder = tmp_path / "in" / "day=1"
    folder.mkdir(parents=True)
    for name in ("b.csv", "a.JSONL", "_SUCCESS", ".hidden.csv"):
        (folder / name).write_text("x")
    found = found_files([f"file://{tmp_path}/in/day=1/b.csv", str(tmp_path / "in")])
    assert [(Path(file.path).name, file.length) for file in found] == [("a.JSONL", 1), ("b.csv", 1)]
    (tmp_path / "empty").mkdir()
    for name, problem in (
        ("none.csv", "does not exist"),
        ("empty", "is a folder without files"),
        ("in/day=1/_SUCCESS", "has a name that does not tell its format"),
    ):
        with pytest.raises(BadInput, match=problem) as refused:
            found_files([str(tmp_path / name)])
        assert name in str(refused.value)
    with pytest.raises(BadInput, match="are none"):
        found_files([])


def test_small_files_share_a_task_and_large_ones_are_cut(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("a.csv", "b.csv", "empty.csv"):
        (tmp_path / name).write_text("" if name == "empty.csv" else "user,broker,age\nu,b,1\n")
    layout = layout_of(table_schema("users"))
    files = found_files([str(tmp_path)])
    together = planned_splits(files, layout)
    assert together.tasks == (0, 0)
    assert [Path(split.path).name for split in together.splits] == ["a.csv", "b.csv"]
    assert together.warnings[0].endswith("a.csv: 'age' is no column of users, and not read")
    cut = planned_splits(files, layout, split_bytes=20)
    assert [(split.start, split.end) for split in cut.splits] == [(0, 20), (20, 22)] * 2
    assert cut.tasks == (0, 1, 2, 3)


def test_lines_that_are_not_text_are_found_wherever_they_are() -> None:
    data = b"a\n\xff\nb\xc3\nc\n\xe2\x82\n"
    (block,) = line_blocks(pa.BufferReader(data), start=0, end=len(data), first_line=1)
    found = readable(block)
    assert found.texts.to_pylist() == ["a\n", "c\n"]
    assert found.refused_numbers.tolist() == [2, 3, 5]
