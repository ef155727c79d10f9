"""Files in, rows out: those that belong into a table, and those that are kept apart.

The same functions serve batches and streams. A stream lists files with Spark's `binaryFile`
and selects `path` and `length` alone, so that Spark does not read them; executors do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from distributary.pipeline.schemas import TableSchema, table_schema
from distributary.pipeline.sources.files import plain_path
from distributary.pipeline.sources.reading import split_rows
from distributary.pipeline.sources.source_rows import ORIGIN, layout_of
from distributary.pipeline.sources.splits import Split
from distributary.pipeline.table_files import DAY
from distributary.pipeline.workers import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["ingested", "kept", "quarantined"]


def ingested(
    files: DataFrame,
    target: TableSchema,
    *,
    origins: bool = False,
    refuse_files: bool = True,
    publisher: str | None = None,
) -> DataFrame:
    """Return every row of some files, good and bad.

    Besides the table's columns a row has `file`, `line`, `raw` and `reason`. The reason says
    why it does not belong into the table, and is null when it does.

    `files` has `path` and `length` of whole files, or parts of files as `splits.split_frame`
    makes them. Good rows have `file`, `line` and `raw` only with `origins`. A file that is
    not what its name says, or lacks a column, fails the job or, unless `refuse_files`, is one
    row with a reason: a stream must get past it. `publisher` is the attribute of events that
    names their publisher; see `source_rows.Layout`.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructField, StructType

    if "start" not in files.columns:
        files = files.select(
            "path", f.lit(0).alias("start"), f.col("length").alias("end"), f.lit(1).alias("line")
        )
    layout = layout_of(target, publisher=publisher)
    fields = [StructField(field.name, field.dataType) for field in target.struct_type.fields]
    origin = {field.name: field for field in table_schema("quarantine").struct_type.fields}
    fields += [StructField(name, origin[name].dataType) for name in ORIGIN]

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                path, start, end, first_line = row.values()
                split = Split(plain_path(path), start, end, first_line)
                yield from split_rows(split, layout, origins=origins, refuse_files=refuse_files)

    return map_in_arrow(files, read, StructType(fields))


def kept(rows: DataFrame, target: TableSchema) -> DataFrame:
    """Return the rows of `ingested` that belong into the table."""
    from pyspark.sql import functions as f

    return rows.filter(f.col("reason").isNull()).select(*target.column_names)


def quarantined(rows: DataFrame, target: TableSchema) -> DataFrame:
    """Return the rows that do not belong into the table, as rows of `quarantine`.

    Each has its own day, if that can be read.
    """
    from pyspark.sql import functions as f

    # The session's time zone is UTC.
    day = f.to_date(target.time) if target.time else f.lit(None).cast("date")
    found = rows.select(
        f.lit(target.name).alias("table"), "file", "line", "raw", "reason", day.alias(DAY)
    )
    return found.filter(f.col("reason").isNotNull())
