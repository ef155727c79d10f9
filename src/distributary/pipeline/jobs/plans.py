"""`pipeline plans`: a placement plan for every publication that somebody gets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from distributary.content.content_space import ContentSpace
from distributary.content.documents import read_document
from distributary.errors import BadInput
from distributary.pipeline.broadcast import broadcast
from distributary.pipeline.counting import RowCount, observed
from distributary.pipeline.days import ALL, Days
from distributary.pipeline.failures import explained
from distributary.pipeline.graph import calibration
from distributary.pipeline.overlay import read_overlay
from distributary.pipeline.report import Figure, JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.pipeline.space_file import kept_space, read_space
from distributary.pipeline.transforms.plans import plans as planned
from distributary.pipeline.transforms.publication_plans import PlanOptions, PublicationPlanner
from distributary.pipeline.workers import task_count

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from distributary.pipeline.store import Store

__all__ = ["frames", "plans"]

# So many tasks per core: some publications take a hundred times as long as others, and the
# last tasks should not be long ones.
_TASKS_PER_CORE = 8
_COSTS = ("total_cost", "lower_bound", "all_in_root", "all_in_leaves", "single_format")


def frames(
    source: Store,
    days: Days = ALL,
    *,
    graph: Path | str | None = None,
    space: Path | str | None = None,
    options: PlanOptions | None = None,
    tasks: int | None = None,
) -> dict[str, DataFrame]:
    """Return the tables that the job writes, by name."""
    publications = source.frame("publications", days, with_day=True)
    deliveries = _delivered(source, publications, days)
    return {"plans": _planned(source, publications, deliveries, graph, space, options, tasks)}


def _cells(source: Store) -> dict[str, object]:
    """Return which content space is the folder's."""
    kept = kept_space(source) if source.has("channels") else None
    return {"cells": None if kept is None else kept[0].version}


@recorded("plans", _cells)
def plans(
    source: Store,
    target: Store,
    days: Days = ALL,
    *,
    graph: Path | str | None = None,
    space: Path | str | None = None,
    options: PlanOptions | None = None,
    tasks: int | None = None,
) -> JobReport:
    """Decide for every publication where its conversions should run.

    Its tree is the union of the routes from its rendezvous broker to the home brokers of
    those who get it. Who has no home, or can be sent no format, is left out and counted.

    Reads `publications`, `deliveries` and `overlay`; writes `plans`, of the same days. The
    cells that have rendezvous brokers are those of the document `space`, else of the table
    `channels`, and without such a table of `ContentSpace.default`. The result does not depend on
    the number of `tasks`.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    stopwatch = Stopwatch()
    published, delivered, written = RowCount(), Observation(), Observation()
    publications = source.frame("publications", days, with_day=True)
    deliveries = _delivered(source, publications, days).observe(
        delivered,
        f.count(f.lit(1)).alias("rows"),
        f.count_if(f.col("broker").isNull()).alias("without_broker"),
        f.count_if(f.col("media_type").isNull()).alias("without_format"),
    )
    counted = published.of(publications)
    rows = _planned(source, counted, deliveries, graph, space, options, tasks)
    with explained("plans", source.path("deliveries")):
        target.write("plans", rows.observe(written, *_figures()), days)
        got, made = observed(delivered), observed(written)
    costs: dict[str, Figure] = {name: float(made.get(name) or 0) for name in _COSTS}
    return JobReport(
        "plans",
        {"publications": published.rows, "deliveries": got.get("rows", 0)},
        {"plans": made.get("rows", 0)},
        stopwatch.seconds,
        {
            "failed": made.get("failed", 0),
            "without_broker": got.get("without_broker", 0),
            "without_format": got.get("without_format", 0),
            **costs,
        },
        days.among(source.days("publications")),
    )


def _figures() -> list[Column]:
    from pyspark.sql import functions as f

    # Sums of decimals are the same in whatever order tasks end.
    return [
        f.count(f.lit(1)).alias("rows"),
        f.count_if(f.col("failure").isNotNull()).alias("failed"),
        *(f.sum(f.col(name).cast("decimal(38,9)")).alias(name) for name in _COSTS),
    ]


def _delivered(source: Store, publications: DataFrame, days: Days) -> DataFrame:
    """Return the deliveries of some days, each with its own.

    Others than `match` may have written them, who know of no days: then it is that of the
    publication.
    """
    found = source.frame("deliveries", days, with_day=True)
    if source.days("deliveries") != {None} or source.days("publications") == {None}:
        return found
    keys = ["source", "event_id"]
    known = publications.select(*keys, "day")
    return source.frame("deliveries").join(known, keys, "left" if days.is_all else "inner")


def _planned(
    source: Store,
    publications: DataFrame,
    deliveries: DataFrame,
    graph: Path | str | None,
    space: Path | str | None,
    options: PlanOptions | None,
    tasks: int | None,
) -> DataFrame:
    cells = _space(source, space)
    planner = PublicationPlanner(read_overlay(source), cells, calibration(graph), options)
    return planned(
        publications,
        deliveries,
        broadcast(source.spark, planner),
        space=cells,
        tasks=_tasks(source.spark, tasks),
    )


def _space(source: Store, path: Path | str | None) -> ContentSpace:
    if path is not None:
        return read_document(path, ContentSpace.parse)
    return read_space(source) if source.has("channels") else ContentSpace.default()


def _tasks(spark: SparkSession, tasks: int | None) -> int:
    if tasks is not None:
        if tasks < 1:
            raise BadInput("--tasks", f"must be at least 1, not {tasks}")
        return tasks
    return task_count(spark, per_core=_TASKS_PER_CORE)
