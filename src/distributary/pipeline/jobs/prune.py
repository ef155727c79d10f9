"""The job `prune`: what is older than wanted leaves the tables.

Rows go by their own time, deliveries and plans with their publications. A stream that fills
a table goes on filling it afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from distributary.errors import BadInput, quoted
from distributary.pipeline.failures import explained
from distributary.pipeline.report import JobReport, Stopwatch
from distributary.pipeline.schemas import TABLES
from distributary.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["PRUNABLE", "frames", "prune"]

_PUBLICATIONS = "publications"
_FOLLOWING = ("deliveries", "plans")

PRUNABLE = (*(name for name, item in TABLES.items() if item.time is not None), *_FOLLOWING)
"""The tables that can be pruned: first those whose rows have a time of their own."""


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
    rows_in: dict[str, int] = {}
    rows_out: dict[str, int] = {}
    for name in _chosen(store, tables):
        with explained("prune", store.path(name)):
            rows = store.frame(name)
            left = _left(store, name, rows, before)
            rows_in[name] = rows.count()
            rows_out[name] = left.count()
            if rows_out[name] < rows_in[name] and not dry_run:
                store.publish(store.draft(name, left), stream=store.stream_of(name))
    removed = {f"{name}_removed": rows_in[name] - rows_out[name] for name in rows_in}
    return JobReport("prune", rows_in, rows_out, watch.seconds, removed)


def frames(
    store: Store, *, before: datetime, tables: Sequence[str] | None = None
) -> dict[str, DataFrame]:
    """Return what is left of each table, before anything is run."""
    return {name: _left(store, name, store.frame(name), before) for name in _chosen(store, tables)}


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


def _left(store: Store, name: str, rows: DataFrame, before: datetime) -> DataFrame:
    from pyspark.sql import functions as f

    time = TABLES[name].time
    if time is not None:
        moment = f.lit(before.astimezone(UTC).isoformat()).cast("timestamp")
        return rows.filter(f.col(time).isNull() | (f.col(time) >= moment))
    if not store.has(_PUBLICATIONS):
        return rows
    publications = store.frame(_PUBLICATIONS).select("source", "event_id")
    return rows.join(publications, ["source", "event_id"], "left_semi").select(*rows.columns)
