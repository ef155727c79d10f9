"""Columns of maps, put together from columns of their entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["map_column"]


def map_column(
    keys: Sequence[str],
    present: BoolArray,
    values: FloatArray | Sequence[str | pa.Array | tuple[pa.Array, IntArray]],
    *,
    kinds: Sequence[str] | None = None,
) -> pa.Array:
    """Return a column of maps that have some of the same keys, in their order.

    Parameters
    ----------
    keys
        All keys.
    present
        Which of them each row has, shape (rows, keys).
    values
        Numbers, shape (rows, keys); or for each key a text that all rows have, a column of
        texts, or a list of texts and which of them each row has.
    kinds
        With them, entries are structs of the key's kind and the value.
    """
    import pyarrow as pa

    row_count, key_count = present.shape
    offsets = np.zeros(row_count + 1, np.int32)
    np.cumsum(present.sum(axis=1), out=offsets[1:])
    which = np.broadcast_to(np.arange(key_count), present.shape)[present]
    items: Any
    if isinstance(values, np.ndarray):
        items = pa.array(values[present])
    else:
        places = np.empty(present.shape, dtype=np.int64)
        pool: list[pa.Array] = []
        begin = 0
        for column, value in enumerate(values):
            if isinstance(value, str):
                texts, at = pa.array([value]), np.zeros(1, dtype=np.int64)
            elif isinstance(value, tuple):
                texts, at = value
            else:
                texts, at = value, np.arange(row_count)
            places[:, column] = begin + at
            pool.append(texts)
            begin += len(texts)
        items = pa.concat_arrays(pool).take(pa.array(places[present]))
    chosen = pa.array(which)
    if kinds is not None:
        items = pa.StructArray.from_arrays(
            [pa.array(kinds).take(chosen), items], names=["type", "text"]
        )
    return pa.MapArray.from_arrays(pa.array(offsets), pa.array(keys).take(chosen), items)
