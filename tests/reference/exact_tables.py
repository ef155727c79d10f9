"""Slow, obvious twins of the exact method's tables: one Python loop per formula."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from distributary.arrays import FloatArray


def members(chosen: int) -> list[int]:
    """Return the formats in a set."""
    return [k for k in range(chosen.bit_length()) if chosen >> k & 1]


def subsets(chosen: int) -> list[int]:
    """Return every subset of a set."""
    inside = members(chosen)
    return [
        sum(1 << k for k in part)
        for size in range(len(inside) + 1)
        for part in combinations(inside, size)
    ]


def relaxed(table: FloatArray, costs: FloatArray, weight: float) -> FloatArray:
    """Return the cheapest way to serve each set when formats may be converted first."""
    m = len(costs)
    best = table.copy()
    for chosen in sorted(range(len(table)), key=lambda x: -len(members(x))):
        for j in range(m):
            if not chosen >> j & 1:
                cheapest = min((costs[i, j] for i in members(chosen)), default=np.inf)
                if np.isfinite(cheapest):
                    best[chosen] = min(best[chosen], weight * cheapest + best[chosen | 1 << j])
    return best


def received(table: FloatArray, sizes: FloatArray, weight: float) -> FloatArray:
    """Return the cheapest subset to send for each set in hand at the parent."""
    return np.array(
        [
            min(table[part] + weight * sum(sizes[k] for k in members(part)) for part in subsets(x))
            for x in range(len(table))
        ]
    )
