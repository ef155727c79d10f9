"""The job `prune`: what is older than wanted leaves the tables.

Whole days go without being read. Of the day in which the limit lies, rows go by their own time,
deliveries and plans with their publications. A stream that fills a table goes on filling it
afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from distributary.errors import BadInput, quoted
from distributary.pipeline.days import ALL, Days
from distributary.pipeline.failures import explained
from distributary.pipeline.report import JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.pipeline.schemas import TABLES
from distributary.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["PRUNABLE", "frames", "prune"]

_PUBLICATIONS = "publications"
_FOLLOWING = ("deliveries", "plans")

PRUNABLE = (
    *(name for name, item in TABLES.items() if item.time is not None),
    *(name for name, item in TABLES.items() if item.by_day and item.time is None),
)
"""The tables that can be pruned: first those whose rows have a time of their own."""


@recorded("prune")
def prune(
    store: Store,
    *,
    before: datetime,
    tables: Sequence[str] | None = None,
    dry_run: bool = False,
) -> JobReport:
    """Remove rows of a time before a given one, and what belongs to publications that are gone.

    A row without a time stays. Running it again removes nothing more; so a job that is
    killed half way is finished by the next.

    All tables that can be pruned and are there are, unless some are given. With `dry_run` it
    only counts.
    """
    watch = Stopwatch()
    limit = before.astimezone(UTC)
    rows_in: dict[str, int] = {}
    rows_out: dict[str, int] = {}
    for name in _chosen(store, tables):
        with explained("prune", store.path(name)):
            gone, left = _left(store, name, limit)
            rows_in[name] = store.row_count(name)
            removed = store.row_count(name, gone) - (0 if left is None else left.count())
            rows_out[name] = rows_in[name] - removed
            if removed and not dry_run:
                nothing = store.frame(name, with_day=TABLES[name].by_day).limit(0)
                draft = store.draft(name, nothing if left is None else left)
                store.publish(draft, gone, stream=store.stream_of(name))
    removed_rows = {f"{name}_removed": rows_in[name] - rows_out[name] for name in rows_in}
    return JobReport("prune", rows_in, rows_out, watch.seconds, removed_rows)


def frames(
    store: Store, *, before: datetime, tables: Sequence[str] | None = None
) -> dict[str, DataFrame]:
    """Return what is left of the days that are touched, before anything is run."""
    found = {name: _left(store, name, before.astimezone(UTC)) for name in _chosen(store, tables)}
    return {name: left for name, (_, left) in found.items() if left is not None}


def _chosen(store: Store, tables: Sequence[str] | None) -> list[str]:
    if tables is None:
        return [name for name in PRUNABLE if store.has(name)]
    for name in tables:
        if name not in PRUNABLE:
            raise BadInput(
                "--table",
                f"{quoted(name)} has no rows that grow old",
                hint=f"tables are {', '.join(PRUNABLE)}",
            )
    # Publications come before what belongs to them, however they are given.
    return [name for name in PRUNABLE if name in tables]


def _left(store: Store, name: str, limit: datetime) -> tuple[Days, DataFrame | None]:
    """Return the days that are replaced, and what is left of them; None when that is nothing."""
    from pyspark.sql import functions as f

    declared, day = TABLES[name], limit.date()
    rows = store.frame(name, with_day=declared.by_day)
    moment = f.lit(limit.isoformat()).cast("timestamp")
    if not declared.by_day:
        time = f.col(str(declared.time))
        return ALL, rows.filter(time.isNull() | (time >= moment))
    old = [item for item in store.days(name) if item is not None and item <= day]
    is_midnight = limit == datetime.combine(day, datetime.min.time(), UTC)
    cut = declared.time is not None or name in _FOLLOWING
    if day not in old or is_midnight or not cut:
        return Days(chosen=frozenset(item for item in old if item < day)), None
    of_day = store.frame(name, Days(chosen=frozenset({day})), with_day=True)
    gone = Days(chosen=frozenset(old))
    if declared.time is not None:
        return gone, of_day.filter(f.col(declared.time) >= moment)
    if not store.has(_PUBLICATIONS):
        return gone, of_day
    published = store.frame(_PUBLICATIONS, Days(chosen=frozenset({day})))
    keys = published.filter(f.col("time") >= moment).select("source", "event_id")
    return gone, of_day.join(keys, ["source", "event_id"], "left_semi").select(*of_day.columns)
