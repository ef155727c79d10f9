"""Adding a day to a month: what it costs beside the day alone."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.pipeline.overhead import digest
from benchmarks.pipeline.session import shared_session
from benchmarks.pipeline.tables import SEED
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from distributary.pipeline.config import Step
from distributary.pipeline.days import Days
from distributary.pipeline.jobs.ingest import ingest
from distributary.pipeline.jobs.run import run
from distributary.pipeline.jobs.sample import frames
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.store import Store

__all__ = ["STUDY"]

RATIO_MAX = 1.2
_CHAIN = (Step("match"), Step("channels", {"space": "default"}), Step("traffic"))
_BY_DAY = ("deliveries", "volume_days", "received_days")


@dataclass(frozen=True)
class _Parameters:
    days: int
    publications: int
    subscriptions: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(3, 100, 40),
    "large": _Parameters(30, 1_000_000, 1_000),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    spark = shared_session()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        progress(f"{parameters.days} days of {parameters.publications:,} publications")
        month, last = _filled(spark, root, parameters)
        run(month, _CHAIN)
        progress("a day more")
        added = _seconds(month, root)
        progress("the day alone")
        alone = Store(str(root / "alone"), spark)
        for name in ("subscriptions", "users"):
            alone.write(name, month.read(name))
        single = _seconds(alone, root)
        pairs = [
            tuple(digest(store.frame(name, last)) for store in (month, alone)) for name in _BY_DAY
        ]
    return Findings(
        tables=(
            Table(
                f"A day of {parameters.publications:,} publications added to {parameters.days}",
                "speed",
                (Column("what"), Column("s", 1), Column("times alone", 2)),
                (
                    ("the day alone", single, 1.0),
                    (f"added to {parameters.days}", added, added / single),
                ),
                notes=(
                    "Ingesting the day from Parquet, then what is stale of match, channels and "
                    "traffic. In a session that has done such work before."
                ),
            ),
        ),
        claims=(
            Claim("tables in which the day is another", _differing(pairs), "==", 0),
            Claim("a day more beside a day", added / single, "<=", RATIO_MAX, "times as long"),
        ),
        result_hash=result_hash([list(pair) for pair in pairs]),
    )


def _differing(pairs: Sequence[tuple[str, ...]]) -> int:
    return sum(one != other for one, other in pairs)


def _filled(spark: SparkSession, root: Path, parameters: _Parameters) -> tuple[Store, Days]:
    """Write a month without its last day, and that day as files; return the month and the day."""
    count = parameters.days + 1
    sizes = SampleSizes(
        publications=parameters.publications * count,
        subscriptions=parameters.subscriptions,
        users=parameters.subscriptions,
        days=float(count),
    )
    made = frames(spark, sizes, seed=SEED)
    month = Store(str(root / "month"), spark)
    for name in ("subscriptions", "users", "publications"):
        month.write(name, made[name])
    last = Days(max(day for day in month.days("publications") if day is not None))
    held = month.frame("publications", last)
    held.write.parquet(str(root / "files"))
    month.write("publications", held.limit(0), last)
    return month, last


def _seconds(store: Store, root: Path) -> float:
    """Return how long it takes to ingest a day, and to do what is stale then."""
    began = time.perf_counter()
    ingest(store, "publications", [str(root / "files")])
    run(store, _CHAIN)
    return time.perf_counter() - began


STUDY = Study(
    name="pipeline-day",
    about="Adding a day to a month on Spark, beside the day alone.",
    minutes=60,
    run=_run,
)
