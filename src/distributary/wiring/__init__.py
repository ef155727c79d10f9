"""Wiring: who attaches to which broker.

A `WiringProblem` goes in, `wire` returns a `Wiring`, and `cost` says what any
assignment of users to brokers costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.exports import on_demand
from distributary.wiring.cost import cost
from distributary.wiring.planner import METHODS, wire
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import CORES, Wiring, WiringCost, check, loads

if TYPE_CHECKING:
    from distributary.wiring.draw import draw_wiring
    from distributary.wiring.generate import generate_problem
    from distributary.wiring.problem_file import ProblemFile, read_problem
    from distributary.wiring.problem_tables import read_problem_tables
    from distributary.wiring.wiring_file import Assignment, read_wiring

__all__ = [
    "CORES",
    "METHODS",
    "Assignment",
    "ProblemFile",
    "Wiring",
    "WiringCost",
    "WiringProblem",
    "check",
    "cost",
    "draw_wiring",
    "generate_problem",
    "loads",
    "read_problem",
    "read_problem_tables",
    "read_wiring",
    "wire",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "draw": ("draw_wiring",),
        "generate": ("generate_problem",),
        "problem_file": ("ProblemFile", "read_problem"),
        "problem_tables": ("read_problem_tables",),
        "wiring_file": ("Assignment", "read_wiring"),
    },
)
