"""Filters as wide as they have to be for an event to match so many of them.

A filter can be asked for more, rung by rung: a type, a type in a region, a type at a place.
Each rung matches a smaller share of events. Between two rungs, some filters stand on one and
some on the other, so that a random filter matches a random event with just the probability
that is wanted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.arrays import FloatArray, IntArray

__all__ = ["Ladder"]


@dataclass(frozen=True)
class Ladder:
    """The rungs of one kind of filter.

    Shares are those of events that a random filter on each rung matches, falling. Where it
    `shrinks`, the last rung can be made narrower without end.
    """

    shares: tuple[float, ...]
    shrinks: bool = False

    def rungs(self, wanted: float, uniforms: FloatArray) -> IntArray:
        """Return a rung for each number in [0, 1), so that the mean share is `wanted`.

        It cannot be more than on the first rung, nor less than on the last one.
        """
        upper = max((r for r, share in enumerate(self.shares) if share >= wanted), default=-1)
        if upper < 0 or upper == len(self.shares) - 1:
            return np.full(len(uniforms), max(upper, 0))
        wide, narrow = self.shares[upper], self.shares[upper + 1]
        wide_share = (wanted - narrow) / (wide - narrow)
        return np.where(uniforms < wide_share, upper, upper + 1)

    def width(self, wanted: float) -> float:
        """Return by how much the last rung has to shrink: a share of it, at most 1."""
        return min(1.0, wanted / self.shares[-1]) if self.shrinks else 1.0
