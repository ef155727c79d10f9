"""Arrow's columns as NumPy arrays, without copies where that is possible.

Needs pyarrow, which is imported when a function is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distributary.arguments import check_type
from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.content.attributes import JSON_NUMBER

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Column", "check_table", "numbers_of", "text_column", "validity"]


class Column(NamedTuple):
    """A column of texts: text `i` is `data[offsets[i]:offsets[i + 1]]`, where `valid[i]`."""

    data: NDArray[np.uint8]
    offsets: IntArray
    valid: BoolArray


def check_table(argument: str, value: object) -> None:
    """Raise `WrongType` unless `value` is a table or a batch of one."""
    import pyarrow as pa

    check_type(argument, value, pa.Table, pa.RecordBatch, hint="pyarrow.table(...) makes one")


def text_column(array: pa.Array) -> Column:
    """Return a column of texts of any of Arrow's types for them."""
    import pyarrow as pa

    if not pa.types.is_large_string(array.type):
        array = array.cast(pa.string())
    _, offset_buffer, data_buffer = array.buffers()
    kind = np.int64 if pa.types.is_large_string(array.type) else np.int32
    if offset_buffer is None or len(array) == 0:
        offsets = np.zeros(len(array) + 1, np.int64)
    else:
        every = np.frombuffer(offset_buffer, kind)
        offsets = every[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.frombuffer(b"" if data_buffer is None else data_buffer, np.uint8)
    # Some of Arrow's buffers can be written to and some cannot, which to the compiler are
    # different types: without this, loops over them would be compiled twice.
    data.flags.writeable = False
    return Column(data, offsets, validity(array))


def validity(array: pa.Array) -> BoolArray:
    """Return which items of an array are not null."""
    if array.null_count == 0:
        return np.ones(len(array), bool)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)


def numbers_of(texts: pa.Array) -> FloatArray:
    """Return the numbers that texts write as JSON does; NaN for those that do not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    written = pc.match_substring_regex(texts, rf"\A(?:{JSON_NUMBER})\z")
    read = pc.cast(pc.if_else(written, texts, pa.scalar(None, texts.type)), pa.float64())
    numbers: FloatArray = read.to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(numbers), numbers, np.nan)
