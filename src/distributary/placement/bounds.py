"""The papers' lower bounds (CCD, section 5, step 2).

They are quick, hold for every valid plan, and say where a plan may still be improved; the
dual bound for large problems is stronger.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray
from distributary.placement.conversions import ConversionPlanner
from distributary.placement.problem import PlacementProblem

__all__ = ["conversion_bound", "paper_bound", "transmission_bounds"]


def transmission_bounds(problem: PlacementProblem) -> FloatArray:
    """Return what the link into each node costs at least, after weighting, shape (nodes,).

    Each format wanted below needs some format on the link from which it can be made, so
    the link carries at least the smallest such format; the largest of these smallest
    formats is the bound. Only formats that can be made at all count as senders, which the
    papers do not ask for; the bound is tighter for it.
    """
    can_send = problem.graph.makeable[problem.held].any(axis=0)
    sizes = np.where(can_send, problem.graph.sizes, np.inf)
    smallest = np.where(problem.graph.makeable, sizes[:, None], np.inf).min(axis=0)
    bounds = np.where(problem.wanted_below, smallest, 0.0).max(axis=1)
    bounds[0] = 0.0
    weighted: FloatArray = problem.link_weights * bounds
    return weighted


def conversion_bound(
    problem: PlacementProblem, conversion_planner: ConversionPlanner | None = None
) -> float:
    """Return what all conversions together cost at least, after weighting.

    Every wanted format is made at least once from what is held: a directed Steiner tree,
    at the smallest factor of any node that may convert. Where the cheapest tree is out of
    reach its bounds take its place, because the cost of an approximate tree bounds nothing:
    every wanted format is the output of one conversion, and the end of one chain.
    """
    made = problem.wanted_below[0] & ~problem.held
    if not made.any():
        return 0.0
    tree = (conversion_planner or ConversionPlanner(problem.graph.costs)).cost(problem.held, made)
    if tree.exact:
        conversions = tree.cost
    else:
        inputs = problem.graph.makeable[problem.held].any(axis=0)
        cheapest = problem.graph.costs[np.ix_(inputs, made)].min(axis=0)
        chains = problem.graph.chain_costs[np.ix_(problem.held, made)].min(axis=0)
        conversions = max(float(cheapest.sum()), float(chains.max()))
    return float(problem.node_weights[problem.served].min()) * conversions


def paper_bound(problem: PlacementProblem) -> float:
    """Return the papers' lower bound on the total cost of any valid plan."""
    return float(transmission_bounds(problem).sum()) + conversion_bound(problem)
