"""Values that change as prices do: they jump at random, and are drawn back to their mean."""

from __future__ import annotations

import random

__all__ = ["Walk"]

_REVERSION = 0.05
_WORDS = ("calm", "rising", "falling", "sharp", "flat", "volatile", "steady", "thin")


class Walk:
    """One value, a number and a text that comments it, changing by jumps.

    Parameters
    ----------
    mean
        Where the number is drawn to.
    jump
        The standard deviation of a jump.
    """

    def __init__(self, mean: float, jump: float, rng: random.Random) -> None:
        self._mean = mean
        self._jump = jump
        self._rng = rng
        self.number = mean
        self.text = _WORDS[0]

    def step(self) -> None:
        """Jump."""
        pull = _REVERSION * (self._mean - self.number)
        self.number += pull + self._rng.gauss(0.0, self._jump)
        self.text = " ".join(self._rng.choices(_WORDS, k=3))
