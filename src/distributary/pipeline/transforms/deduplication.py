"""Rows that are there more than once, by the key of their table.

Rows almost never repeat, so what is looked for first is whether any do. A hash of every key
is eight bytes; executors sort them into buckets and exchange those packed, which takes a
quarter of the time of letting Spark group ten million of them, and a fraction of moving the
rows themselves. Only rows that share a hash are then compared by their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from distributary.pipeline.schemas import TableSchema
from distributary.pipeline.workers import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

__all__ = [
    "ALREADY_THERE",
    "REPEATED",
    "duplicate_hashes",
    "mark_duplicates",
    "possible_duplicates",
    "with_hash",
    "without_hash",
]

REPEATED = "repeated"
"""Why a row is in quarantine whose key an earlier line of the same files has."""

ALREADY_THERE = "already there"
"""Why a row is in quarantine whose key the table had before."""

_HASH = "key_hash"
_BUCKET_ROWS = 2_000_000
_BUCKETS_MAX = 4096


def duplicate_hashes(
    rows: DataFrame, existing: DataFrame | None, target: TableSchema, *, row_count: int
) -> DataFrame:
    """Return the hashes of keys that are there more than once, each once.

    `row_count`, about how many rows there are in all, decides how many tasks look at them.
    """
    hashes = rows.select(_hash(target))
    if existing is not None:
        hashes = hashes.unionAll(existing.select(_hash(target)))
    buckets = min(_BUCKETS_MAX, 1 + row_count // _BUCKET_ROWS)

    def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _packed(batch, buckets)

    exchanged = map_in_arrow(hashes, packed, "bucket INT, hashes BINARY")
    return map_in_arrow(exchanged.repartitionById(buckets, "bucket"), _twice, f"{_HASH} BIGINT")


def possible_duplicates(rows: DataFrame, hashes: DataFrame, target: TableSchema) -> DataFrame:
    """Return rows of `ingest.ingested` that have a reason, or whose hash is among some."""
    from pyspark.sql import functions as f

    found = hashes.withColumn("is_repeated", f.lit(True))
    joined = rows.withColumn(_HASH, _hash(target)).join(found, _HASH, "left")
    faulty = f.col("reason").isNotNull() | f.col("is_repeated").isNotNull()
    return joined.filter(faulty).drop(_HASH, "is_repeated")


def with_hash(rows: DataFrame, hashes: DataFrame, target: TableSchema) -> DataFrame:
    """Return the rows whose hash is among some."""
    return rows.withColumn(_HASH, _hash(target)).join(hashes, _HASH, "left_semi").drop(_HASH)


def without_hash(rows: DataFrame, hashes: DataFrame, target: TableSchema) -> DataFrame:
    """Return the rows whose hash is not among some."""
    return rows.withColumn(_HASH, _hash(target)).join(hashes, _HASH, "left_anti").drop(_HASH)


def mark_duplicates(rows: DataFrame, existing: DataFrame | None, target: TableSchema) -> DataFrame:
    """Return rows of `ingest.ingested` with a reason where another one has their key.

    Of good rows with one key, that which stands first, by file and then by line, stays
    without a reason, unless the table has its key already. Partitions decide nothing.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    marked = rows.withColumn("is_new", f.lit(True))
    if existing is not None:
        times = (target.time,) if target.by_day and target.time is not None else ()
        names = dict.fromkeys((*target.key, *times))
        old = existing.select(*names).withColumn("is_new", f.lit(False))
        marked = marked.unionByName(old, allowMissingColumns=True)
    # Rows that are faulty anyway are compared with nothing.
    faulty = f.col("reason").isNotNull()
    apart = f.when(faulty, f.struct("file", "line"))
    alike = Window.partitionBy(*_key(target), apart)
    order = alike.orderBy("is_new", "file", "line")
    reason = (
        f.when(faulty, f.col("reason"))
        .when(~f.min("is_new").over(alike), f.lit(ALREADY_THERE))
        .when(f.row_number().over(order) > 1, f.lit(REPEATED))
    )
    return marked.withColumn("reason", reason).filter("is_new").drop("is_new")


def _hash(target: TableSchema) -> Column:
    from pyspark.sql import functions as f

    return f.xxhash64(*_key(target)).alias(_HASH)


def _key(target: TableSchema) -> list[Column]:
    """Return what tells rows apart: the key, within a day."""
    from pyspark.sql import functions as f

    day = [f.to_date(target.time)] if target.by_day and target.time is not None else []
    return [*(f.col(name) for name in target.key), *day]


def _packed(batch: pa.RecordBatch, buckets: int) -> pa.RecordBatch:
    """Return the hashes of a batch as a row of bytes for each bucket."""
    import pyarrow as pa

    hashes = batch.column(0).to_numpy()
    places = (hashes.view(np.uint64) % np.uint64(buckets)).astype(np.int16)
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(buckets + 1))
    data = pa.py_buffer(hashes[order])
    offsets = pa.py_buffer((bounds * hashes.itemsize).astype(np.int32))
    return pa.record_batch(
        [
            pa.array(np.arange(buckets, dtype=np.int32)),
            pa.BinaryArray.from_buffers(pa.binary(), buckets, [None, offsets, data]),
        ],
        names=["bucket", "hashes"],
    )


def _twice(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the hashes of one bucket that are there more than once."""
    import pyarrow as pa

    parts = [
        np.frombuffer(item.as_buffer(), np.int64) for batch in batches for item in batch.column(1)
    ]
    hashes = np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
    found = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    yield pa.record_batch([pa.array(found, pa.int64())], names=[_HASH])
