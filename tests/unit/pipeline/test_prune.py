"""What is older than wanted leaves the tables, and what belongs to it leaves with it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from distributary.cli.pipeline.prune import _limit
from distributary.errors import BadInput
from distributary.pipeline.jobs.prune import frames, prune
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.store import Store

JANUARY, FEBRUARY, MARCH = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2, 3))


def write(
    store: Store, name: str, rows: Sequence[tuple[object, ...]], batch: int | None = None
) -> None:
    frame = store.spark.createDataFrame(rows, table_schema(name).stored_type)
    if batch is None:
        store.write(name, frame)
    else:
        store.publish(store.draft(name, frame), append=True, batch=("stream-a", batch))


def publication(event_id: str, time: datetime | None) -> tuple[object, ...]:
    return ("/s", event_id, None, time, {}, {}, {}, None, 0, day_of(time))


def day_of(time: datetime | None) -> date | None:
    return None if time is None else time.date()


def test_deliveries_go_with_their_publications_and_rows_without_a_time_stay(store: Store) -> None:
    write(
        store,
        "publications",
        [publication("old", JANUARY), publication("new", FEBRUARY), publication("timeless", None)],
    )
    events = {"old": JANUARY, "new": FEBRUARY, "timeless": None}
    write(
        store,
        "deliveries",
        [("/s", event, "s1", "u", None, None, 0, day_of(time)) for event, time in events.items()],
    )
    counted = prune(store, before=FEBRUARY, dry_run=True)
    assert counted.figures == {"publications_removed": 1, "deliveries_removed": 1}
    assert store.frame("publications").count() == 3
    report = prune(store, before=FEBRUARY)
    assert report.rows_in == {"publications": 3, "deliveries": 3}
    assert report.rows_out == {"publications": 2, "deliveries": 2}
    left = {row.event_id for row in store.frame("deliveries").collect()}
    assert left == {"new", "timeless"}
    assert prune(store, before=FEBRUARY).figures == {
        "publications_removed": 0,
        "deliveries_removed": 0,
    }


def test_a_stream_goes_on_with_a_table_that_was_pruned(store: Store) -> None:
    for batch, times in enumerate(([JANUARY], [JANUARY, MARCH], [MARCH])):
        rows = [("a", time, float(batch), day_of(time)) for time in times]
        write(store, "quotes", rows, batch)
    assert prune(store, before=FEBRUARY, tables=["quotes"]).rows_out == {"quotes": 2}
    assert {row.value for row in store.frame("quotes").collect()} == {1.0, 2.0}
    # It is still the stream's, which does not do a batch again that it has done.
    assert store.stream_of("quotes") == "stream-a"
    write(store, "quotes", [("a", MARCH, 7.0, day_of(MARCH))], 2)
    write(store, "quotes", [("b", MARCH, 3.0, day_of(MARCH))], 3)
    assert {row.value for row in store.frame("quotes").collect()} == {1.0, 2.0, 3.0}


def test_of_the_day_in_which_the_limit_lies_only_older_rows_go(store: Store) -> None:
    noon = FEBRUARY + timedelta(hours=12)
    times = {"early": FEBRUARY, "late": noon + timedelta(hours=1), "older": JANUARY}
    write(store, "publications", [publication(event, time) for event, time in times.items()])
    rows = [("/s", event, "s1", "u", None, None, 0, day_of(time)) for event, time in times.items()]
    write(store, "deliveries", rows)
    plan = (None,) * 12
    write(store, "plans", [("/s", event, *plan, day_of(time)) for event, time in times.items()])
    report = prune(store, before=noon)
    assert report.figures == {
        "publications_removed": 2, "deliveries_removed": 2, "plans_removed": 2
    }  # fmt: skip
    for name in ("publications", "deliveries", "plans"):
        assert store.read(name, ["event_id"])["event_id"].to_pylist() == ["late"]
        assert store.days(name) == {FEBRUARY.date()}


def test_only_tables_that_grow_old_can_be_pruned(store: Store) -> None:
    with pytest.raises(BadInput, match="'users' has no rows that grow old"):
        prune(store, before=FEBRUARY, tables=["users"])
    assert frames(store, before=FEBRUARY) == {}


def test_the_limit_is_a_time_or_an_age() -> None:
    assert _limit("2026-02-01T01:00:00+01:00", None) == FEBRUARY
    limit = _limit(None, "36h")
    assert 36 * 3600 <= (datetime.now(UTC) - limit).total_seconds() < 37 * 3600
    for before, keep in ((None, None), ("2026-02-01T00:00:00Z", "1d"), (None, "1y")):
        with pytest.raises(BadInput):
            _limit(before, keep)
