"""The papers' three starting plans (CCD, section 5, step 1).

Each is what somebody would do without a planner. They take one pass over the tree, are
valid, can be any factor away from the optimum, and are where `iterative` starts. In each
of them a part of the tree in which nothing is wanted receives nothing. Callers give a
conversion planner for `problem.graph` to share what it remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from distributary.arrays import BoolArray
from distributary.placement.conversions import ConversionPlanner
from distributary.placement.plan import Plan, prune
from distributary.placement.problem import PlacementProblem

__all__ = ["BASELINES", "all_in_leaves", "all_in_root", "single_format"]


def all_in_root(
    problem: PlacementProblem, conversion_planner: ConversionPlanner | None = None
) -> Plan:
    """Return the plan that makes every wanted format at the root.

    Each format is forwarded only to where it is wanted. Conversion is as cheap as it can
    be when all nodes have the same factor; links near the root carry many formats.
    """
    conversion_planner = conversion_planner or ConversionPlanner(problem.graph.costs)
    plan = Plan.empty(problem)
    plan.receives[1:] = problem.wanted_below[1:]
    plan.made_from[0] = conversion_planner.conversions(problem.held, problem.wanted_below[0])
    return plan


def all_in_leaves(
    problem: PlacementProblem, conversion_planner: ConversionPlanner | None = None
) -> Plan:
    """Return the plan that sends what is held everywhere, and converts where it is wanted.

    Of several formats held, a link carries those that somebody below converts or wants.
    """
    conversion_planner = conversion_planner or ConversionPlanner(problem.graph.costs)
    plan = Plan.empty(problem)
    plan.receives[1:] = problem.served[1:, None] & problem.held
    for v in np.flatnonzero(problem.wants.any(axis=1)):
        plan.made_from[v] = conversion_planner.conversions(problem.held, problem.wants[v])
    return prune(problem, plan)


def single_format(
    problem: PlacementProblem, conversion_planner: ConversionPlanner | None = None
) -> Plan:
    """Return the plan in which every link carries one format, chosen from the top down.

    A link carries the format that is cheapest to transmit among those that can be made
    from its parent link's format and from which everything wanted below can be made; of
    two such, the one that is cheaper to make. When several formats are held there may be
    no such format; then a link carries as few formats as a greedy choice needs.
    """
    conversion_planner = conversion_planner or ConversionPlanner(problem.graph.costs)
    plan = Plan.empty(problem)
    needed = problem.wants.copy()
    chosen: dict[tuple[bytes, bytes], BoolArray] = {}
    for v in range(1, problem.node_count):
        if not problem.served[v]:
            continue
        parent = problem.tree.parents[v]
        incoming = plan.receives[parent] if parent > 0 else problem.held
        key = (incoming.tobytes(), problem.wanted_below[v].tobytes())
        if key not in chosen:
            chosen[key] = _link_formats(problem, incoming, problem.wanted_below[v])
        plan.receives[v] = chosen[key]
        needed[parent] |= plan.receives[v]
    for v in np.flatnonzero(problem.served).tolist():
        incoming = plan.receives[v] if v > 0 else problem.held
        plan.made_from[v] = conversion_planner.conversions(incoming, needed[v])
    return prune(problem, plan)


BASELINES: Mapping[str, Callable[[PlacementProblem, ConversionPlanner | None], Plan]] = {
    "all-in-root": all_in_root,
    "all-in-leaves": all_in_leaves,
    "single-format": single_format,
}
"""The three by the names of their methods."""


def _link_formats(problem: PlacementProblem, incoming: BoolArray, wanted: BoolArray) -> BoolArray:
    """Return which formats a link carries when its parent has `incoming`."""
    making = problem.graph.chain_costs[incoming].min(axis=0)
    makeable = problem.graph.makeable & np.isfinite(making)[:, None]
    carried = np.zeros(problem.format_count, dtype=np.bool_)
    missing = wanted.copy()
    while missing.any():
        gains = (makeable & missing).sum(axis=1)
        candidates = np.flatnonzero(gains == missing.sum())
        if len(candidates) == 0:
            candidates = np.flatnonzero(gains > 0)
        # Size per format gained; where one format is enough, that is the smallest size.
        best = min(
            (int(k) for k in candidates),
            key=lambda k: (problem.graph.sizes[k] / gains[k], making[k], k),
        )
        carried[best] = True
        missing &= ~makeable[best]
    return carried
