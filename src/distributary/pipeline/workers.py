"""The Python processes on executors: each of them runs many tasks, one after the other.

Spark collects garbage after every task. With our packages loaded that takes a tenth of a
second, longer than many a task. What is loaded stays until the process ends, so that there
is nothing to find in it: it is kept out of those collections.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["freeze", "map_in_arrow", "set_aside", "task_count", "unfreeze"]

# A client of Spark Connect does not see the cores.
_CORES_ELSEWHERE = 16

# How many modules were loaded when everything in this process was last set aside.
_frozen = 0


def map_in_arrow(
    frame: DataFrame,
    function: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """Return `frame.mapInArrow(function, schema)`, run in processes that have frozen."""

    def frozen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze()
        yield from function(batches)

    return frame.mapInArrow(frozen, schema)


def task_count(spark: SparkSession, *, per_core: int) -> int:
    """Return into how many tasks work is cut that Spark would cut by bytes.

    It makes one task of a few bytes that take minutes, or that become many.
    """
    if hasattr(spark, "_jvm"):
        return per_core * int(spark.sparkContext.defaultParallelism)
    return per_core * _CORES_ELSEWHERE


def freeze() -> None:
    """Keep all that this process has loaded by now out of later collections."""
    global _frozen
    if len(sys.modules) > _frozen:
        gc.collect()
        gc.freeze()
        _frozen = len(sys.modules)


def set_aside() -> None:
    """Keep what has just been made out of later collections, too.

    Without a collection before: that would look through all of it, and find nothing.
    """
    gc.freeze()


def unfreeze() -> None:
    """Let go of what was kept, so that what is no longer used can be found; then `freeze`."""
    global _frozen
    gc.unfreeze()
    _frozen = 0
