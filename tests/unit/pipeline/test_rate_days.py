"""Days of rates, one after the other, are those of all days at once; without Spark."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.pipeline_rates import Quote, rates_one_by_one

from distributary.pipeline.transforms.followers import Followers, ObjectEvents, followers
from distributary.pipeline.transforms.rate_days import _QUOTE, _STATE, _DayTally

DAY_US = 86_400_000_000
FIRST = (date(2026, 1, 5) - date(1970, 1, 1)).days
DAYS = 4
KINDS = {"absolute": 3.0, "relative": 0.05, "changes": 3.0, "age": 40_000.0}
HOMES: dict[str, str | None] = {f"u{n}": f"b{n}" for n in range(len(KINDS) + 1)}
ROWS = [
    {
        "subscription_id": f"s{n}",
        "user": f"u{n}",
        "filters": json.dumps([{"exact": {"subject": "x"}}]),
        "tolerance": json.dumps({"value": "/price", "divergence": kind, "amount": amount}),
    }
    for n, (kind, amount) in enumerate(KINDS.items())
]
ROWS.append({**ROWS[0], "subscription_id": "s9", "user": "u4", "tolerance": None})  # type: ignore[dict-item]


def everybody(count: int = len(ROWS)) -> Followers:
    users = pa.table({"user": list(HOMES), "broker": list(HOMES.values())})
    kinds = [(name, pa.string()) for name in ROWS[0]]
    return followers(
        pa.Table.from_pylist(ROWS[:count], schema=pa.schema(kinds)), users, ObjectEvents()
    )


SCHEMA = pa.schema(
    [
        ("object", pa.string()),
        ("part", pa.int8()),
        ("time", pa.timestamp("us", "UTC")),
        ("value", pa.float64()),
        ("server", pa.string()),
        ("behind", pa.int64()),
    ]
)
QUOTES = st.lists(
    st.tuples(
        st.integers(0, DAYS - 1),
        st.integers(0, 23),
        st.sampled_from([40.0, 41.5, 43.0, 44.0, 50.0]),
    ),
    min_size=1,
    max_size=40,
)


def rows_of(
    quotes: list[Quote], state: list[dict[str, Any]], days: list[int], all_of: Followers, cut: int
) -> list[dict[str, Any]]:
    """Count some days of an object as executors do, with its rows in batches of some length."""
    known = [
        {"object": "x", "part": _STATE, "time": row["sent_at"], "value": row["value"],
         "server": row["server"], "behind": row["behind"]}
        for row in state
    ]  # fmt: skip
    known += [
        {"object": "x", "part": _QUOTE, "time": at, "value": value}
        for _, at, value in quotes
        if at // DAY_US in days
    ]
    tally = _DayTally(all_of.of(["x"])[0], days)
    batch = pa.RecordBatch.from_pylist(known, schema=SCHEMA)
    for begin in range(0, batch.num_rows, cut):
        tally.take(batch.slice(begin, cut), all_of)
    found: list[dict[str, Any]] = tally.rows("x", all_of).to_pylist()
    return found


def listed(drawn: list[tuple[int, int, float]]) -> list[Quote]:
    times = [(FIRST + day) * DAY_US + hour * 3_600_000_000 for day, hour, _ in drawn]
    found = [("x", at, value) for at, (_, _, value) in zip(times, drawn, strict=True)]
    return sorted(found)


@given(drawn=QUOTES, cut=st.integers(1, 7))
def test_days_one_after_the_other_are_all_days_at_once(
    drawn: list[tuple[int, int, float]], cut: int
) -> None:
    """For every kind of tolerance, wherever batches are cut, with days that have no quotes."""
    quotes, all_of = listed(drawn), everybody()
    days = [FIRST + n for n in range(DAYS)]
    whole = rows_of(quotes, [], days, all_of, 1_000)
    found: list[dict[str, Any]] = []
    for day in days:
        before = [row for row in found if row["day"] == _date(day - 1)]
        found += rows_of(quotes, before, [day], all_of, cut)
    assert found == whole
    # And their sums are what going through all versions one by one gives.
    rates = {}
    for server in {row["server"] for row in whole}:
        own = [row for row in whole if row["server"] == server and row["first"] is not None]
        seconds = (max(row["last"] for row in own) - min(row["first"] for row in own)) / timedelta(
            seconds=1
        )
        sent = sum(row["sent"] for row in own)
        rates[server, "x"] = sent / seconds if seconds else 0.0
    assert rates == rates_one_by_one(quotes, ROWS, HOMES)


def test_who_is_new_begins_with_the_first_version_and_who_is_gone_is_forgotten() -> None:
    quotes = listed([(0, 0, 40.0), (0, 1, 44.0), (1, 0, 44.5), (1, 1, 50.0)])
    first = rows_of(quotes, [], [FIRST], everybody(2), 9)
    assert {row["server"]: row["sent"] for row in first} == {"b0": 2, "b1": 2}
    second = rows_of(quotes, first, [FIRST + 1], everybody(3), 9)
    assert {row["server"]: (row["sent"], row["behind"]) for row in second} == {
        "b0": (1, 0), "b1": (1, 0), "b2": (1, 1)
    }  # fmt: skip
    assert second[2]["sent_at"] == datetime(2026, 1, 6, tzinfo=UTC)
    third = rows_of(quotes, second, [FIRST + 2], everybody(1), 9)
    assert [(row["server"], row["sent"], row["first"]) for row in third] == [("b0", 0, None)]


def _date(day: int) -> date:
    return date(1970, 1, 1) + timedelta(days=day)
