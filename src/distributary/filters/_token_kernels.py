"""Strings, numbers and signs of JSON in plain form, compiled; see `_scan_kernels`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distributary.kernels import kernel

__all__ = ["NOT_PLAIN", "expect", "number", "same", "skip", "string"]

NOT_PLAIN = -1
"""Stands for a place where something is not plain, or not JSON."""

_NUMBER_BYTES_MAX = 64
_QUOTE, _BACKSLASH = 34, 92
_MINUS, _PLUS, _POINT, _ZERO, _NINE, _E_SMALL, _E_LARGE = 45, 43, 46, 48, 57, 101, 69


@kernel
def skip(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the first place from `at` on that is not white space."""
    while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@kernel
def expect(data: NDArray[np.uint8], at: int, end: int, byte: np.uint8) -> int:
    """Return the place after `byte`, with white space around it, or NOT_PLAIN."""
    at = skip(data, at, end)
    if at >= end or data[at] != byte:
        return NOT_PLAIN
    return skip(data, at + 1, end)


@kernel
def string(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the place of the closing quote of the string that opens at `at`, or NOT_PLAIN."""
    if at >= end or data[at] != _QUOTE:
        return NOT_PLAIN
    at += 1
    while at < end:
        byte = data[at]
        if byte == _QUOTE:
            return at
        if byte == _BACKSLASH or byte < 32:
            return NOT_PLAIN
        at += 1
    return NOT_PLAIN


@kernel
def _digits(data: NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and data[at] >= _ZERO and data[at] <= _NINE:
        at += 1
    return at


@kernel
def number(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the place after the JSON number at `at`, or NOT_PLAIN."""
    begin = at
    if at < end and data[at] == _MINUS:
        at += 1
    whole = at
    at = _digits(data, at, end)
    if at == whole or (data[whole] == _ZERO and at > whole + 1):
        return NOT_PLAIN
    if at < end and data[at] == _POINT:
        fraction = at + 1
        at = _digits(data, fraction, end)
        if at == fraction:
            return NOT_PLAIN
    if at < end and (data[at] == _E_SMALL or data[at] == _E_LARGE):
        at += 1
        if at < end and (data[at] == _MINUS or data[at] == _PLUS):
            at += 1
        exponent = at
        at = _digits(data, exponent, end)
        if at == exponent:
            return NOT_PLAIN
    if at - begin > _NUMBER_BYTES_MAX:
        return NOT_PLAIN
    return at


@kernel
def same(data: NDArray[np.uint8], begin: int, length: int, word: bytes) -> bool:
    """Are the bytes from `begin` on the word?"""
    if length != len(word):
        return False
    for i in range(length):  # noqa: SIM110 (compiled: there are no generators)
        if data[begin + i] != word[i]:
            return False
    return True
