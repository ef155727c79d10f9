"""A million publications matched with many subscriptions, on Spark."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.pipeline.alone import alone_seconds
from benchmarks.pipeline.overhead import Measured, claims, measured, overhead_table
from benchmarks.pipeline.session import shared_session
from benchmarks.pipeline.tables import sampled
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, result_hash
from distributary.pipeline.jobs.match import match, recipients_in
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.store import Store
from distributary.pipeline.transforms.deliveries import deliveries_in
from distributary.pipeline.transforms.recipients import Recipients

__all__ = ["STUDY"]

_COLUMNS = ("source", "event_id", "time", "attributes", "numbers", "texts", "media_type", "bytes")


@dataclass(frozen=True)
class _Parameters:
    publications: int
    subscriptions: tuple[int, ...]
    users: int
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(2_000, (200,), 100, 1),
    "large": _Parameters(1_000_000, (10_000, 100_000), 20_000, 2),
}


@dataclass(frozen=True)
class _Matching:
    """What executors do with a batch of publications."""

    recipients: Recipients

    def __call__(self, batch: pa.RecordBatch) -> object:
        return sum(found.num_rows for found in deliveries_in(batch, self.recipients))


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    spark = shared_session()
    rows: list[tuple[str, Measured]] = []
    found: list[Claim] = []
    for subscriptions in parameters.subscriptions:
        pair = []
        for publications in (parameters.publications // 2, parameters.publications):
            progress(f"{publications:,} publications, {subscriptions:,} subscriptions")
            with tempfile.TemporaryDirectory() as folder:
                pair.append(_measure(spark, Path(folder), parameters, publications, subscriptions))
            rows.append((f"{subscriptions:,}", pair[-1]))
        found += claims(f"match with {subscriptions:,}", *pair)
    return Findings(
        tables=(
            overhead_table(
                "Publications matched with subscriptions on Spark",
                Column("subscriptions"),
                rows,
                more="An event matches about 10 subscriptions, however many there are.",
                repeats=parameters.repeats,
            ),
        ),
        claims=tuple(found),
        result_hash=result_hash([list(item.digests) for _, item in rows]),
    )


def _measure(
    spark: SparkSession,
    folder: Path,
    parameters: _Parameters,
    publications: int,
    subscriptions: int,
) -> Measured:
    store = Store(str(folder), spark)
    sizes = SampleSizes(
        publications=publications,
        subscriptions=subscriptions,
        users=parameters.users,
        seconds=1,
    )
    sampled(store, sizes, "publications", "subscriptions", "users")

    def kernel() -> float:
        began = time.perf_counter()
        everybody = recipients_in(store)
        build = time.perf_counter() - began
        return build + alone_seconds(_Matching(everybody), store.path("publications"), _COLUMNS)

    return measured(
        lambda: [match(store, store)],
        table="publications",
        inputs=lambda: [store.frame("publications").select(*_COLUMNS)],
        outputs=lambda: [store.frame("deliveries")],
        kernel=kernel,
        repeats=parameters.repeats,
    )


STUDY = Study(
    name="pipeline-match",
    about="Matching publications with subscriptions on Spark, beside what cannot be avoided.",
    minutes=10,
    run=_run,
)
