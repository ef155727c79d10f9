"""Matching by the index beside a join of plain Spark."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.pipeline.overhead import digest
from benchmarks.pipeline.plain_join import condition_table, joined, readable_columns
from benchmarks.pipeline.session import shared_session
from benchmarks.pipeline.tables import sampled
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.pipeline.jobs.match import match
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.store import Store

__all__ = ["STUDY"]

_PAIR = ("source", "event_id", "subscription_id", "user")


@dataclass(frozen=True)
class _Parameters:
    publications: int
    subscriptions: tuple[int, ...]
    repeats: int
    times_min: float


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(500, (200,), 1, 0.1),
    "large": _Parameters(20_000, (10_000, 100_000), 2, 2.0),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    spark = shared_session()
    rows = []
    digests = []
    for subscriptions in parameters.subscriptions:
        progress(f"{parameters.publications:,} publications, {subscriptions:,} subscriptions")
        with tempfile.TemporaryDirectory() as folder:
            ours, plain, found = _measure(spark, Path(folder), parameters, subscriptions)
        count = parameters.publications
        rows.append((subscriptions, ours, plain, count / ours, count / plain, plain / ours))
        digests.append(found)
    return Findings(
        tables=(
            Table(
                f"{parameters.publications:,} publications matched: the index, and a join",
                "speed",
                (
                    Column("subscriptions"),
                    Column("match s", 1),
                    Column("join s", 1),
                    Column("match, publications per second"),
                    Column("join, publications per second"),
                    Column("times as fast", 1),
                ),
                tuple(rows),
                notes=(
                    "Both read and write Parquet in the same session, the best of "
                    f"{parameters.repeats}; the pairs that they find are compared. The join has "
                    "a column for each kind of condition, null where nothing is asked, and a "
                    "broadcast of all subscriptions; turning filters into columns is not "
                    "counted. Building the index is. `match` chooses formats, too."
                ),
            ),
        ),
        claims=(
            Claim(
                "a join beside match, with the most subscriptions",
                rows[-1][-1],
                ">=",
                parameters.times_min,
                "times as long",
            ),
        ),
        result_hash=result_hash(digests),
    )


def _measure(
    spark: SparkSession, folder: Path, parameters: _Parameters, subscriptions: int
) -> tuple[float, float, str]:
    """Return the seconds of `match` and of the join, and a digest of what both find."""
    store = Store(str(folder / "data"), spark)
    sizes = SampleSizes(
        publications=parameters.publications, subscriptions=subscriptions, seconds=1
    )
    sampled(store, sizes, "publications", "subscriptions", "users")
    conditions = condition_table(spark, store.read("subscriptions"))
    ours, plain = [], []
    for number in range(parameters.repeats):
        began = time.perf_counter()
        match(store, store)
        ours.append(time.perf_counter() - began)
        began = time.perf_counter()
        pairs = joined(readable_columns(store.frame("publications")), conditions)
        pairs.write.parquet(str(folder / f"join-{number}"))
        plain.append(time.perf_counter() - began)
    found = digest(store.frame("deliveries").select(*_PAIR))
    assert found == digest(spark.read.parquet(str(folder / "join-0"))), "the join finds others"
    return min(ours), min(plain), found


STUDY = Study(
    name="pipeline-join",
    about="How much faster the index matches than a join on a condition in plain Spark.",
    minutes=10,
    run=_run,
)
