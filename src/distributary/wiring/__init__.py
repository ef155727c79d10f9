"""Wiring: who attaches to which broker.

A `WiringProblem` goes in, `wire` returns a `Wiring`, and `cost` says what any
assignment of users to brokers costs.
"""

from distributary.wiring.cost import cost
from distributary.wiring.planner import METHODS, wire
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import CORES, Cost, Wiring, check, loads

__all__ = [
    "CORES",
    "METHODS",
    "Cost",
    "Wiring",
    "WiringProblem",
    "check",
    "cost",
    "loads",
    "wire",
]
