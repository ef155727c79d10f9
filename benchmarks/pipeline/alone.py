"""A kernel alone: over the Arrow data of a table, on the same cores, without Spark.

Processes rather than threads: that is how Spark runs Python, and what stands around the
compiled loops holds the interpreter's lock.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.pipeline.session import cores

__all__ = ["ALONE", "Kernel", "alone_seconds"]

Kernel = Callable[[pa.RecordBatch], object]
"""Takes a batch of a table and does what a job does with it; can be pickled."""

ALONE = (
    "The kernel alone is what the job calls on executors, over the same batches in memory, in "
    "one process per core; reading them is not counted. What the job computes once, on the "
    "driver, is counted once."
)
"""What the kernel alone is, for the notes under a table."""

_BATCH_ROWS = 20_000

_kernel: list[Kernel] = []


@dataclass(frozen=True)
class _Portion:
    """Some rows of a table: a part of a file."""

    path: str
    row_group: int
    columns: tuple[str, ...]


def alone_seconds(
    kernel: Kernel, folder: str, columns: Sequence[str], *, batch_rows: int = _BATCH_ROWS
) -> float:
    """Return how long all cores take for a table, if each has its share of the work.

    Parameters
    ----------
    kernel
        What is done with a batch.
    folder
        The table: Parquet files.
    columns
        Those that the kernel gets.
    batch_rows
        Rows of a batch, as Spark makes them.
    """
    portions = _portions(folder, tuple(columns))
    count = cores()
    if len(portions) == 1:
        # One process has all the work; it may as well be this one.
        _warmed(kernel, portions[0], batch_rows)
        return _seconds(kernel, portions[0], batch_rows)
    with ProcessPoolExecutor(
        count,
        mp_context=get_context("spawn"),
        initializer=_prepare,
        initargs=(pickle.dumps(kernel), portions[0], batch_rows),
    ) as pool:
        seconds = pool.map(_timed, portions, [batch_rows] * len(portions))
        return sum(seconds) / count


def _portions(folder: str, columns: tuple[str, ...]) -> list[_Portion]:
    found = []
    for path in sorted(Path(folder).rglob("*.parquet")):
        with pq.ParquetFile(path) as file:
            groups = file.num_row_groups
        found += [_Portion(str(path), group, columns) for group in range(groups)]
    return found


def _prepare(packed: bytes, portion: _Portion, batch_rows: int) -> None:
    """Get a worker process ready: nothing is compiled or loaded while the clock runs."""
    pa.set_cpu_count(1)
    kernel: Kernel = pickle.loads(packed)  # noqa: S301 (our own process wrote it)
    _kernel[:] = [kernel]
    _warmed(kernel, portion, batch_rows)


def _timed(portion: _Portion, batch_rows: int) -> float:
    return _seconds(_kernel[0], portion, batch_rows)


def _warmed(kernel: Kernel, portion: _Portion, batch_rows: int) -> None:
    kernel(next(_batches(portion, batch_rows)))


def _seconds(kernel: Kernel, portion: _Portion, batch_rows: int) -> float:
    seconds = 0.0
    for batch in _batches(portion, batch_rows):
        began = time.perf_counter()
        kernel(batch)
        seconds += time.perf_counter() - began
    return seconds


def _batches(portion: _Portion, batch_rows: int) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(portion.path) as file:
        rows = file.read_row_group(portion.row_group, columns=list(portion.columns))
    yield from rows.combine_chunks().to_batches(max_chunksize=batch_rows)
