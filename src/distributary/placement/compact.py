"""The exact method for small problems, of which brokers plan many."""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray
from distributary.placement._compact_kernels import small_plan
from distributary.placement.plan import Plan
from distributary.placement.problem import PlacementProblem

__all__ = ["compact_plan", "is_compact", "needs_table"]

# More sets than this do not fit the caches.
_FORMATS_MAX = 17
# Steps of about two nanoseconds. Beyond, several threads are worth their calls, unless all
# tables are too small to be handed to another thread.
_STEPS_MAX = 2**24
_FORMATS_FOR_THREADS = 12


def needs_table(problem: PlacementProblem, *, wishes_max: int) -> BoolArray:
    """Return which served nodes need a table: not the leaves with at most so many wishes."""
    inner = np.zeros(problem.node_count, dtype=np.bool_)
    inner[0] = True
    inner[problem.tree.parents[1:][problem.served[1:]]] = True
    needing: BoolArray = problem.served & (inner | (problem.wants.sum(axis=1) > wishes_max))
    return needing


def is_compact(problem: PlacementProblem, usable: BoolArray) -> bool:
    """Whether one compiled pass over all brokers is the faster way.

    `usable[v, k]` says whether `v` may have `k` at all.
    """
    counts = usable[needs_table(problem, wishes_max=1)].sum(axis=1)
    if counts.max(initial=0) > _FORMATS_MAX:
        return False
    if counts.max(initial=0) < _FORMATS_FOR_THREADS:
        return True
    return float((counts * np.exp2(counts)).sum()) <= _STEPS_MAX


def compact_plan(problem: PlacementProblem, usable: BoolArray) -> Plan:
    """Return a plan of least cost within the usable formats, not pruned yet.

    The root may have all that it holds.
    """
    receives, made_from = small_plan(
        problem.graph.costs,
        problem.graph.sizes,
        problem.tree.parents,
        problem.link_weights,
        problem.node_weights,
        problem.wants,
        usable,
        problem.served,
        problem.held,
    )
    return Plan(receives, made_from)
