"""The cheapest conversions at one node, by trying every way to convert."""

from __future__ import annotations

import numpy as np
from tests.reference.placement_brute_force import conversion_rows

from distributary.arrays import BoolArray, FloatArray
from distributary.placement.plan import NOT_MADE


def minimum_conversion_cost(direct: FloatArray, have: BoolArray, need: BoolArray) -> float:
    """Return what making all needed formats costs at least; infinite when impossible."""
    in_hand = tuple(np.flatnonzero(have).tolist())
    needed = set(np.flatnonzero(need).tolist())
    return min(
        (
            float(sum(direct[i, k] for k, i in enumerate(made_from) if i != NOT_MADE))
            for made_from, available in conversion_rows(direct, in_hand)
            if needed <= set(available)
        ),
        default=np.inf,
    )


def shortest_chain_costs(direct: FloatArray) -> FloatArray:
    """Return the cheapest chain between all formats, relaxing every conversion until none helps."""
    costs = direct.copy()
    np.fill_diagonal(costs, 0.0)
    changed = True
    while changed:
        changed = False
        for i, k, j in np.ndindex(*(len(costs),) * 3):
            if costs[i, k] + direct[k, j] < costs[i, j]:
                costs[i, j] = costs[i, k] + direct[k, j]
                changed = True
    return costs
