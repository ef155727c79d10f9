"""Channels: the cells of the content space, what is published in each, and who wants it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from distributary.content.content_space import ContentSpace
from distributary.content.dimensions import Dimension, NumberBins, TextValues
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.table_files import DAY
from distributary.pipeline.transforms.cell_sets import cell_sets, united_cells
from distributary.pipeline.workers import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["channels", "interests", "looked_at", "rates_published", "seconds_spanned", "volumes"]

_SUMMED = ("user", DAY, "time")
# So many publications are added up together before Spark's shuffle sees them.
_PENDING_ROWS = 500_000
# What is left of publications once they are added up needs few tasks, and few files.
_PARTS = 16
_SECOND_US = 1_000_000


def channels(spark: SparkSession, space: ContentSpace) -> DataFrame:
    """Return the table `channels`: every cell of the space, and what lies in it.

    The bounds are a JSON array with an object for each dimension: its `name`, and either
    `"absent": true`, or the `bucket` out of `buckets`, or the one `value`, or
    `"others": true` for all texts without a cell of their own, or `min` (inclusive) and
    `max` (exclusive), of which an outermost bin has only one.
    """
    import pyarrow as pa

    parts = [
        [_bounds(dimension, number) for number in range(dimension.bin_count)]
        for dimension in space.dimensions
    ]
    bounds = [
        json.dumps(
            [part[number] for part, number in zip(parts, space.bins_of_cell(cell), strict=True)]
        )
        for cell in range(space.cell_count)
    ]
    cells = pa.array(np.arange(space.cell_count), pa.int64())
    made = pa.table({"cell": cells, "bounds": pa.array(bounds, pa.string())})
    return spark.createDataFrame(made, table_schema("channels").struct_type)


def volumes(publications: DataFrame, space: ContentSpace) -> DataFrame:
    """Return the table `volume_days`: what everybody published in each cell on each day.

    All in one pass over the publications, and in whole numbers, so that the result is the same
    however they are spread over tasks, and sums over days are what one day would be.

    Returns
    -------
        The columns `user` (the publisher, null for publications without one), `cell`,
        `bytes`, `publications`, `untimed` (how many of those do not say when they happened),
        `first` and `last` (the earliest and the latest time of the others), and `day`.
    """
    from pyspark.sql import functions as f

    def added_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        pending: list[pa.RecordBatch] = []
        for batch in batches:
            located = pa.array(space.cells_of_batch(batch), pa.int64())
            pending.append(batch.select([*_SUMMED, "bytes"]).append_column("cell", located))
            if sum(part.num_rows for part in pending) >= _PENDING_ROWS:
                yield from _sums(pending)
                pending = []
        if pending:
            yield from _sums(pending)

    # The session's time zone is UTC.
    day = f.to_date("time").alias(DAY)
    needed = publications.select(
        f.col("publisher").alias("user"), day, "time", "bytes", *looked_at(space)
    )
    return (
        map_in_arrow(needed, added_up, table_schema("volume_days").stored_type)
        .groupBy("user", "cell", DAY)
        .agg(
            *(f.sum(name).alias(name) for name in ("bytes", "publications", "untimed")),
            f.min("first").alias("first"),
            f.max("last").alias("last"),
        )
        .select(*table_schema("volume_days").column_names, DAY)
        .coalesce(_PARTS)
    )


def rates_published(found: DataFrame) -> DataFrame:
    """Return the table `rates_published` from what `volumes` found, added up over days.

    Bytes per second over the time from the first to the last publication of all. When that
    is no time at all, because there is one publication or none says when, one second is
    taken. Publications that do not say when they happened count like the others; those
    without a publisher are nobody's and are left out, which `volumes` lets everybody count.

    `found` is used twice, for the time and for the rates: it should be cached.
    """
    from pyspark.sql import functions as f

    span = found.agg(seconds_spanned(f.min("first"), f.max("last")).alias("seconds"))
    return (
        found.filter(f.col("user").isNotNull())
        .groupBy("user", "cell")
        .agg(f.sum("bytes").alias("bytes"))
        .crossJoin(f.broadcast(span))
        .select("user", "cell", (f.col("bytes") / f.col("seconds")).alias("bytes_per_second"))
    )


def seconds_spanned(first: Column, last: Column) -> Column:
    """Return the seconds from the first publication to the last: one if that is no time."""
    from pyspark.sql import functions as f

    micros = f.unix_micros(last) - f.unix_micros(first)
    taken = f.coalesce(f.nullif(micros, f.lit(0)), f.lit(_SECOND_US))
    return taken.cast("double") / float(_SECOND_US)


def interests(subscriptions: DataFrame, space: ContentSpace, *, tasks: int) -> DataFrame:
    """Return the table `interests`: the cells that the subscriptions of each user can touch.

    Those of `filters.cells`: all in which a match is possible, and perhaps more.

    The result does not depend on the number of `tasks`.
    """

    # Sets of cells travel as bits: a row for every user and cell would be what takes longest.
    def touched(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from cell_sets(batch, space)

    def united(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return united_cells(batches, space.cell_count)

    # Few bytes that take long: spread evenly, not as files happen to be cut.
    needed = subscriptions.select("subscription_id", "user", "filters")
    needed = needed.repartition(tasks, "subscription_id")
    sets = map_in_arrow(needed, touched, "user STRING NOT NULL, cells BINARY NOT NULL")
    by_user = sets.repartition(tasks, "user").sortWithinPartitions("user")
    return map_in_arrow(by_user, united, table_schema("interests").struct_type)


def _bounds(dimension: Dimension, number: int) -> dict[str, object]:
    if number == 0:
        return {"name": dimension.name, "absent": True}
    if isinstance(dimension, NumberBins):
        edges = dimension.edges
        low = {"min": edges[number - 2]} if number >= 2 else {}
        high = {"max": edges[number - 1]} if number <= len(edges) else {}
        return {"name": dimension.name, **low, **high}
    if isinstance(dimension, TextValues):
        if number == dimension.others:
            return {"name": dimension.name, "others": True}
        return {"name": dimension.name, "value": dimension.values[number - 1]}
    return {"name": dimension.name, "bucket": number - 1, "buckets": dimension.buckets}


def looked_at(space: ContentSpace) -> list[Column]:
    """Return the maps of a publication, with the entries that the space looks at alone.

    An entry that is null is as good as none. Whole maps would take most of the time on
    their way from Java to Python.
    """
    from pyspark.sql import functions as f

    names: dict[str, dict[str, None]] = {}
    for dimension in space.dimensions:
        pointer = dimension.name.startswith("/")
        numeric = isinstance(dimension, NumberBins)
        column = ("numbers" if numeric else "texts") if pointer else "attributes"
        names.setdefault(column, {})[dimension.name] = None
    return [
        f.create_map(
            *(part for name in found for part in (f.lit(name), f.col(column).getItem(name)))
        ).alias(column)
        for column, found in names.items()
    ]


def _sums(parts: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    wanted = [
        ("bytes", "sum"),
        ("bytes", "count"),
        ("time", "count"),
        ("time", "min"),
        ("time", "max"),
    ]
    grouped = pa.Table.from_batches(parts).group_by(["user", "cell", DAY], use_threads=False)
    found = grouped.aggregate(wanted).combine_chunks()
    untimed = pa.compute.subtract(found["bytes_count"], found["time_count"])
    sums = pa.table(
        {
            "user": found["user"],
            "cell": found["cell"],
            "bytes": found["bytes_sum"],
            "publications": found["bytes_count"],
            "untimed": untimed,
            "first": found["time_min"],
            "last": found["time_max"],
            DAY: found[DAY],
        }
    )
    yield from sums.to_batches(max_chunksize=65_536)
