"""What a plan costs: the single source of truth for every method, test and report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.arguments import checked
from distributary.placement.plan import NOT_MADE, Plan
from distributary.placement.problem import PlacementProblem

__all__ = ["Cost", "cost"]


@dataclass(frozen=True)
class Cost:
    """The two parts of a plan's cost before weighting, and their weighted sum."""

    transmission: float
    conversion: float
    total: float


@checked
def cost(problem: PlacementProblem, plan: Plan) -> Cost:
    """Return what `plan` costs.

    Every transmitted format costs its size times the link's factor, every conversion
    its cost times the node's factor; alpha and beta weigh the two sums.
    """
    sent_size = np.where(plan.receives, problem.graph.sizes, 0.0).sum(axis=1)
    node, made = np.nonzero(plan.made_from != NOT_MADE)
    converted = problem.graph.costs[plan.made_from[node, made], made]
    transmission = float(np.dot(problem.tree.link_costs, sent_size))
    conversion = float(np.dot(problem.tree.node_costs[node], converted))
    return Cost(transmission, conversion, problem.alpha * transmission + problem.beta * conversion)
