"""Parquet files: rows by group, in whatever types are near enough to the table's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import BoolArray, IntArray
from distributary.errors import BadInput, quoted
from distributary.pipeline.sources.files import open_file
from distributary.pipeline.sources.source_rows import Faults, Layout, SourceRows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

__all__ = ["check_parquet", "parquet_rows", "row_groups"]

_BATCH_ROWS = 32_768


def row_groups(path: str, layout: Layout) -> tuple[list[int], list[str]]:
    """Return the rows of each group of a file, and the columns that the table does not have.

    Raises `BadInput` when it is not Parquet, or half of one, or a column is missing or of
    another type.
    """
    with open_file(path) as file, _opened(path, file) as rows:
        check_parquet(path, rows, layout)
        groups = rows.metadata
        counts = [groups.row_group(index).num_rows for index in range(groups.num_row_groups)]
        return counts, [name for name in rows.schema_arrow.names if name not in layout.schema.names]


def check_parquet(path: str, rows: parquet.ParquetFile, layout: Layout) -> None:
    """Raise `BadInput` about the first column that is missing or of a type that does not fit."""
    found = rows.schema_arrow
    for field in layout.schema:
        if found.names.count(field.name) != 1:
            raise BadInput(
                path,
                f"column {quoted(field.name)} is missing",
                hint=f"{layout.table} has the columns {', '.join(layout.schema.names)}",
            )
        kind = found.field(field.name).type
        if not _fits(kind, field.type) and not _is_int96(rows, field.name):
            raise BadInput(
                path, f"column {quoted(field.name)} is {kind}, and must be {_shown(field.type)}"
            )


def parquet_rows(
    path: str, start: int, end: int, first: int, layout: Layout
) -> Iterator[SourceRows]:
    """Yield the rows of some groups of a file.

    From group `start` up to `end`, or to the last one. `first` is the number of the first
    row.
    """
    with open_file(path) as file, _opened(path, file) as rows:
        check_parquet(path, rows, layout)
        groups = range(start, min(end, rows.metadata.num_row_groups))
        for batch in rows.iter_batches(
            batch_size=_BATCH_ROWS, row_groups=list(groups), columns=layout.schema.names
        ):
            numbers = first + np.arange(batch.num_rows, dtype=np.int64)
            first += batch.num_rows
            yield _source_rows(batch, numbers, layout)


def _source_rows(batch: pa.RecordBatch, numbers: IntArray, layout: Layout) -> SourceRows:
    import pyarrow as pa

    faults = Faults(batch.num_rows)
    columns = []
    for field in layout.schema:
        column = batch.column(field.name)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not _is_sound(column):
            # One column of one batch is looked at row by row, as the file is damaged.
            wrong = np.array([not _is_sound(column.slice(row, 1)) for row in range(len(column))])
            faults.mark(wrong, f"{field.name}: is not UTF-8 text")
            column = _without(column, wrong)
        columns.append(_cast(field.name, column, field.type, faults))
    return SourceRows(
        pa.record_batch(columns, schema=layout.schema),
        numbers,
        lambda rows: _raws(batch.take(pa.array(rows))),
        faults,
    )


def _cast(name: str, column: pa.Array, kind: pa.DataType, faults: Faults) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(kind):
        if column.type.tz is None:
            column = pc.assume_timezone(column, "UTC")
        if column.type.unit == "ns":
            column = pc.floor_temporal(column, unit="microsecond")
        if column.type.unit in ("s", "ms"):
            scale = 10**6 if column.type.unit == "s" else 1000
            limit = (2**63 - 1) // scale
            moments = column.cast(pa.int64())
            wrong = pc.fill_null(
                pc.or_(pc.greater(moments, limit), pc.less(moments, -limit)), False
            ).to_numpy(zero_copy_only=False)
            faults.mark(wrong, f"{name}: is not a time that exists")
            column = _without(column, wrong)
        return column.cast(kind, safe=False)
    if pa.types.is_integer(kind) and column.type != kind:
        bound = 2 ** (kind.bit_width - 1)
        wide = pc.and_(
            pc.less_equal(column, pa.scalar(bound - 1)), pc.greater_equal(column, pa.scalar(-bound))
        )
        wrong = ~np.array(pc.fill_null(wide, True).to_numpy(zero_copy_only=False))
        faults.mark(wrong, f"{name}: is not a whole number, or too large a one")
        column = _without(column, wrong)
    return column.cast(kind, safe=False)


def _opened(path: str, file: pa.NativeFile) -> parquet.ParquetFile:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(file, coerce_int96_timestamp_unit="us")
    except (pa.ArrowInvalid, OSError):
        raise BadInput(path, "is not a Parquet file, or only half of one") from None


def _fits(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type can be taken as they are, or lose nothing but finer digits."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_timestamp(wanted):
        # Times without an offset could be anybody's.
        return bool(types.is_timestamp(kind) and kind.tz is not None)
    if types.is_string(wanted):
        return bool(types.is_string(kind) or types.is_large_string(kind))
    if types.is_floating(wanted):
        return bool(types.is_floating(kind) or types.is_integer(kind))
    if types.is_integer(wanted):
        return bool(types.is_signed_integer(kind))
    if types.is_list(wanted):
        is_list = types.is_list(kind) or types.is_large_list(kind)
        return bool(is_list and _fits(kind.value_type, wanted.value_type))
    if types.is_struct(wanted):
        return bool(types.is_struct(kind)) and [field.name for field in kind] == [
            field.name for field in wanted
        ]
    return bool(types.is_map(kind)) and all(
        _fits(*pair)
        for pair in ((kind.key_type, wanted.key_type), (kind.item_type, wanted.item_type))
    )


def _is_int96(rows: parquet.ParquetFile, name: str) -> bool:
    """Whether a column has times in the old form of Spark and Hive, which are UTC."""
    index = rows.schema.names.index(name) if name in rows.schema.names else -1
    return index >= 0 and rows.schema.column(index).physical_type == "INT96"


def _shown(kind: pa.DataType) -> str:
    import pyarrow as pa

    return "a timestamp with a time zone" if pa.types.is_timestamp(kind) else str(kind)


def _is_sound(column: pa.Array) -> bool:
    import pyarrow as pa

    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _without(column: pa.Array, rows: BoolArray) -> pa.Array:
    import pyarrow as pa

    places = np.arange(len(column))
    return column.take(pa.array(places, mask=rows))


def _raws(batch: pa.RecordBatch) -> pa.StringArray:
    import pyarrow as pa

    def text(row: object) -> str:
        return json.dumps(row, default=str, ensure_ascii=False)

    try:
        rows = batch.to_pylist()
    except UnicodeDecodeError:
        return pa.nulls(batch.num_rows, pa.string())
    return pa.array([text(row) for row in rows], pa.string())
