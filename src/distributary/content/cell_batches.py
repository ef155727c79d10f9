"""The cells of a whole batch of publications, column by column.

Needs pyarrow, which is imported when a function is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.content._hash_kernels import text_buckets
from distributary.content.arrow_columns import numbers_of, text_column, validity
from distributary.content.dimensions import Dimension, NumberBins, TextValues
from distributary.errors import BadInput, quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from distributary.content.content_space import ContentSpace

__all__ = ["cells_of_batch"]


def cells_of_batch(space: ContentSpace, batch: pa.RecordBatch) -> IntArray:
    """Return the cell of every row; see `ContentSpace.cells_of_batch`."""
    cells = np.zeros(batch.num_rows, dtype=np.int64)
    for dimension, count in zip(space.dimensions, space.shape, strict=True):
        cells = cells * count + _bins(dimension, batch)
    return cells


def _bins(dimension: Dimension, batch: pa.RecordBatch) -> IntArray:
    in_data = dimension.name.startswith("/")
    if isinstance(dimension, NumberBins):
        if in_data:
            numbers = _doubles(_looked_up(batch, "numbers", dimension.name))
        else:
            numbers = numbers_of(_attribute_texts(batch, dimension.name))
        bins = np.searchsorted(np.array(dimension.edges), numbers, side="right") + 1
        return np.where(np.isnan(numbers), 0, bins)
    if in_data:
        texts = _looked_up(batch, "texts", dimension.name)
    else:
        texts = _attribute_texts(batch, dimension.name)
    if isinstance(dimension, TextValues):
        return _places(texts, dimension)
    return _buckets(texts, dimension.buckets)


def _looked_up(batch: pa.RecordBatch, column: str, key: str) -> pa.Array:
    """Return the entry at `key` of every map in a column; null where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    index = batch.schema.get_field_index(column)
    if index < 0 or not pa.types.is_map(batch.schema.field(index).type):
        raise BadInput(f"column {quoted(column)}", "must be there, as a map")
    maps = batch.column(index)
    return pc.map_lookup(maps, pa.scalar(key, maps.type.key_type), "first")


def _attribute_texts(batch: pa.RecordBatch, name: str) -> pa.Array:
    import pyarrow.compute as pc

    return pc.struct_field(_looked_up(batch, "attributes", name), "text")


def _doubles(numbers: pa.Array) -> FloatArray:
    # Null becomes NaN on the way.
    found: FloatArray = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    return found


def _buckets(texts: pa.Array, buckets: int) -> IntArray:
    column = text_column(texts)
    return text_buckets(column.data, column.offsets, column.valid, buckets)


def _places(texts: pa.Array, dimension: TextValues) -> IntArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_large_string(texts.type):
        texts = texts.cast(pa.string())
    known = pc.index_in(texts, value_set=pa.array(dimension.values, texts.type))
    bins = np.asarray(known.fill_null(dimension.others - 1), np.int64) + 1
    return np.where(validity(texts), bins, 0)
