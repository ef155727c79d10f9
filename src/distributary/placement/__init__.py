"""Placement: at which broker each format conversion of a publication runs.

A `PlacementProblem` goes in, `place` returns a `Placement`, and `cost` says what any
valid plan costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.exports import on_demand
from distributary.placement.cost import Cost, cost
from distributary.placement.plan import NOT_MADE, Placement, Plan, check, prune
from distributary.placement.planner import METHODS, OBJECTIVES, place
from distributary.placement.problem import PlacementProblem

if TYPE_CHECKING:
    from distributary.placement.comparison import MethodResult, compare_methods
    from distributary.placement.draw import draw_plan
    from distributary.placement.generate import generate_problem
    from distributary.placement.names import NodePlan
    from distributary.placement.plan_file import read_plan
    from distributary.placement.problem_file import ProblemFile, read_problem

__all__ = [
    "METHODS",
    "NOT_MADE",
    "OBJECTIVES",
    "Cost",
    "MethodResult",
    "NodePlan",
    "Placement",
    "PlacementProblem",
    "Plan",
    "ProblemFile",
    "check",
    "compare_methods",
    "cost",
    "draw_plan",
    "generate_problem",
    "place",
    "prune",
    "read_plan",
    "read_problem",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "comparison": ("MethodResult", "compare_methods"),
        "draw": ("draw_plan",),
        "generate": ("generate_problem",),
        "names": ("NodePlan",),
        "plan_file": ("read_plan",),
        "problem_file": ("ProblemFile", "read_problem"),
    },
)
