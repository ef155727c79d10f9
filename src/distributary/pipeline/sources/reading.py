"""Reading a part of a file of any form, as rows of a table and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from distributary.errors import BadInput
from distributary.pipeline.sources.checks import check_rows
from distributary.pipeline.sources.csv_lines import csv_rows, read_header
from distributary.pipeline.sources.files import CSV, PARQUET, FileFormat, format_of, open_bytes
from distributary.pipeline.sources.json_lines import event_rows, json_rows
from distributary.pipeline.sources.lines import Readable, line_blocks, readable
from distributary.pipeline.sources.parquet_files import parquet_rows
from distributary.pipeline.sources.source_rows import (
    Layout,
    SourceRows,
    refused_file,
    refused_rows,
    with_origin,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from distributary.pipeline.sources.splits import Split

__all__ = ["split_rows"]


def split_rows(
    split: Split, layout: Layout, *, origins: bool, refuse_files: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part of a file: the table's columns, then those of `source_rows.ORIGIN`.

    A file that cannot be read raises `BadInput` or, unless `refuse_files`, is one row with a
    reason, after those that could be read.
    """
    try:
        for rows in _source_rows(split, layout):
            check_rows(rows.columns, layout, rows.faults)
            yield with_origin(rows, split.path, origins=origins)
    except BadInput as error:
        if refuse_files:
            raise
        yield refused_file(layout, split.path, str(error))


def _source_rows(split: Split, layout: Layout) -> Iterator[SourceRows]:
    form = format_of(split.path)
    if form.kind == PARQUET:
        yield from parquet_rows(split.path, split.start, split.end, split.first_line, layout)
        return
    parse = _line_parser(split.path, form, layout)
    if parse is None:
        return
    end = split.end if form.compression is None else None
    with open_bytes(split.path, form.compression) as file:
        for lines in line_blocks(file, start=split.start, end=end, first_line=split.first_line):
            found = readable(lines)
            if form.kind == CSV and split.start == 0 and lines.first == split.first_line:
                found = _without_header(found, lines.first)
            if found.refused:
                yield refused_rows(layout, found.refused, found.refused_numbers, found.reasons)
            if len(found.texts):
                yield parse(found)


def _line_parser(
    path: str, form: FileFormat, layout: Layout
) -> Callable[[Readable], SourceRows] | None:
    """Return what makes rows of lines; None when there are none to be had."""
    if form.kind != CSV:
        read = event_rows if layout.table == "publications" else json_rows
        return lambda lines: read(lines, layout)
    header = read_header(path, form.compression)
    if header is None:
        return None
    header.check(path, layout)
    return lambda lines: csv_rows(lines, header, layout)


def _without_header(lines: Readable, first: int) -> Readable:
    """Return lines without the first of the file, which is there unless it is blank."""
    begin = 1 if len(lines.numbers) and lines.numbers[0] == first else 0
    return lines._replace(texts=lines.texts[begin:], numbers=lines.numbers[begin:])
