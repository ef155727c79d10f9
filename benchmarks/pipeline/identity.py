"""The least that a job in Python on Spark does: rows in, through Python, rows out."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

__all__ = ["IDENTITY", "identity_seconds"]

IDENTITY = (
    "The identity job reads the columns that the job reads, hands them to a Python function "
    "that returns what it gets, and drops them; then it reads what the job wrote, hands it "
    "through the same function, and writes it again as Parquet. Same session, same batches."
)
"""What the identity job is, for the notes under a table."""


def identity_seconds(
    inputs: Callable[[], Sequence[DataFrame]], outputs: Callable[[], Sequence[DataFrame]]
) -> float:
    """Return how long it takes to open and read the inputs and to write the outputs.

    Parameters
    ----------
    inputs
        Opens the tables that a job reads, with the columns that it uses.
    outputs
        Opens the tables that it wrote.
    """
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        for frame in inputs():
            _handed_through(frame).write.format("noop").mode("overwrite").save()
        for number, frame in enumerate(outputs()):
            _handed_through(frame).write.parquet(f"{folder}/{number}")
        return time.perf_counter() - began


def _handed_through(frame: DataFrame) -> DataFrame:
    # Defined here so that it is sent by value: workers do not know the benchmarks.
    def handed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    return frame.mapInArrow(handed, frame.schema)
