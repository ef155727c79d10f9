"""Random numbers that belong to a row: the same whoever makes the row, and in what order.

A generator with a state would tie a row to all rows before it. Here a number is a function
of the seed, the table, what it is for, and the row's number (SplitMix64, whose state is a
counter), so that executors make any part of a table on their own.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

from distributary.arrays import FloatArray, IntArray, UintArray

__all__ = ["CounterRng", "picked", "zipf_picked", "zipf_weights"]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


class CounterRng:
    """A counter-based random generator: the random numbers of one table."""

    def __init__(self, seed: int, table: str) -> None:
        self._seed = seed
        self._table = table

    def uniform(self, purpose: str, rows: IntArray) -> FloatArray:
        """Return a number in [0, 1) for each of the rows, and for this purpose alone."""
        words = _mixed(_key(self._seed, self._table, purpose), rows)
        return (words >> np.uint64(11)).astype(np.float64) * _UNIT

    def below(self, purpose: str, rows: IntArray, bounds: IntArray | int) -> IntArray:
        """Return a whole number from 0 up to a bound, which is left out."""
        return np.asarray(self.uniform(purpose, rows) * bounds).astype(np.int64)

    def normal(self, purpose: str, rows: IntArray) -> FloatArray:
        """Return a number of the standard normal distribution."""
        radius = np.sqrt(-2.0 * np.log1p(-self.uniform(f"{purpose} radius", rows)))
        angle = 2.0 * np.pi * self.uniform(f"{purpose} angle", rows)
        return np.asarray(radius * np.cos(angle))


@lru_cache(maxsize=16)
def zipf_weights(count: int, exponent: float = 1.0) -> FloatArray:
    """Return shares of the first, second and further most popular of `count` things."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    weights /= weights.sum()
    weights.flags.writeable = False
    return weights


def picked(uniforms: FloatArray, weights: FloatArray) -> IntArray:
    """Return an index for each number in [0, 1), as often as the weights say.

    Weights that do not add up to 1 are taken as shares of their sum.
    """
    return _picked(uniforms, np.cumsum(weights))


def zipf_picked(uniforms: FloatArray, count: int, exponent: float = 1.0) -> IntArray:
    """Return a rank for each number in [0, 1), the first the most often.

    The same as `picked` with `zipf_weights`, for ranks so many that they are added up once.
    """
    return _picked(uniforms, _zipf_edges(count, exponent))


def _picked(uniforms: FloatArray, edges: FloatArray) -> IntArray:
    found = np.searchsorted(edges, uniforms * edges[-1], side="right")
    return np.asarray(np.minimum(found, len(edges) - 1), dtype=np.int64)


@lru_cache(maxsize=4)
def _zipf_edges(count: int, exponent: float) -> FloatArray:
    return np.cumsum(zipf_weights(count, exponent))


@lru_cache(maxsize=256)
def _key(seed: int, table: str, purpose: str) -> int:
    text = f"{seed}/{table}/{purpose}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _mixed(key: int, rows: IntArray) -> UintArray:
    words = rows.astype(np.uint64)
    words *= _STEP
    words += np.uint64(key)
    words ^= words >> np.uint64(30)
    words *= _FIRST
    words ^= words >> np.uint64(27)
    words *= _SECOND
    words ^= words >> np.uint64(31)
    return words
