"""The Spark session that all studies of a process share, and the memory of its driver."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
from pyspark.sql import SparkSession

from distributary.cores import available_cores
from distributary.pipeline.session import spark_session

__all__ = ["PeakMemory", "cores", "shared_session", "watched_memory"]

_PERIOD_SECONDS = 0.05


def cores() -> int:
    """Return how many cores the session works on, and the kernels that are run alone."""
    return available_cores()


def shared_session() -> SparkSession:
    """Return the session; it is started by the first study and ends with the process."""
    count = str(cores())
    return spark_session(
        master=f"local[{count}]",
        settings={"spark.sql.shuffle.partitions": str(2 * cores())},
    )


@dataclass
class PeakMemory:
    """The most memory that the driver took, Python and Java together."""

    resident_bytes: int = 0


@contextmanager
def watched_memory() -> Iterator[PeakMemory]:
    """Yield what the driver's peak turns out to be: this process and its Java.

    Embedded, the executor is a part of the driver's Java, and counts. Python workers do
    not: Spark starts them, and on a cluster they are elsewhere.
    """
    this = psutil.Process()
    driver = [this, *(child for child in this.children() if child.name() == "java")]
    peak = PeakMemory()
    over = threading.Event()

    def sample() -> None:
        while not over.wait(_PERIOD_SECONDS):
            taken = sum(process.memory_info().rss for process in driver)
            peak.resident_bytes = max(peak.resident_bytes, taken)

    watcher = threading.Thread(target=sample, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()
