"""Tables of subscriptions: filters as JSON, read without a Python object for each.

Needs pyarrow, which is imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.content.arrow_columns import Column
from distributary.filters import _scan_kernels as kernels
from distributary.filters._scan_kernels import Entries
from distributary.filters._text_kernels import gather
from distributary.filters.decision import ACCEPT, ENDS, REJECT, STEP
from distributary.filters.filter_parser import CONDITIONS_MAX
from distributary.filters.growth import read_only
from distributary.filters.text_table import TextTable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Scanned", "gathered_texts", "row_chunks", "scanned"]

_CHUNK_BYTES = 2**21
# The shortest entry of a map, `"k":{},` or `"k":"t",`, has so many bytes.
_ENTRY_BYTES_MIN = 6


class Scanned(NamedTuple):
    """The decisions of the plain rows of a chunk.

    `plain` says by row of the chunk whether its decision is among `steps` and `counts`: all of
    these steps are clauses.
    """

    plain: BoolArray
    steps: NDArray[np.void]
    counts: NDArray[np.int32]


def row_chunks(column: Column) -> Iterator[tuple[int, int]]:
    """Yield the first row and the end of chunks of some megabytes."""
    first, rows = 0, len(column.offsets) - 1
    while first < rows:
        limit = column.offsets[first] + _CHUNK_BYTES
        end = max(first + 1, int(np.searchsorted(column.offsets, limit, side="right")) - 1)
        yield first, min(end, rows)
        first = min(end, rows)


def scanned(column: Column, first: int, end: int, keys: TextTable, texts: TextTable) -> Scanned:
    """Return the decisions of the rows of a column of JSON that are plain."""
    offsets = column.offsets[first : end + 1]
    room = int(offsets[-1] - offsets[0]) // _ENTRY_BYTES_MIN + 1
    entries = Entries(
        np.empty(room, np.uint8),
        np.empty((room, 2), np.int64),
        np.empty((room, 2), np.int64),
        np.empty((room, 2), np.int64),
        np.empty((room, 2), np.int64),
        np.empty(room, np.uint8),
    )
    counts = np.empty(end - first, np.int32)
    plain = np.empty(end - first, bool)
    count = kernels.scan(column.data, offsets, entries, counts, plain, CONDITIONS_MAX)
    entries = _taken(entries, slice(count))
    steps = np.zeros(count, STEP)
    steps["low"], steps["high"] = _intervals(column.data, entries)
    # Bounds beyond a double are faults that Python describes, and with bounds that leave
    # nothing it is for Python to see that the filter never matches.
    sound = np.isfinite(np.where(entries.lows[:, 1] >= 0, steps["low"], 0.0))
    sound &= np.isfinite(np.where(entries.highs[:, 1] >= 0, steps["high"], 0.0))
    sound &= steps["low"] <= steps["high"]
    row_of = np.repeat(np.arange(end - first), counts)
    plain[row_of[~sound]] = False
    kept = plain[row_of]
    entries = _taken(entries, kept)
    steps, counts = steps[kept], counts[plain]
    steps["op"] = entries.ops
    steps["key"] = keys.add_spans(column.data, entries.keys[:, 0], entries.keys[:, 1])
    steps["text"] = texts.add_spans(
        column.data,
        entries.texts[:, 0],
        entries.texts[:, 1],
        (entries.ops == ENDS).astype(np.uint8),
    )
    steps["on_false"] = REJECT
    ends = np.cumsum(counts)
    steps["on_true"] = np.arange(1, len(steps) + 1) - np.repeat(ends - counts, counts)
    steps["on_true"][ends[counts > 0] - 1] = ACCEPT
    return Scanned(plain, steps, counts)


def _taken(entries: Entries, which: slice | BoolArray) -> Entries:
    return Entries(
        entries.ops[which],
        entries.keys[which],
        entries.texts[which],
        entries.lows[which],
        entries.highs[which],
        entries.exclusive[which],
    )


def _intervals(data: NDArray[np.uint8], entries: Entries) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of entries as closed intervals."""
    lows = _numbers(data, entries.lows, -np.inf)
    highs = _numbers(data, entries.highs, np.inf)
    opened = entries.exclusive
    with np.errstate(over="ignore"):  # Beyond the largest double, nothing is left.
        lows = np.where(opened & 1, np.nextafter(lows, np.inf), lows) + 0.0
        highs = np.where(opened & 2, np.nextafter(highs, -np.inf), highs) + 0.0
    return lows, highs


def _numbers(data: NDArray[np.uint8], spans: IntArray, missing: float) -> FloatArray:
    """Return the numbers that are written at some places."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = np.full(len(spans), missing)
    written = np.flatnonzero(spans[:, 1] >= 0)
    texts = gathered_texts(data, spans[written, 0], spans[written, 1])
    numbers[written] = pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def gathered_texts(data: NDArray[np.uint8], begins: IntArray, lengths: IntArray) -> pa.Array:
    """Return the texts at some places of `data` as an Arrow array."""
    import pyarrow as pa

    offsets = np.empty(len(begins) + 1, np.int64)
    gathered = np.empty(int(lengths.sum()), np.uint8)
    gather(read_only(data), begins, lengths, offsets, gathered)
    return pa.StringArray.from_buffers(
        len(begins), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(gathered)
    )
