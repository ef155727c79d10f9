"""Where conversions run, by a rule: above a branch or in it, whichever costs less."""

from __future__ import annotations

import numpy as np

from distributary.placement import PlacementProblem, Plan, cost, place, prune

__all__ = ["on_demand"]


def on_demand(problem: PlacementProblem, *, seed: int) -> Plan:
    """Take the cheaper of two plans that everybody knows, for each child of the root apart.

    What is wanted there and below is made at the root, or everything where it is wanted.
    """
    high = place(problem, method="all-in-root", seed=seed).plan
    low = place(problem, method="all-in-leaves", seed=seed).plan
    branch = _branches(problem)
    best = high
    for child in np.unique(branch[1:]).tolist():
        mixed = best.copy()
        below = branch == child
        mixed.receives[below] = low.receives[below]
        mixed.made_from[below] = low.made_from[below]
        mixed = prune(problem, mixed)
        if cost(problem, mixed).total < cost(problem, best).total:
            best = mixed
    return best


def _branches(problem: PlacementProblem) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the child of the root that each broker is below; -1 for the root itself."""
    branch = np.arange(problem.node_count, dtype=np.int64)
    for v, parent in enumerate(problem.tree.parents.tolist()):
        if parent > 0:
            branch[v] = branch[parent]
    branch[0] = -1
    return branch
