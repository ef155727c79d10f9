"""Seeded random numbers inside compiled loops.

NumPy's generators do not pass through compiled code at the speed of the moves that are
drawn there; this one does, and replays from its seed on every machine.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import UintArray
from distributary.kernels import inner_kernel, kernel

__all__ = ["seed_state", "uniform", "uniform_index"]


def seed_state(seed: int, *, count: int = 1) -> UintArray:
    """Return the states of generators for `uniform`; never zero, which it would not leave.

    With `count` above 1 each of them, as a slice of one, is a generator of its own.
    """
    return np.random.SeedSequence(seed).generate_state(count, np.uint64) | np.uint64(1)


@kernel
def uniform(seed: UintArray) -> float:
    """Return a random number in [0, 1) and move the seed (1,) on: xorshift64*."""
    x = seed[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    seed[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inner_kernel
def uniform_index(seed: UintArray, count: int) -> int:
    """Return a random number from 0 up to `count`, which is left out."""
    return int(uniform(seed) * count)
