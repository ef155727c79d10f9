"""A hash of texts that is the same everywhere, compiled.

Buckets decide at which broker events and subscriptions meet, so Python's own hash, which
differs from run to run, will not do. A cryptographic hash would do, but not compiled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import BoolArray, IntArray
from distributary.kernels import inner_kernel, kernel

__all__ = ["finished", "text_buckets", "text_hash", "with_byte"]

_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_MIX_AGAIN = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)


@inner_kernel
def with_byte(state: np.uint64, byte: np.uint8) -> np.uint64:
    """Return the state of the hash after one more byte: FNV-1a."""
    return (state ^ np.uint64(byte)) * _PRIME


@kernel
def finished(state: np.uint64) -> np.uint64:
    """Return the hash: the state, mixed by the finalizer of MurmurHash3.

    On its own FNV-1a leaves the low bits of short texts alike, and those are the bits that
    choose a bucket.
    """
    state = (state ^ (state >> _SHIFT)) * _MIX
    state = (state ^ (state >> _SHIFT)) * _MIX_AGAIN
    return state ^ (state >> _SHIFT)


@kernel
def text_hash(data: NDArray[np.uint8], begin: int, end: int) -> np.uint64:
    """Return the hash of the UTF-8 text `data[begin:end]`."""
    state = _OFFSET
    for i in range(begin, end):
        state = with_byte(state, data[i])
    return finished(state)


@kernel
def text_buckets(
    data: NDArray[np.uint8], offsets: IntArray, present: BoolArray, buckets: int
) -> IntArray:
    """Return 0 for every text that is not present, and one more than its bucket for others.

    Text `i` is `data[offsets[i]:offsets[i + 1]]`, shapes (N + 1,) and (N,).
    """
    bins = np.zeros(len(present), dtype=np.int64)
    for i in range(len(present)):
        if present[i]:
            found = text_hash(data, offsets[i], offsets[i + 1])
            bins[i] = np.int64(found % np.uint64(buckets)) + 1
    return bins
