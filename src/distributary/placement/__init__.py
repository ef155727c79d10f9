"""Placement: at which broker each format conversion of a publication runs.

A `PlacementProblem` goes in, `place` returns a `Placement`, and `cost` says what any
valid plan costs.
"""

from distributary.placement.cost import Cost, cost
from distributary.placement.plan import NOT_MADE, Placement, Plan, check
from distributary.placement.planner import METHODS, OBJECTIVES, place
from distributary.placement.problem import PlacementProblem

__all__ = [
    "METHODS",
    "NOT_MADE",
    "OBJECTIVES",
    "Cost",
    "Placement",
    "PlacementProblem",
    "Plan",
    "check",
    "cost",
    "place",
]
