"""Sharing files out: parts that are read by themselves, and who reads which.

A file of lines is cut every 32 MiB, wherever that is; one that is packed is read as a whole,
and Parquet by its groups of rows. Parts go into tasks of about 32 MiB, small files together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from distributary.errors import quoted
from distributary.pipeline.sources.csv_lines import read_header
from distributary.pipeline.sources.files import CSV, PARQUET, SourceFile, format_of, open_file
from distributary.pipeline.sources.lines import lines_begun
from distributary.pipeline.sources.parquet_files import row_groups
from distributary.pipeline.sources.source_rows import Layout
from distributary.pipeline.workers import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SPLIT_BYTES", "Split", "SplitPlan", "counted_splits", "planned_splits", "split_frame"]

SPLIT_BYTES = 32 * 2**20

_COLUMNS = "path STRING, start BIGINT, end BIGINT, first_line BIGINT"


class Split(NamedTuple):
    """A part of a file.

    Bytes of a file of lines, groups of rows of a Parquet file; a packed file has one part.
    `first_line` is the number of the first line that begins in it, or of its first row. In
    plans that are not counted, all parts of a file of lines begin with line 1.
    """

    path: str
    start: int
    end: int
    first_line: int


@dataclass(frozen=True)
class SplitPlan:
    """How files are shared out.

    Parts are in the order of their files, each with the task that reads it. Warnings are
    about what was found in the files that is not read.
    """

    splits: tuple[Split, ...]
    tasks: tuple[int, ...]
    warnings: tuple[str, ...] = ()


def planned_splits(
    files: Sequence[SourceFile], layout: Layout, *, split_bytes: int = SPLIT_BYTES
) -> SplitPlan:
    """Share files out, and look whether they have the table's columns.

    Raises `BadInput` when a file lacks a column, has one of another type, or is not what its
    name says.
    """
    splits: list[Split] = []
    tasks: list[int] = []
    warnings: list[str] = []
    task, filled = 0, 0
    for file in files:
        parts, extra = _parts(file, layout, split_bytes)
        if extra:
            warnings.append(
                f"{file.path}: {', '.join(map(quoted, extra))} "
                f"{'is no column' if len(extra) == 1 else 'are no columns'} of {layout.table}, "
                "and not read"
            )
        for split, size in parts:
            if filled and filled + size > split_bytes:
                task, filled = task + 1, 0
            splits.append(split)
            tasks.append(task)
            filled += size
    return SplitPlan(tuple(splits), tuple(tasks), tuple(warnings))


def split_frame(spark: SparkSession, plan: SplitPlan) -> DataFrame:
    """Return the parts as rows, each in the partition of its task."""
    frame = spark.createDataFrame(
        [(*split, task) for split, task in zip(plan.splits, plan.tasks, strict=True)],
        f"{_COLUMNS}, task INT",
    )
    count = max(plan.tasks, default=0) + 1
    return frame.repartitionById(count, "task").select("path", "start", "end", "first_line")


def counted_splits(spark: SparkSession, plan: SplitPlan) -> SplitPlan:
    """Return the plan with the true number of the first line of every part.

    Only files that are cut are read for it, and only for their line breaks.
    """
    cut = {split.path for split in plan.splits if split.start > 0}
    cut = {path for path in cut if format_of(path).kind != PARQUET}
    if not cut:
        return plan
    chosen = [index for index, split in enumerate(plan.splits) if split.path in cut]
    parts = SplitPlan(
        tuple(plan.splits[index] for index in chosen), tuple(plan.tasks[index] for index in chosen)
    )
    counts = map_in_arrow(
        split_frame(spark, parts), _count, "path STRING, start BIGINT, lines BIGINT"
    )
    begun = {(row.path, row.start): row.lines for row in counts.collect()}
    lines: dict[str, int] = {}
    splits = list(plan.splits)
    for index in chosen:
        split = splits[index]
        first = lines.get(split.path, 1)
        splits[index] = split._replace(first_line=first)
        lines[split.path] = first + begun[split.path, split.start]
    return replace(plan, splits=tuple(splits))


def _count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        for row in batch.to_pylist():
            with open_file(row["path"]) as file:
                lines = lines_begun(file, row["start"], row["end"])
            yield pa.record_batch(
                {"path": [row["path"]], "start": [row["start"]], "lines": [lines]}
            )


def _parts(
    file: SourceFile, layout: Layout, split_bytes: int
) -> tuple[list[tuple[Split, int]], list[str]]:
    """Return the parts of a file with their sizes, and its columns that mean nothing."""
    path, length = file
    kind, compression = format_of(path)
    extra: list[str] = []
    if kind == PARQUET:
        rows, extra = row_groups(path, layout)
        firsts = [1 + sum(rows[:index]) for index in range(len(rows))]
        size = length // max(len(rows), 1)
        return [
            (Split(path, index, index + 1, first), size) for index, first in enumerate(firsts)
        ], extra
    if kind == CSV and (header := read_header(path, compression)) is not None:
        extra = header.check(path, layout)
    if compression is not None:
        return [(Split(path, 0, length, 1), length)], extra
    starts = range(0, length, split_bytes)
    ends = [min(start + split_bytes, length) for start in starts]
    return [
        (Split(path, start, end, 1), end - start) for start, end in zip(starts, ends, strict=True)
    ], extra
