"""Sets of cells as bits, of subscriptions and of users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import IntArray
from distributary.content.content_space import ContentSpace
from distributary.filters.cells import CellLists, cells_batch

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["cell_sets", "united_cells"]

# A user may want every cell: rows of users and cells leave in pieces of about this size.
_PAIRS_MAX = 262_144


def cell_sets(subscriptions: pa.RecordBatch, space: ContentSpace) -> Iterator[pa.RecordBatch]:
    """Yield the cells that subscriptions can touch.

    Parameters
    ----------
    subscriptions
        With the columns `subscription_id`, `user` and `filters`.
    space
        The content space.

    Yields
    ------
        The columns `user` and `cells`, a bit for each cell of the space; each set of cells
        once for each user.
    """
    import pyarrow as pa

    lists = cells_batch(subscriptions, space)
    count = max(1, len(lists.offsets) - 1)
    users = subscriptions.column("user").dictionary_encode()
    pairs = np.unique(np.asarray(users.indices, np.int64) * count + lists.list_of_row)
    rows = max(1, _PAIRS_MAX // space.cell_count)
    for begin in range(0, len(pairs), rows):
        part = pairs[begin : begin + rows]
        yield pa.record_batch(
            {
                "user": users.dictionary.take(pa.array(part // count)),
                "cells": _binary(_bits(lists, part % count, space.cell_count)),
            }
        )


def united_cells(sets: Iterable[pa.RecordBatch], cell_count: int) -> Iterator[pa.RecordBatch]:
    """Yield the columns `user` and `cell`: all cells of each user once.

    Parameters
    ----------
    sets
        What `cell_sets` yields, the rows of a user next to each other.
    cell_count
        How many cells there are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    # The last user of a batch may have more rows in the next one.
    user: pa.Scalar | None = None
    bits = np.zeros((1, -(-cell_count // 8)), np.uint8)
    for batch in sets:
        if not batch.num_rows:
            continue
        users = batch.column("user")
        rows = _matrix(batch.column("cells"), bits.shape[1])
        if user is not None:
            users = pa.concat_arrays([pa.array([user.as_py()], users.type), users])
            rows = np.concatenate([bits, rows])
        runs = pc.run_end_encode(users)
        ends = np.asarray(runs.run_ends, np.int64)
        united = np.bitwise_or.reduceat(rows, np.concatenate([[0], ends[:-1]]), axis=0)
        yield from _pairs(runs.values[:-1], united[:-1], cell_count)
        user, bits = runs.values[-1], united[-1:]
    if user is not None:
        yield from _pairs(pa.array([user.as_py()], pa.string()), bits, cell_count)


def _pairs(users: pa.Array, bits: NDArray[np.uint8], cell_count: int) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    rows = max(1, _PAIRS_MAX // cell_count)
    for begin in range(0, len(users), rows):
        who, cells = np.nonzero(np.unpackbits(bits[begin : begin + rows], axis=1))
        yield pa.record_batch(
            {
                "user": users[begin : begin + rows].take(pa.array(who)),
                "cell": pa.array(cells, pa.int64()),
            }
        )


def _bits(lists: CellLists, which: IntArray, cell_count: int) -> NDArray[np.uint8]:
    """Return some of the lists as bits, a row each."""
    lengths = lists.offsets[which + 1] - lists.offsets[which]
    ends = np.cumsum(lengths)
    places = np.arange(int(lengths.sum())) + np.repeat(
        lists.offsets[which] - (ends - lengths), lengths
    )
    mask = np.zeros((len(which), cell_count), bool)
    mask[np.repeat(np.arange(len(which)), lengths), lists.cells[places]] = True
    return np.packbits(mask, axis=1)


def _binary(bits: NDArray[np.uint8]) -> pa.Array:
    import pyarrow as pa

    offsets = np.arange(len(bits) + 1, dtype=np.int32) * np.int32(bits.shape[1])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(bits))]
    return pa.Array.from_buffers(pa.binary(), len(bits), buffers)


def _matrix(column: pa.Array, width: int) -> NDArray[np.uint8]:
    import pyarrow as pa

    fixed = column.cast(pa.binary(width))
    data = np.frombuffer(fixed.buffers()[1], np.uint8)
    return data[fixed.offset * width : (fixed.offset + len(fixed)) * width].reshape(-1, width)
