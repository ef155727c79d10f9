"""What a job takes beyond what cannot be avoided, and how that grows with the data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from benchmarks.pipeline.alone import ALONE
from benchmarks.pipeline.identity import IDENTITY, identity_seconds
from benchmarks.pipeline.session import watched_memory
from benchmarks.study import Claim, Column, Table, Value
from distributary.pipeline.report import JobReport

__all__ = ["COLUMNS", "Measured", "claims", "digest", "measured", "notes", "overhead_table"]

RATIO_MAX = 1.3
DOUBLED_MAX = 2.3
_MIB = 2**20

COLUMNS = (
    Column("rows in"),
    Column("rows out"),
    Column("s", 1),
    Column("rows in per second"),
    Column("driver MiB"),
    Column("identity s", 1),
    Column("kernel alone s", 1),
    Column("times both", 2),
)


@dataclass(frozen=True)
class Measured:
    """What a job took.

    Attributes
    ----------
    rows_in, rows_out
        Of the tables that grow with the data.
    seconds
        Of the job, the best of several times.
    memory_bytes
        The driver's peak.
    identity_seconds, kernel_seconds
        Of the two that it is compared with.
    digests
        Of the tables that it wrote.
    """

    rows_in: int
    rows_out: int
    seconds: float
    memory_bytes: int
    identity_seconds: float
    kernel_seconds: float
    digests: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """The job beside the identity job and the kernel together."""
        return self.seconds / (self.identity_seconds + self.kernel_seconds)

    @property
    def row(self) -> tuple[Value, ...]:
        """The cells of `COLUMNS`."""
        return (
            self.rows_in,
            self.rows_out,
            self.seconds,
            self.rows_in / self.seconds,
            self.memory_bytes / _MIB,
            self.identity_seconds,
            self.kernel_seconds,
            self.ratio,
        )


def measured(
    job: Callable[[], Sequence[JobReport]],
    *,
    table: str,
    inputs: Callable[[], Sequence[DataFrame]],
    outputs: Callable[[], Sequence[DataFrame]],
    kernel: Callable[[], float],
    repeats: int,
) -> Measured:
    """Run a job, the identity job and the kernel in turns, and keep the best of each.

    Parameters
    ----------
    job
        Runs it; several jobs in a row count as one.
    table
        The table whose rows are counted as rows in.
    inputs, outputs
        What it reads, with the columns it uses, and what it wrote.
    kernel
        Runs the kernel alone and returns how long that took.
    repeats
        How often.
    """
    times: list[tuple[float, float, float]] = []
    with watched_memory() as peak:
        for _ in range(repeats):
            began = time.perf_counter()
            reports = job()
            seconds = time.perf_counter() - began
            memory = peak.resident_bytes
            times.append((seconds, identity_seconds(inputs, outputs), kernel()))
            peak.resident_bytes = memory
    best = [min(column) for column in zip(*times, strict=True)]
    return Measured(
        rows_in=max(report.rows_in.get(table, 0) for report in reports),
        rows_out=sum(sum(report.rows_out.values()) for report in reports),
        seconds=best[0],
        memory_bytes=peak.resident_bytes,
        identity_seconds=best[1],
        kernel_seconds=best[2],
        digests=tuple(digest(frame) for frame in outputs()),
    )


def digest(frame: DataFrame) -> str:
    """Return a hash of the rows of a table, in whatever order they are."""
    hashes = frame.select(f.xxhash64(*frame.columns).alias("hash"))
    row = hashes.agg(f.count("*").alias("rows"), f.bit_xor("hash").alias("hash")).first()
    assert row is not None
    return f"{row['rows']}:{row['hash']}"


def overhead_table(
    title: str, first: Column, rows: Sequence[tuple[Value, Measured]], *, more: str, repeats: int
) -> Table:
    """Return the table of a study: a row for each size or workload."""
    return Table(
        title,
        "speed",
        (first, *COLUMNS),
        tuple((name, *item.row) for name, item in rows),
        notes=notes(more, repeats),
    )


def notes(more: str, repeats: int) -> str:
    """Return what stands under a table: what was compared with what."""
    often = "One run" if repeats == 1 else f"The best of {repeats} runs in turns"
    return f"{more} {often}, in a session that has done such work before. {IDENTITY} {ALONE}"


def claims(name: str, half: Measured, whole: Measured) -> tuple[Claim, ...]:
    """Return what is claimed of a job at its largest size."""
    return (
        Claim(f"{name} beside identity and kernel", whole.ratio, "<=", RATIO_MAX, "times as long"),
        Claim(
            f"{name} of twice the data",
            whole.seconds / half.seconds,
            "<=",
            DOUBLED_MAX,
            "times as long",
        ),
    )
