"""The exact method for small problems, of which brokers plan many."""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray
from distributary.placement._compact_kernels import small_plan
from distributary.placement._exact_kernels import LANE_BITS
from distributary.placement.plan import Plan
from distributary.placement.problem import PlacementProblem

__all__ = ["compact_plan", "is_compact"]

_FORMATS_MAX = 10
# Steps of about a nanosecond. Beyond, leaves without tables and threads are worth their calls.
_STEPS_MAX = 2**22


def is_compact(problem: PlacementProblem, usable: BoolArray) -> bool:
    """Whether one compiled pass over all brokers is the faster way.

    Parameters
    ----------
    problem
        What to plan.
    usable
        `usable[v, k]`: may `v` have `k` at all?
    """
    formats = int(usable.any(axis=0).sum())
    return formats <= _FORMATS_MAX and problem.node_count * formats * 2**formats <= _STEPS_MAX


def compact_plan(problem: PlacementProblem, usable: BoolArray) -> Plan:
    """Return a plan of least cost within the usable formats, not pruned yet.

    Parameters
    ----------
    problem
        What to plan.
    usable
        As in `is_compact`; the root may have all that it holds.
    """
    formats = np.flatnonzero(usable.any(axis=0))
    used = len(formats)
    count = max(LANE_BITS, used)
    costs = np.full((count, count), np.inf)
    costs[:used, :used] = problem.graph.costs[np.ix_(formats, formats)]
    sizes = np.zeros(count)
    sizes[:used] = problem.graph.sizes[formats]
    receives, made_from = small_plan(
        costs,
        sizes,
        problem.tree.parents,
        problem.link_weights,
        problem.node_weights,
        _widened(problem.wants[:, formats], count),
        _widened(usable[:, formats], count),
        problem.served,
        _widened(problem.held[None, formats], count)[0],
    )
    plan = Plan.empty(problem)
    plan.receives[:, formats] = receives[:, :used]
    # The last entry stands for "not made", which is -1.
    origins = np.append(formats, -1)
    plan.made_from[:, formats] = origins[made_from[:, :used]]
    return plan


def _widened(flags: BoolArray, count: int) -> BoolArray:
    """Return flags with formats added that nobody has, writeable and in one piece."""
    wide = np.zeros((len(flags), count), dtype=np.bool_)
    wide[:, : flags.shape[1]] = flags
    return wide
