"""A reader for the plain shape of filters in JSON, compiled.

Most subscriptions are lists of `exact`, `prefix`, `suffix` and `range` filters without
anything special in their texts. Those are read here, straight from an Arrow buffer. Whatever
is unusual (another dialect, an escape, a key given twice, a fault) makes the row one for the
reader in Python, which knows all of the language and what to say about faults.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import BoolArray, IntArray
from distributary.filters._token_kernels import NOT_PLAIN, expect, number, same, skip, string
from distributary.filters.decision import ENDS, EQUALS, STARTS, WITHIN
from distributary.kernels import inner_kernel, kernel

__all__ = ["Entries", "scan"]

_ENTRIES_MAX = 64
_FILTERS_MAX = 128
_KEY_BYTES_MAX = 512
_TEXT_BYTES_MAX = 4096

_COMMA, _COLON, _SLASH, _TILDE = np.frombuffer(b",:/~", np.uint8)
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = np.frombuffer(b"{}[]", np.uint8)


class Entries(NamedTuple):
    """The entries of dialects' maps, one after the other over all rows.

    Attributes
    ----------
    ops
        The operation of the step it becomes.
    keys
        Where its key begins, and the length of that.
    texts
        The same for its text.
    lows, highs
        The same for its bounds as they are written; length -1 where there is none.
    exclusive
        1 when the lower bound is exclusive, 2 when the upper is, 3 when both are.
    """

    ops: NDArray[np.uint8]
    keys: IntArray
    texts: IntArray
    lows: IntArray
    highs: IntArray
    exclusive: NDArray[np.uint8]


@inner_kernel
def _dialect(data: NDArray[np.uint8], begin: int, length: int) -> int:
    """Return the operation that a dialect of texts or `range` stands for, or NOT_PLAIN."""
    if same(data, begin, length, b"range"):
        return WITHIN
    if same(data, begin, length, b"exact"):
        return EQUALS
    if same(data, begin, length, b"prefix"):
        return STARTS
    if same(data, begin, length, b"suffix"):
        return ENDS
    return NOT_PLAIN


@inner_kernel
def _plain_key(data: NDArray[np.uint8], begin: int, length: int) -> bool:
    if length == 0 or length > _KEY_BYTES_MAX:
        return False
    if data[begin] == _SLASH:
        for i in range(begin, begin + length):
            if data[i] == _TILDE:
                return False
    return True


@kernel
def _bounds(data: NDArray[np.uint8], at: int, end: int, entries: Entries, count: int) -> int:
    """Read the object of bounds at `at`; return the place after it, or NOT_PLAIN."""
    entries.lows[count, 1] = -1
    entries.highs[count, 1] = -1
    entries.exclusive[count] = 0
    at = expect(data, at, end, _OPEN)
    if at < 0:
        return at
    if at < end and data[at] == _CLOSE:
        return at + 1
    while True:
        close = string(data, at, end)
        if close < 0:
            return close
        begin = at + 1
        length = close - begin
        low = same(data, begin, length, b"min")
        low_open = same(data, begin, length, b"min_exclusive")
        high = same(data, begin, length, b"max")
        high_open = same(data, begin, length, b"max_exclusive")
        at = expect(data, close + 1, end, _COLON)
        if at < 0:
            return at
        after = number(data, at, end)
        if after < 0:
            return after
        if low or low_open:
            if entries.lows[count, 1] >= 0:
                return NOT_PLAIN
            entries.lows[count, 0] = at
            entries.lows[count, 1] = after - at
            if low_open:
                entries.exclusive[count] |= 1
        elif high or high_open:
            if entries.highs[count, 1] >= 0:
                return NOT_PLAIN
            entries.highs[count, 0] = at
            entries.highs[count, 1] = after - at
            if high_open:
                entries.exclusive[count] |= 2
        else:
            return NOT_PLAIN
        at = skip(data, after, end)
        if at < end and data[at] == _COMMA:
            at = skip(data, at + 1, end)
            continue
        if at < end and data[at] == _CLOSE:
            return at + 1
        return NOT_PLAIN


@inner_kernel
def _map(
    data: NDArray[np.uint8], at: int, end: int, op: int, entries: Entries, count: int
) -> tuple[int, int]:
    """Read the map of a dialect; return the place after it, or NOT_PLAIN, and the new count."""
    first = count
    at = expect(data, at, end, _OPEN)
    while at >= 0:
        close = string(data, at, end)
        if close < 0 or count - first == _ENTRIES_MAX:
            return NOT_PLAIN, count
        begin = at + 1
        length = close - begin
        if not _plain_key(data, begin, length):
            return NOT_PLAIN, count
        for other in range(first, count):
            if entries.keys[other, 1] == length:
                same = True
                for i in range(length):
                    if data[entries.keys[other, 0] + i] != data[begin + i]:
                        same = False
                        break
                if same:
                    return NOT_PLAIN, count
        entries.keys[count, 0] = begin
        entries.keys[count, 1] = length
        entries.ops[count] = op
        entries.texts[count, 1] = -1
        entries.lows[count, 1] = -1
        entries.highs[count, 1] = -1
        entries.exclusive[count] = 0
        at = expect(data, close + 1, end, _COLON)
        if at < 0:
            return at, count
        if op == WITHIN:
            at = _bounds(data, at, end, entries, count)
            if at < 0:
                return at, count
        else:
            close = string(data, at, end)
            if close < 0 or close == at + 1 or close - at > _TEXT_BYTES_MAX:
                return NOT_PLAIN, count
            entries.texts[count, 0] = at + 1
            entries.texts[count, 1] = close - at - 1
            at = close + 1
        count += 1
        at = skip(data, at, end)
        if at < end and data[at] == _COMMA:
            at = skip(data, at + 1, end)
            continue
        if at < end and data[at] == _CLOSE:
            return at + 1, count
        return NOT_PLAIN, count
    return at, count


@kernel
def _row(
    data: NDArray[np.uint8], at: int, end: int, entries: Entries, count: int
) -> tuple[bool, int]:
    """Read the filters of one row; return if they are plain, and the new count."""
    at = expect(data, at, end, _OPEN_LIST)
    if at < 0:
        return False, count
    if at < end and data[at] == _CLOSE_LIST:
        return skip(data, at + 1, end) == end, count
    for _ in range(_FILTERS_MAX):
        at = expect(data, at, end, _OPEN)
        if at < 0:
            return False, count
        close = string(data, at, end)
        if close < 0:
            return False, count
        op = _dialect(data, at + 1, close - at - 1)
        if op < 0:
            return False, count
        at = expect(data, close + 1, end, _COLON)
        if at < 0:
            return False, count
        at, count = _map(data, at, end, op, entries, count)
        if at < 0:
            return False, count
        at = expect(data, at, end, _CLOSE)
        if at < 0 or at >= end:
            return False, count
        if data[at] == _COMMA:
            at = skip(data, at + 1, end)
        elif data[at] == _CLOSE_LIST:
            return skip(data, at + 1, end) == end, count
        else:
            return False, count
    return False, count


@kernel
def scan(
    data: NDArray[np.uint8],
    offsets: IntArray,
    entries: Entries,
    counts: NDArray[np.int32],
    plain: BoolArray,
    entries_max: int,
) -> int:
    """Read the filters of rows.

    Row `i` is `data[offsets[i]:offsets[i + 1]]`. `entries` gets the entries of plain rows (there
    must be room for one in every 6 bytes), `counts` and `plain` how many entries each row has and
    if it is plain: one with more than `entries_max` is not. Returns how many entries there are.
    """
    total = int(np.int64(0))  # A literal would be another signature of `_row`.
    for row in range(counts.shape[0]):
        plain[row], count = _row(data, offsets[row], offsets[row + 1], entries, total)
        if count - total > entries_max:
            plain[row] = False
        counts[row] = 0
        if plain[row]:
            counts[row] = count - total
            total = count
    return total
