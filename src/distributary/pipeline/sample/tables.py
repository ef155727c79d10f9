"""All tables of a sample as frames that executors make, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from distributary.arrays import IntArray
from distributary.pipeline.sample.network import (
    access_costs_block,
    brokers_block,
    core_costs_block,
    overlay_block,
    users_block,
)
from distributary.pipeline.sample.publications import publications_block
from distributary.pipeline.sample.quotes import object_quotes
from distributary.pipeline.sample.sizes import SampleSizes
from distributary.pipeline.sample.subscriptions import subscriptions_block
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.workers import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["sample_tables"]

Block: TypeAlias = "Callable[[SampleSizes, int, IntArray], pa.RecordBatch]"

# Blocks are the same however they are spread over tasks, and so are their rows.
_BLOCK_ROWS = 8_192
_NETWORK_ROWS = 256
# A task makes so many blocks, unless there are too few tasks then for a small cluster.
_TASK_BLOCKS = 32
_TASKS_MIN = 8


def sample_tables(spark: SparkSession, sizes: SampleSizes, seed: int) -> dict[str, DataFrame]:
    """Return the tables of a sample by name; rows are made when the frames are used.

    The same seed gives the same rows, in any number of partitions.
    """
    # (rows, rows in a block, what makes a block); network tables of thousands of brokers
    # have thousands of numbers in a row.
    blocks: dict[str, tuple[int, int, Block]] = {
        "publications": (sizes.publications, _BLOCK_ROWS, publications_block),
        "subscriptions": (sizes.subscriptions, _BLOCK_ROWS, subscriptions_block),
        "users": (sizes.users, _BLOCK_ROWS, users_block),
        "brokers": (sizes.brokers, _BLOCK_ROWS, brokers_block),
        "access_costs": (sizes.users, _NETWORK_ROWS, access_costs_block),
        "core_costs": (sizes.brokers, _NETWORK_ROWS, core_costs_block),
        "overlay": (sizes.brokers, _NETWORK_ROWS, overlay_block),
    }
    frames = {
        name: _frame(spark, name, -(-rows // size), _in_blocks(block, sizes, seed, rows, size))
        for name, (rows, size, block) in blocks.items()
    }
    frames["quotes"] = _frame(spark, "quotes", sizes.objects, _of_objects(sizes, seed))
    return frames


Rows: TypeAlias = "Callable[[int], Iterable[pa.RecordBatch]]"


def _frame(spark: SparkSession, name: str, count: int, make: Rows) -> DataFrame:
    def made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from make(number)

    tasks = min(count, max(_TASKS_MIN, count // _TASK_BLOCKS))
    return map_in_arrow(spark.range(0, count, 1, tasks), made, table_schema(name).struct_type)


def _in_blocks(block: Block, sizes: SampleSizes, seed: int, rows: int, size: int) -> Rows:
    def make(number: int) -> Iterator[pa.RecordBatch]:
        yield block(sizes, seed, np.arange(number * size, min((number + 1) * size, rows)))

    return make


def _of_objects(sizes: SampleSizes, seed: int) -> Rows:
    def make(number: int) -> Iterator[pa.RecordBatch]:
        return object_quotes(sizes, seed, number)

    return make
