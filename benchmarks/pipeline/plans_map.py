"""A placement plan for each of many publications, on Spark."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from benchmarks.pipeline.alone import alone_seconds
from benchmarks.pipeline.overhead import Measured, claims, measured, overhead_table
from benchmarks.pipeline.session import shared_session
from benchmarks.pipeline.tables import SEED, sampled
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.content.calibrated_graph import graph_for
from distributary.content.content_space import ContentSpace
from distributary.media.graphs import default_graph
from distributary.pipeline.graph import calibration
from distributary.pipeline.jobs.match import match
from distributary.pipeline.jobs.plans import plans
from distributary.pipeline.jobs.sample import frames
from distributary.pipeline.overlay import read_overlay
from distributary.pipeline.report import JobReport
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.store import Store
from distributary.pipeline.transforms.publication_plans import PublicationPlanner

__all__ = ["STUDY"]

_READ = ("source", "event_id", "media_type", "bytes", "attributes", "numbers", "texts")
_DELIVERED = ("source", "event_id", "media_type", "broker")
_PLANNED = ("day", "source", "event_id", "media_type", "bytes", "cell", "broker")
_BASELINES = ("all_in_root", "all_in_leaves", "single_format")
# About a third of the events of a sample are annotated maps, and somebody gets half of those.
_SAMPLED_PER_MAP = 8
# Publications that the kernel gets at a time; so many rows of them fit a batch of Spark's.
_PORTION = 500


@dataclass(frozen=True)
class _Parameters:
    publications: int
    brokers: int
    subscriptions: int
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(100, 32, 200, 1),
    "large": _Parameters(10_000, 1_024, 10_000, 2),
}


@dataclass(frozen=True)
class _Planning:
    """What executors do with publications and those who get them."""

    planner: PublicationPlanner

    def __call__(self, batch: pa.RecordBatch) -> object:
        return self.planner.plans(batch)


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    spark = shared_session()
    pair, reports = [], []
    counts = (parameters.publications // 2, parameters.publications)
    for publications in counts:
        progress(f"{publications:,} publications, {parameters.brokers:,} brokers")
        with tempfile.TemporaryDirectory() as folder:
            found, report = _measure(spark, Path(folder), parameters, publications)
        pair.append(found)
        reports.append(report)
    costs = reports[-1].figures
    best = min(_cost(costs, name) for name in _BASELINES)
    total = _cost(costs, "total_cost")
    return Findings(
        tables=(
            overhead_table(
                f"Plans on the map graph and {parameters.brokers:,} brokers, on Spark",
                Column("publications"),
                list(zip(counts, pair, strict=True)),
                more=(
                    "A publication has about 10 subscribers. The kernel gets publications "
                    "and their deliveries in order."
                ),
                repeats=parameters.repeats,
            ),
            Table(
                f"What the plans of {counts[-1]:,} publications cost together",
                "quality",
                (Column("method"), Column("cost"), Column("times the bound", 4)),
                tuple(
                    (name, _cost(costs, name), _cost(costs, name) / _cost(costs, "lower_bound"))
                    for name in ("lower_bound", "total_cost", *_BASELINES)
                ),
            ),
        ),
        claims=(
            *claims("plans", *pair),
            Claim("plans beside the best of three simple methods", total / best, "<=", 1.0),
            Claim("publications without a plan", _cost(costs, "failed"), "==", 0.0),
        ),
        result_hash=result_hash([list(item.digests) for item in pair]),
    )


def _cost(figures: Mapping[str, object], name: str) -> float:
    value = figures[name]
    assert isinstance(value, int | float)
    return float(value)


def _measure(
    spark: SparkSession, folder: Path, parameters: _Parameters, publications: int
) -> tuple[Measured, JobReport]:
    store = Store(str(folder / "data"), spark)
    _fill(store, parameters, publications)
    (folder / "sorted").mkdir()
    _write_sorted(store, folder / "sorted" / "rows.parquet")
    reports: list[JobReport] = []

    def job() -> list[JobReport]:
        reports[:] = [plans(store, store)]
        return reports

    def kernel() -> float:
        began = time.perf_counter()
        planner = PublicationPlanner(read_overlay(store), ContentSpace.default(), calibration())
        build = time.perf_counter() - began
        return build + alone_seconds(_Planning(planner), str(folder / "sorted"), _PLANNED)

    found = measured(
        job,
        table="publications",
        inputs=lambda: [
            store.frame("publications").select(*_READ),
            store.frame("deliveries").select(*_DELIVERED),
        ],
        outputs=lambda: [store.frame("plans")],
        kernel=kernel,
        repeats=parameters.repeats,
    )
    return found, reports[0]


def _fill(store: Store, parameters: _Parameters, publications: int) -> None:
    """Write a sample whose publications are annotated maps that somebody gets."""
    sizes = SampleSizes(
        publications=_SAMPLED_PER_MAP * publications,
        subscriptions=parameters.subscriptions,
        users=4 * parameters.brokers,
        brokers=parameters.brokers,
    )
    sampled(store, sizes, "subscriptions", "users", "overlay")
    formats = list(graph_for(default_graph("map"), 1).names)
    every = frames(store.spark, sizes, seed=SEED)["publications"]
    store.write("publications", every.filter(f.col("media_type").isin(formats)))
    match(store, store)
    served = store.frame("deliveries").dropna(subset=["broker", "media_type"])
    maps = store.frame("publications").join(served, ["source", "event_id"], "left_semi")
    store.write("publications", maps.orderBy("event_id").limit(publications))
    report = match(store, store)
    assert report.rows_in["publications"] == publications, "a sample has too few maps"


def _write_sorted(store: Store, path: Path) -> None:
    """Write publications, each with those who get it, as planning sees them."""
    space = ContentSpace.default()
    published = store.read("publications")
    cells = [space.cells_of_batch(batch) for batch in published.to_batches()]
    count = published.num_rows
    delivered = store.read("deliveries")
    rows = pa.concat_tables(
        [
            published.select(["day", "source", "event_id", "media_type", "bytes"])
            .append_column("cell", pa.array(np.concatenate(cells), pa.int64()))
            .append_column("broker", pa.nulls(count, pa.string())),
            delivered.select(["day", "source", "event_id", "media_type"])
            .append_column("bytes", pa.nulls(delivered.num_rows, pa.int64()))
            .append_column("cell", pa.nulls(delivered.num_rows, pa.int64()))
            .append_column("broker", delivered["broker"]),
        ],
        promote_options="permissive",
    )
    order = ("day", "source", "event_id", "cell")
    rows = rows.sort_by([(name, "ascending") for name in order])
    starts = np.flatnonzero(np.asarray(rows["cell"].is_valid()))
    with pq.ParquetWriter(path, rows.schema) as writer:
        for begin in range(0, len(starts), _PORTION):
            end = starts[begin + _PORTION] if begin + _PORTION < len(starts) else rows.num_rows
            writer.write_table(rows.slice(starts[begin], end - starts[begin]))


STUDY = Study(
    name="pipeline-plans",
    about="Planning every publication on Spark, beside what cannot be avoided.",
    minutes=10,
    run=_run,
)
