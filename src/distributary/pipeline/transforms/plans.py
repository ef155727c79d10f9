"""One placement plan per publication: where its conversions should run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from distributary.content.content_space import ContentSpace
from distributary.pipeline.schemas import table_schema
from distributary.pipeline.transforms.channels import looked_at
from distributary.pipeline.transforms.publication_plans import KEY, PublicationPlanner, group_starts
from distributary.pipeline.workers import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from distributary.pipeline.broadcast import Broadcast

__all__ = ["plans", "whole_publications"]

_ROWS = (
    "day DATE, source STRING NOT NULL, event_id STRING NOT NULL, media_type STRING, bytes BIGINT, "
    "cell BIGINT, broker STRING"
)


def plans(
    publications: DataFrame,
    deliveries: DataFrame,
    planner: Broadcast[PublicationPlanner],
    *,
    space: ContentSpace,
    tasks: int,
) -> DataFrame:
    """Return the table `plans`: a row for every publication that somebody gets.

    Both tables come with their days, and so does the result. A publication that
    cannot be planned has a row that says why.

    The rows do not depend on the number of `tasks`.
    """
    from pyspark.sql import functions as f

    # A publication and those who get it come together in one shuffle of both tables, in
    # place of a join and a grouping, and planning walks over them in one pass.
    of_publications = _located(publications, space)
    of_deliveries = deliveries.select(
        *KEY,
        "media_type",
        f.lit(None).cast("bigint").alias("bytes"),
        f.lit(None).cast("bigint").alias("cell"),
        "broker",
    )
    # A number of tasks that is given stays: planning takes long for few bytes, and Spark
    # would make one task of it.
    rows = (
        of_publications.unionByName(of_deliveries)
        .repartition(tasks, *KEY)
        .sortWithinPartitions(*KEY, f.col("cell").asc_nulls_last())
    )

    def planned(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = planner.value.plans
        for batch in whole_publications(batches):
            yield plan(batch)

    return map_in_arrow(rows, planned, table_schema("plans").stored_type)


def whole_publications(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches that no publication spans two of.

    Rows of one publication stand together. Those of the last one wait for the next batch.
    """
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows == 0:
            continue
        begins = group_starts(batch)
        if waiting and _key(waiting[-1], -1) == _key(batch, 0):
            begins = begins[1:]
        if len(begins) == 0:
            waiting.append(batch)
            continue
        last = int(begins[-1])
        finished = pa.concat_batches([*waiting, batch.slice(0, last)])
        if finished.num_rows:
            yield finished
        waiting = [batch.slice(last)]
    if waiting:
        yield pa.concat_batches(waiting)


def _key(batch: pa.RecordBatch, row: int) -> tuple[object, ...]:
    return tuple(batch.column(name)[row].as_py() for name in KEY)


def _located(publications: DataFrame, space: ContentSpace) -> DataFrame:
    """Return what planning needs of publications: format, size and cell."""

    def located(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            yield pa.record_batch(
                {
                    **{name: batch.column(name) for name in (*KEY, "media_type", "bytes")},
                    "cell": pa.array(space.cells_of_batch(batch), pa.int64()),
                    "broker": pa.nulls(batch.num_rows, pa.string()),
                }
            )

    needed = publications.select(*KEY, "media_type", "bytes", *looked_at(space))
    return map_in_arrow(needed, located, _ROWS)
