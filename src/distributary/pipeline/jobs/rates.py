"""`pipeline rates`: quotes x tolerances -> updates per second that servers need, day by day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from itertools import takewhile
from typing import TYPE_CHECKING

from distributary.errors import BadInput
from distributary.pipeline.broadcast import Broadcast, broadcast
from distributary.pipeline.days import ALL, Day, Days
from distributary.pipeline.failures import explained
from distributary.pipeline.report import JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.pipeline.transforms.followers import Followers, ObjectEvents, followers
from distributary.pipeline.transforms.rate_days import rate_days, rates_of_days
from distributary.pipeline.workers import task_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from distributary.pipeline.store import Store
    from distributary.pipeline.table_log import Draft

__all__ = ["followers_in", "frames", "rates"]

DAYS = "rate_days"
# Objects differ in how many quotes and followers they have; smaller parts even that out.
_TASKS_PER_CORE = 5


def followers_in(source: Store, events: ObjectEvents | None = None) -> Followers:
    """Return the followers that the tables `subscriptions` and `users` describe."""
    columns = ("subscription_id", "user", "filters", "tolerance")
    subscriptions = source.read("subscriptions", columns)
    users = source.read("users")
    try:
        return followers(subscriptions, users, events or ObjectEvents())
    except BadInput as error:
        raise error.within(source.path("subscriptions")) from None


def frames(
    source: Store, days: Days = ALL, *, events: ObjectEvents | None = None
) -> dict[str, DataFrame]:
    """Return the tables that the job writes, by name."""
    chosen = _known(days.among(source.days("quotes")))
    everybody = broadcast(source.spark, followers_in(source, events))
    found = _counted(source, None, everybody, chosen)
    return {DAYS: found, "rates": rates_of_days(found)}


@recorded("rates")
def rates(
    source: Store,
    target: Store,
    days: Days = ALL,
    *,
    events: ObjectEvents | None = None,
    span: Days | None = None,
) -> JobReport:
    """Count how often each server needs updates of each object that it follows.

    Reads `quotes`, `subscriptions` and `users`; writes `rate_days` of some days, and of those
    that follow them until one ends as it did before. `rates` are sums over all days of the
    `span`: the same days unless given.
    """
    stopwatch = Stopwatch()
    everybody = followers_in(source, events)
    with explained("rates", source.path("quotes")):
        done = _redone(source, target, days, broadcast(source.spark, everybody))
        # What the files say: counting rows on their way to be sorted takes longer.
        rows = source.row_count("quotes", _chosen(done))
        found = target.frame(DAYS, days if span is None else span)
        written = target.write("rates", rates_of_days(found))
    return JobReport(
        "rates",
        {"quotes": rows, "subscriptions": len(everybody.index)},
        {DAYS: target.row_count(DAYS, _chosen(done)), "rates": written},
        stopwatch.seconds,
        {"servers": len(everybody.servers)},
        frozenset(done),
    )


def _redone(
    source: Store, target: Store, days: Days, everybody: Broadcast[Followers]
) -> list[date]:
    """Count some days, and those after them that no longer begin where they began; return all.

    They are committed together: a day that was counted again would otherwise look as if it had
    always been so, should those after it not be.
    """
    quoted = _known(source.days("quotes"))
    pending = {day for day in quoted if day in days}
    if days.is_all or not target.has(DAYS):
        target.write(DAYS, _counted(source, None, everybody, sorted(pending)))
        return sorted(pending)
    stored = _known(target.days(DAYS))
    gone = {day for day in stored if day in days and day not in quoted}
    pending |= {day for left in gone if (day := _next(quoted, left)) is not None}
    draft: Draft | None = None
    done: list[date] = []
    while pending:
        first = min(pending)
        block = list(takewhile(pending.__contains__, (day for day in quoted if day >= first)))
        before = max((day for day in {*stored, *done} - gone if day < first), default=None)
        state = None if before is None else _rows_of(target, draft, before, done)
        rows = _counted(source, state, everybody, block)
        draft = target.draft(DAYS, rows, onto=draft)
        done += block
        pending -= {*block}
        following = _next(quoted, block[-1])
        if following is not None and following in stored and following not in pending:
            # Where that day has begun, which may be with the end of an earlier one.
            earlier = max((day for day in stored if day < following), default=None)
            began = None if earlier is None else _ending(target.frame(DAYS, _chosen([earlier])))
            if began != _ending(_rows_of(target, draft, block[-1], done)):
                pending.add(following)
    if draft is None and gone:
        draft = target.draft(DAYS, _counted(source, None, everybody, []))
    if draft is not None:
        target.publish(draft, _chosen([*done, *gone]))
    return done


def _rows_of(target: Store, draft: Draft | None, day: date, done: Sequence[date]) -> DataFrame:
    """Return the state in which a day has ended: as it was counted now, or earlier."""
    if draft is None or day not in done:
        return target.frame(DAYS, _chosen([day]))
    files = tuple(item for item in draft.files if item.day == day)
    return target.read_draft(replace(draft, files=files))


def _ending(rows: DataFrame) -> tuple[object, ...]:
    """Return a hash of the state in which a day has ended."""
    from pyspark.sql import functions as f

    hashes = rows.select(f.xxhash64("object", "server", "value", "sent_at", "behind").alias("hash"))
    found = hashes.agg(
        f.count(f.lit(1)), f.bit_xor("hash"), f.sum(f.col("hash").cast("decimal(38,0)"))
    )
    return tuple(found.collect()[0])


def _next(days: Sequence[date], day: date) -> date | None:
    return next((item for item in days if item > day), None)


def _known(days: Iterable[Day]) -> list[date]:
    return sorted(day for day in days if day is not None)


def _chosen(days: Iterable[date]) -> Days:
    return Days(chosen=frozenset(days))


def _counted(
    source: Store, state: DataFrame | None, everybody: Broadcast[Followers], days: Sequence[date]
) -> DataFrame:
    tasks = task_count(source.spark, per_core=_TASKS_PER_CORE)
    return rate_days(state, source.frame("quotes", _chosen(days)), everybody, days, tasks=tasks)
