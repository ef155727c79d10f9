"""`pipeline sample`: tables of realistic data, the same for the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.errors import BadInput
from distributary.pipeline.failures import explained
from distributary.pipeline.report import JobReport, Stopwatch
from distributary.pipeline.runs import recorded
from distributary.pipeline.sample import SampleSizes, sample_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from distributary.pipeline.store import Store

__all__ = ["frames", "sample"]


def frames(spark: SparkSession, sizes: SampleSizes, *, seed: int = 0) -> dict[str, DataFrame]:
    """Return the tables that the job writes, by name."""
    if seed < 0:
        raise BadInput("--seed", f"must be at least 0, not {seed}")
    return sample_tables(spark, sizes, seed)


@recorded("sample")
def sample(target: Store, sizes: SampleSizes, *, seed: int = 0) -> JobReport:
    """Fill a folder with the tables of a sample.

    Tables of these names are replaced. The same seed gives the same rows.
    """
    stopwatch = Stopwatch()
    rows: dict[str, int] = {}
    for name, frame in frames(target.spark, sizes, seed=seed).items():
        with explained("sample", target.path(name)):
            rows[name] = target.write(name, frame)
    return JobReport("sample", {}, rows, stopwatch.seconds, {"seed": seed})
