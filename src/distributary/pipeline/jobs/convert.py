"""The job `convert`: tables of an older layout or with older columns become what they are now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from distributary.pipeline.failures import explained
from distributary.pipeline.report import Figure, JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.pipeline.schemas import TABLES, table_schema
from distributary.pipeline.table_files import DAY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from distributary.pipeline.store import Store

__all__ = ["MIGRATIONS", "convert", "frames"]

LAID_OUT = "laid-out-anew"
"""The name of what is done to a table whose columns are right."""


def _with_bytes(store: Store, rows: DataFrame) -> DataFrame:
    """Return deliveries with the bytes of their publications."""
    sizes = store.frame("publications").select("source", "event_id", "bytes")
    return rows.join(sizes.dropDuplicates(["source", "event_id"]), ["source", "event_id"])


MIGRATIONS: Mapping[tuple[str, int], tuple[str, Callable[[Store, DataFrame], DataFrame]]] = {
    ("deliveries", 1): ("bytes-from-publications", _with_bytes),
}
"""What becomes of tables with the columns of a version, by table and version: name and function."""


@recorded("convert")
def convert(store: Store, tables: Sequence[str] | None = None) -> JobReport:
    """Make tables of folders without a log, of another layout or with older columns what they are.

    All that are there and need it, unless some are given. What each was converted by is among the
    figures.
    """
    watch = Stopwatch()
    rows: dict[str, int] = {}
    figures: dict[str, Figure] = {}
    for name, (migration, frame) in _converted(store, tables).items():
        with explained("convert", store.path(name)):
            rows[name] = store.write(name, frame)
        figures[name] = migration
    return JobReport("convert", dict(rows), rows, watch.seconds, figures)


def frames(store: Store, tables: Sequence[str] | None = None) -> dict[str, DataFrame]:
    """Return the tables that would be written, by name."""
    return {name: frame for name, (_, frame) in _converted(store, tables).items()}


def _converted(store: Store, tables: Sequence[str] | None) -> dict[str, tuple[str, DataFrame]]:
    found: dict[str, tuple[str, DataFrame]] = {}
    for name in TABLES if tables is None else tables:
        table_schema(name)
        version = store.columns_version(name)
        if version is None or (store.is_current(name) and tables is None):
            continue
        if (name, version) in MIGRATIONS:
            migration, migrate = MIGRATIONS[name, version]
            found[name] = migration, _with_day(store, name, migrate(store, store.as_stored(name)))
        else:
            # Refuses what it cannot read.
            found[name] = LAID_OUT, _with_day(store, name, store.frame(name))
    return found


def _with_day(store: Store, name: str, rows: DataFrame) -> DataFrame:
    """Return rows with their day: that of their time, or of the publication they belong to."""
    from pyspark.sql import functions as f

    declared = TABLES[name]
    known = {"source", "event_id"} <= {*declared.column_names} and store.has("publications")
    if not declared.by_day or declared.time is not None or not known:
        return rows
    days = store.frame("publications", with_day=True).groupBy("source", "event_id")
    return rows.join(days.agg(f.min(DAY).alias(DAY)), ["source", "event_id"], "left")
