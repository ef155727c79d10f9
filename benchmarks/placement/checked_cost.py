"""What a plan costs, once it is known to be one."""

from __future__ import annotations

from distributary.placement.cost import cost
from distributary.placement.plan import Plan, check
from distributary.placement.problem import PlacementProblem

__all__ = ["checked_cost"]


def checked_cost(problem: PlacementProblem, plan: Plan) -> float:
    """Return what a plan costs, having made sure that it is valid."""
    check(problem, plan)
    return float(cost(problem, plan).total)
