"""`pipeline show`: rows of a table, by conditions, without Spark."""

from __future__ import annotations

import csv
import io
import json
import operator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distributary.cli import main
from distributary.content.publication import Publication
from distributary.content.publication_table import to_arrow
from distributary.errors import BadInput
from distributary.pipeline.row_conditions import conditions
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.store import Store

TIMES = [0, 1_500_000, 86_400_000_000]


@pytest.fixture
def data(tmp_path: Path) -> str:
    quotes = {
        "object": ["o1", "o2", "o,3"],
        "time": pa.array(TIMES, pa.timestamp("us", "UTC")),
        "value": [1.0, 2.5, float("nan")],
    }
    store = Store(str(tmp_path / "data"))
    store.write("quotes", pa.table(quotes))
    store.write("users", pa.table({"user": ["ann", "bob"], "broker": ["b1", None]}))
    return str(tmp_path / "data")


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert main(["pipeline", "show", *arguments]) == 0
    out, err = capsys.readouterr()
    return out, err


def test_rows_are_shown_in_columns(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(capsys, "users", "--data", data)
    assert out == "user  broker\nann   b1\nbob   -\n"
    assert err == ""
    out, err = shown(capsys, "users", "--data", data, "--limit", "1")
    assert out == "user  broker\nann   b1\n"
    assert err == "there are more; --limit 10 shows more of them\n"


def test_rows_are_shown_as_csv_and_as_json(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(capsys, "quotes", "--data", data, "--csv")
    assert list(csv.reader(io.StringIO(out))) == [
        ["object", "time", "value", "day"],
        ["o1", "1970-01-01T00:00:00Z", "1.0", "1970-01-01"],
        ["o2", "1970-01-01T00:00:01.500000Z", "2.5", "1970-01-01"],
        ["o,3", "1970-01-02T00:00:00Z", "nan", "1970-01-02"],
    ]
    out, _ = shown(capsys, "users", "--data", data, "--json", "--where", "broker=null")
    assert json.loads(out) == {"table": "users", "rows": [{"user": "bob", "broker": None}]}


def test_maps_are_shown_as_objects(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    event = Publication({"id": "1", "source": "/s", "type": "t"}, {"x": 1.5})
    Store(data).write("publications", pa.Table.from_batches([to_arrow([event])]))
    out, _ = shown(capsys, "publications", "--data", data, "--json")
    (row,) = json.loads(out)["rows"]
    assert row["numbers"] == {"/x": 1.5}
    assert row["attributes"]["type"]["text"] == "t"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["people"], "table: 'people' is not a table"),
        (["users", "--where", "name=ann"], "--where: 'name' is no column of users; hint: it has"),
        (["users", "--where", "ann"], "--where: 'ann' is no condition; hint: write it as in user"),
        (["quotes", "--where", "value>x"], "--where value: 'x' is not of its type, double"),
        (["quotes", "--where", "time<noon"], "--where time: "),
        (["access_costs", "--where", "costs=1"], "--where costs: is array<double>, which cannot"),
        (["rates"], "rates: there is no such table"),
        (["users", "--version", "9"], "users: has no version 9"),
        (["users", "--csv", "--json"], "--csv: cannot be combined with --json"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(
    data: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["pipeline", "show", *arguments, "--data", data]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


SIGNS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@settings(deadline=None, max_examples=60)
@given(
    ranks=st.lists(st.integers(-3, 3), max_size=8),
    asked=st.lists(st.tuples(st.sampled_from(sorted(SIGNS)), st.integers(-3, 3)), max_size=2),
)
def test_conditions_keep_the_rows_that_meet_all_of_them(
    ranks: list[int], asked: list[tuple[str, int]]
) -> None:
    """Every row is looked at, one condition after the other, as one would by hand."""
    texts = [f"rank{sign} {value}" for sign, value in asked]
    rows = pa.table({"rank": pa.array(ranks, pa.int32())})
    met = conditions(table_schema("partners"), texts)
    kept = rows if met is None else rows.filter(met)
    expected = [rank for rank in ranks if all(SIGNS[sign](rank, value) for sign, value in asked)]
    assert kept["rank"].to_pylist() == expected


def test_no_condition_is_none() -> None:
    assert conditions(table_schema("users"), []) is None
    with pytest.raises(BadInput):
        conditions(table_schema("users"), ["user"])
