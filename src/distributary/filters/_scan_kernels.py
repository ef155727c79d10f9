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

from distributary.arrays import BoolArray, IntArray, kernel
from distributary.filters.decision import ENDS, EQUALS, STARTS, WITHIN

__all__ = ["Entries", "scan"]

_NOT_PLAIN = -1
_ENTRIES_MAX = 64
_FILTERS_MAX = 128
_KEY_BYTES_MAX = 512
_TEXT_BYTES_MAX = 4096
_NUMBER_BYTES_MAX = 64

_QUOTE, _BACKSLASH, _COMMA, _COLON, _SLASH, _TILDE = 34, 92, 44, 58, 47, 126
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = 123, 125, 91, 93
_MINUS, _PLUS, _POINT, _ZERO, _NINE, _E_SMALL, _E_LARGE = 45, 43, 46, 48, 57, 101, 69


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


@kernel
def _skip(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the first place from `at` on that is not white space."""
    while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@kernel
def _expect(data: NDArray[np.uint8], at: int, end: int, byte: int) -> int:
    """Return the place after `byte`, with white space around it, or _NOT_PLAIN."""
    at = _skip(data, at, end)
    if at >= end or data[at] != byte:
        return _NOT_PLAIN
    return _skip(data, at + 1, end)


@kernel
def _string(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the place of the closing quote of the string that opens at `at`, or _NOT_PLAIN."""
    if at >= end or data[at] != _QUOTE:
        return _NOT_PLAIN
    at += 1
    while at < end:
        byte = data[at]
        if byte == _QUOTE:
            return at
        if byte == _BACKSLASH or byte < 32:
            return _NOT_PLAIN
        at += 1
    return _NOT_PLAIN


@kernel
def _digits(data: NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and data[at] >= _ZERO and data[at] <= _NINE:
        at += 1
    return at


@kernel
def _number(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the place after the JSON number at `at`, or _NOT_PLAIN."""
    begin = at
    if at < end and data[at] == _MINUS:
        at += 1
    whole = at
    at = _digits(data, at, end)
    if at == whole or (data[whole] == _ZERO and at > whole + 1):
        return _NOT_PLAIN
    if at < end and data[at] == _POINT:
        fraction = at + 1
        at = _digits(data, fraction, end)
        if at == fraction:
            return _NOT_PLAIN
    if at < end and (data[at] == _E_SMALL or data[at] == _E_LARGE):
        at += 1
        if at < end and (data[at] == _MINUS or data[at] == _PLUS):
            at += 1
        exponent = at
        at = _digits(data, exponent, end)
        if at == exponent:
            return _NOT_PLAIN
    if at - begin > _NUMBER_BYTES_MAX:
        return _NOT_PLAIN
    return at


@kernel
def _same(data: NDArray[np.uint8], begin: int, length: int, word: bytes) -> bool:
    if length != len(word):
        return False
    for i in range(length):  # noqa: SIM110 (compiled: there are no generators)
        if data[begin + i] != word[i]:
            return False
    return True


@kernel
def _dialect(data: NDArray[np.uint8], begin: int, length: int) -> int:
    """Return the operation that a dialect of texts or `range` stands for, or _NOT_PLAIN."""
    if _same(data, begin, length, b"range"):
        return WITHIN
    if _same(data, begin, length, b"exact"):
        return EQUALS
    if _same(data, begin, length, b"prefix"):
        return STARTS
    if _same(data, begin, length, b"suffix"):
        return ENDS
    return _NOT_PLAIN


@kernel
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
    """Read the object of bounds at `at`; return the place after it, or _NOT_PLAIN."""
    entries.lows[count, 1] = -1
    entries.highs[count, 1] = -1
    entries.exclusive[count] = 0
    at = _expect(data, at, end, _OPEN)
    if at < 0:
        return at
    if at < end and data[at] == _CLOSE:
        return at + 1
    while True:
        close = _string(data, at, end)
        if close < 0:
            return close
        begin = at + 1
        length = close - begin
        low = _same(data, begin, length, b"min")
        low_open = _same(data, begin, length, b"min_exclusive")
        high = _same(data, begin, length, b"max")
        high_open = _same(data, begin, length, b"max_exclusive")
        at = _expect(data, close + 1, end, _COLON)
        if at < 0:
            return at
        after = _number(data, at, end)
        if after < 0:
            return after
        if low or low_open:
            if entries.lows[count, 1] >= 0:
                return _NOT_PLAIN
            entries.lows[count, 0] = at
            entries.lows[count, 1] = after - at
            if low_open:
                entries.exclusive[count] |= 1
        elif high or high_open:
            if entries.highs[count, 1] >= 0:
                return _NOT_PLAIN
            entries.highs[count, 0] = at
            entries.highs[count, 1] = after - at
            if high_open:
                entries.exclusive[count] |= 2
        else:
            return _NOT_PLAIN
        at = _skip(data, after, end)
        if at < end and data[at] == _COMMA:
            at = _skip(data, at + 1, end)
            continue
        if at < end and data[at] == _CLOSE:
            return at + 1
        return _NOT_PLAIN


@kernel
def _map(
    data: NDArray[np.uint8], at: int, end: int, op: int, entries: Entries, count: int
) -> tuple[int, int]:
    """Read the map of a dialect; return the place after it, or _NOT_PLAIN, and the new count."""
    first = count
    at = _expect(data, at, end, _OPEN)
    while at >= 0:
        close = _string(data, at, end)
        if close < 0 or count - first == _ENTRIES_MAX:
            return _NOT_PLAIN, count
        begin = at + 1
        length = close - begin
        if not _plain_key(data, begin, length):
            return _NOT_PLAIN, count
        for other in range(first, count):
            if entries.keys[other, 1] == length:
                same = True
                for i in range(length):
                    if data[entries.keys[other, 0] + i] != data[begin + i]:
                        same = False
                        break
                if same:
                    return _NOT_PLAIN, count
        entries.keys[count, 0] = begin
        entries.keys[count, 1] = length
        entries.ops[count] = op
        entries.texts[count, 1] = -1
        entries.lows[count, 1] = -1
        entries.highs[count, 1] = -1
        entries.exclusive[count] = 0
        at = _expect(data, close + 1, end, _COLON)
        if at < 0:
            return at, count
        if op == WITHIN:
            at = _bounds(data, at, end, entries, count)
            if at < 0:
                return at, count
        else:
            close = _string(data, at, end)
            if close < 0 or close == at + 1 or close - at > _TEXT_BYTES_MAX:
                return _NOT_PLAIN, count
            entries.texts[count, 0] = at + 1
            entries.texts[count, 1] = close - at - 1
            at = close + 1
        count += 1
        at = _skip(data, at, end)
        if at < end and data[at] == _COMMA:
            at = _skip(data, at + 1, end)
            continue
        if at < end and data[at] == _CLOSE:
            return at + 1, count
        return _NOT_PLAIN, count
    return at, count


@kernel
def _row(
    data: NDArray[np.uint8], at: int, end: int, entries: Entries, count: int
) -> tuple[bool, int]:
    """Read the filters of one row; return if they are plain, and the new count."""
    at = _expect(data, at, end, _OPEN_LIST)
    if at < 0:
        return False, count
    if at < end and data[at] == _CLOSE_LIST:
        return _skip(data, at + 1, end) == end, count
    for _ in range(_FILTERS_MAX):
        at = _expect(data, at, end, _OPEN)
        if at < 0:
            return False, count
        close = _string(data, at, end)
        if close < 0:
            return False, count
        op = _dialect(data, at + 1, close - at - 1)
        if op < 0:
            return False, count
        at = _expect(data, close + 1, end, _COLON)
        if at < 0:
            return False, count
        at, count = _map(data, at, end, op, entries, count)
        if at < 0:
            return False, count
        at = _expect(data, at, end, _CLOSE)
        if at < 0 or at >= end:
            return False, count
        if data[at] == _COMMA:
            at = _skip(data, at + 1, end)
        elif data[at] == _CLOSE_LIST:
            return _skip(data, at + 1, end) == end, count
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

    Parameters
    ----------
    data, offsets
        Row `i` is `data[offsets[i]:offsets[i + 1]]`.
    entries
        Filled with the entries of plain rows; there must be room for one in every 6 bytes.
    counts, plain
        Filled for each row: how many entries it has, and if it is plain.
    entries_max
        A row with more entries is not plain.

    Returns
    -------
        How many entries there are.
    """
    total = 0
    for row in range(counts.shape[0]):
        plain[row], count = _row(data, offsets[row], offsets[row + 1], entries, total)
        if count - total > entries_max:
            plain[row] = False
        counts[row] = 0
        if plain[row]:
            counts[row] = count - total
            total = count
    return total
