"""Wiring: who attaches to which broker.

A `WiringProblem` goes in, `wire` returns a `Wiring`, and `cost` says what any
assignment of users to brokers costs.
"""

from distributary.wiring.cost import cost
from distributary.wiring.planner import METHODS, wire
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import CORES, Wiring, WiringCost, check, loads

__all__ = [
    "CORES",
    "METHODS",
    "Wiring",
    "WiringCost",
    "WiringProblem",
    "check",
    "cost",
    "loads",
    "wire",
]
