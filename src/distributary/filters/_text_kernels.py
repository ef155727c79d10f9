"""Texts as numbers: a hash table over bytes that compiled loops can read and fill.

Layout of a `TextArrays`: text `i` is `arena[starts[i]:starts[i + 1]]`, its hash is `hashes[i]`,
and `table` holds the numbers of texts at `hash & mask` or the next free place after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import IntArray, UintArray
from distributary.content._hash_kernels import finished, with_byte
from distributary.kernels import inner_kernel, kernel

__all__ = [
    "MISSING",
    "TextArrays",
    "enter",
    "find",
    "find_hashed",
    "find_spans",
    "gather",
    "hash_of",
    "intern",
    "rehash",
]

MISSING = -1


class TextArrays(NamedTuple):
    """The arrays of a table of texts.

    Attributes
    ----------
    table
        Numbers of texts, int32, a power of two of them; -1 is free.
    hashes, starts, arena
        By text: its hash, where its bytes begin; and the bytes.
    used
        How many texts there are, in an array of one: compiled loops add to it.
    seed
        Where hashes begin, in an array of one. It is drawn for each index, so that nobody
        can choose texts that fall on one place.
    """

    table: NDArray[np.int32]
    hashes: UintArray
    starts: IntArray
    arena: NDArray[np.uint8]
    used: IntArray
    seed: UintArray


@inner_kernel
def hash_of(
    data: NDArray[np.uint8], begin: int, length: int, step: int, seed: np.uint64
) -> np.uint64:
    """Return the hash of the bytes `data[begin]`, `data[begin + step]`, ..."""
    state = seed
    for i in range(length):
        state = with_byte(state, data[begin + step * i])
    return finished(state)


@inner_kernel
def find_hashed(
    texts: TextArrays,
    hashed: np.uint64,
    data: NDArray[np.uint8],
    begin: int,
    length: int,
    step: int,
) -> int:
    """Return the number of the text with these bytes, or MISSING.

    The bytes are `data[begin]`, `data[begin + step]`, ...: `step` is -1 to read backwards.
    """
    mask = np.uint64(texts.table.shape[0] - 1)
    place = hashed & mask
    while True:
        text = texts.table[place]
        if text < 0:
            return MISSING
        if texts.hashes[text] == hashed:
            start = texts.starts[text]
            if texts.starts[text + 1] - start == length:
                same = True
                for i in range(length):
                    if texts.arena[start + i] != data[begin + step * i]:
                        same = False
                        break
                if same:
                    return int(text)
        place = (place + np.uint64(1)) & mask


@kernel
def find(texts: TextArrays, data: NDArray[np.uint8], begin: int, length: int) -> int:
    """Return the number of the text with the bytes `data[begin:begin + length]`, or MISSING."""
    forwards = int(np.int64(1))  # A literal would be another signature.
    hashed = hash_of(data, begin, length, forwards, texts.seed[0])
    return find_hashed(texts, hashed, data, begin, length, forwards)


@kernel
def find_spans(
    texts: TextArrays,
    data: NDArray[np.uint8],
    begins: IntArray,
    lengths: IntArray,
    found: NDArray[np.int32],
) -> None:
    """Write the number of each text of `data` to `found`, or MISSING."""
    for i in range(begins.shape[0]):
        found[i] = find(texts, data, begins[i], lengths[i])


@kernel
def enter(table: NDArray[np.int32], hashed: np.uint64, number: int) -> None:
    """Put a number into a hash table, at the first free place from its hash on."""
    mask = np.uint64(table.shape[0] - 1)
    place = hashed & mask
    while table[place] >= 0:
        place = (place + np.uint64(1)) & mask
    table[place] = number


@kernel
def intern(
    texts: TextArrays,
    data: NDArray[np.uint8],
    begins: IntArray,
    lengths: IntArray,
    backwards: NDArray[np.uint8],
    found: NDArray[np.int32],
) -> None:
    """Write the number of each text of `data` to `found`, adding those that are new.

    Texts with `backwards` set are stored from their last byte to their first. A negative
    length is no text, and gets MISSING. There must be room for all of them.
    """
    for i in range(begins.shape[0]):
        length = lengths[i]
        if length < 0:
            found[i] = MISSING
            continue
        turned = backwards[i] != 0
        first = begins[i] + length - 1 if turned else begins[i]
        step = -1 if turned else 1
        hashed = hash_of(data, first, length, step, texts.seed[0])
        text = find_hashed(texts, hashed, data, first, length, step)
        if text == MISSING:
            text = texts.used[0]
            texts.used[0] = text + 1
            start = texts.starts[text]
            for j in range(length):
                texts.arena[start + j] = data[first + step * j]
            texts.starts[text + 1] = start + length
            texts.hashes[text] = hashed
            enter(texts.table, hashed, text)
        found[i] = text


@kernel
def rehash(table: NDArray[np.int32], hashes: UintArray, count: int) -> None:
    """Enter all texts into a fresh table."""
    for text in range(count):
        enter(table, hashes[text], text)


@kernel
def gather(
    data: NDArray[np.uint8],
    begins: IntArray,
    lengths: IntArray,
    offsets: IntArray,
    gathered: NDArray[np.uint8],
) -> None:
    """Copy pieces of `data` to stand one after the other, and write where each begins."""
    at = 0
    for i in range(begins.shape[0]):
        offsets[i] = at
        for j in range(lengths[i]):
            gathered[at + j] = data[begins[i] + j]
        at += lengths[i]
    offsets[begins.shape[0]] = at
