"""Cheapest chains of conversions, with the way they take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["Chains", "cheapest_chains"]

_NO_FORMAT = -1


class Chains(NamedTuple):
    """The cheapest chain of conversions between every two formats.

    Attributes
    ----------
    direct
        What each single conversion costs, infinite when impossible, shape
        (formats, formats).
    costs
        `costs[i, j]` is the cheapest chain from `i` to `j`; 0 on the diagonal.
    before
        `before[i, j]` is the last format before `j` on that chain, -1 when there is
        none. The chains from one format form a tree, so following `before` ends at
        that format whatever ties and free conversions there are.
    """

    direct: FloatArray
    costs: FloatArray
    before: IntArray

    def makeable_from(self, have: BoolArray) -> BoolArray:
        """Return which formats are in hand or can be made from the formats in hand."""
        return np.asarray(np.isfinite(self.costs[have]).any(axis=0))

    def leading_to(self, need: BoolArray) -> BoolArray:
        """Return from which formats at least one of the needed formats can be made."""
        return np.asarray(np.isfinite(self.costs[:, need]).any(axis=1))


def cheapest_chains(direct: FloatArray) -> Chains:
    """Return the cheapest chain between every two formats, in cubic time."""
    # A copy that may be written to: arrays that may not are another type to the compiler.
    matrix = np.array(direct, dtype=np.float64, order="C")
    costs, before = _shortest_paths(matrix)
    return Chains(matrix, costs, before)


# One label-setting search per start. The triangle (Floyd-Warshall) method is shorter,
# but with conversions that cost nothing its predecessors can run in a circle once
# rounding breaks a tie the other way.
@kernel
def _shortest_paths(direct: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return costs and predecessors, both (m, m), for the matrix `direct`, (m, m) float64."""
    m = direct.shape[0]
    costs = np.full((m, m), np.inf)
    before = np.full((m, m), _NO_FORMAT, dtype=np.int64)
    for start in range(m):
        settled = np.zeros(m, dtype=np.bool_)
        costs[start, start] = 0.0
        for _ in range(m):
            nearest = -1
            for i in range(m):
                if not settled[i] and (nearest < 0 or costs[start, i] < costs[start, nearest]):
                    nearest = i
            reached = costs[start, nearest]
            if reached == np.inf:
                break
            settled[nearest] = True
            for j in range(m):
                through = reached + direct[nearest, j]
                if not settled[j] and through < costs[start, j]:
                    costs[start, j] = through
                    before[start, j] = nearest
    return costs, before
