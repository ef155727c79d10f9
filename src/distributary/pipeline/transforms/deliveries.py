"""Who gets which publication, and in which format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import IntArray
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.table_files import DAY
from distributary.pipeline.transforms.format_choices import Kinds
from distributary.pipeline.transforms.recipients import Recipients
from distributary.pipeline.workers import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from distributary.pipeline.broadcast import Broadcast

__all__ = ["deliveries", "deliveries_in"]

# What matching and choosing formats read of a publication.
_COLUMNS = ("source", "event_id", "time", "attributes", "numbers", "texts", "media_type", "bytes")
# A publication may match everybody: what it yields leaves in pieces of bounded size.
_ROWS_MAX = 65_536


def deliveries(publications: DataFrame, recipients: Broadcast[Recipients]) -> DataFrame:
    """Return the table `deliveries`: a row for every subscription that a publication matches.

    The matches are those of `filters.Index`. `broker` is the user's home, null without one.
    `media_type` is the format that the subscriber's profile chooses: the original without
    a profile, and null when nothing that the device can use can be made. Such a match stays:
    somebody has to be told that it is undeliverable. It is null for publications without
    content, too. `bytes` are those of the publication, in whatever format it goes out, and
    `day` is the publication's.
    """

    def matched(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        everybody = recipients.value
        for batch in batches:
            yield from deliveries_in(batch, everybody)

    return map_in_arrow(
        publications.select(*_COLUMNS), matched, table_schema("deliveries").stored_type
    )


def deliveries_in(batch: pa.RecordBatch, recipients: Recipients) -> Iterator[pa.RecordBatch]:
    """Yield the deliveries of a batch of publications."""
    kinds = recipients.formats.kinds(batch.column("media_type"), _numbers(batch.column("bytes")))
    for rows, numbers in recipients.index.match_numbers(batch):
        for begin in range(0, len(rows), _ROWS_MAX):
            part = slice(begin, begin + _ROWS_MAX)
            yield _delivered(batch, recipients, rows[part], numbers[part].astype(np.int64), kinds)


def _delivered(
    batch: pa.RecordBatch, recipients: Recipients, rows: IntArray, numbers: IntArray, kinds: Kinds
) -> pa.RecordBatch:
    import pyarrow as pa

    formats = recipients.formats.chosen(recipients.profiles[numbers], rows, kinds)
    of_batch, of_recipients = pa.array(rows), pa.array(numbers)
    days = batch.column("time").cast(pa.timestamp("us", "UTC")).cast(pa.date32())
    return pa.record_batch(
        {
            "source": batch.column("source").take(of_batch),
            "event_id": batch.column("event_id").take(of_batch),
            "subscription_id": recipients.subscription_ids.take(of_recipients),
            "user": recipients.users.take(of_recipients),
            "broker": recipients.brokers.take(of_recipients),
            "media_type": formats,
            "bytes": batch.column("bytes").take(of_batch),
            DAY: days.take(of_batch),
        }
    )


def _numbers(column: pa.Array) -> IntArray:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)
