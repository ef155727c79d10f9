"""Seeds for the compiled random numbers."""

from __future__ import annotations

import numpy as np

from distributary.arrays import UintArray

__all__ = ["seed_state"]


def seed_state(seed: int) -> UintArray:
    """Return the state of a generator for `draw`; never zero, which it would not leave."""
    return np.random.SeedSequence(seed).generate_state(1, np.uint64) | np.uint64(1)
