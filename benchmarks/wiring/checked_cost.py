"""What a wiring costs, once every user is known to have a broker with room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from distributary.wiring.cost import cost
from distributary.wiring.planner import wire
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import Wiring, check

__all__ = ["PAPER_METHODS", "Compared", "checked_cost", "compare"]

PAPER_METHODS = ("packing", "clustering", "mixing")
"""The methods of Zhao and Wu, beside the random one."""


@dataclass(frozen=True)
class Compared:
    """What some methods found for one problem.

    Attributes
    ----------
    costs, seconds
        By method.
    lower_bound
        The best of those stated.
    """

    costs: Mapping[str, float]
    seconds: Mapping[str, float]
    lower_bound: float

    @property
    def best_of_paper(self) -> float:
        """The cost of the cheapest of the paper's methods."""
        return min(self.costs[method] for method in PAPER_METHODS)


def checked_cost(problem: WiringProblem, wiring: Wiring) -> float:
    """Return the total cost, having made sure that the wiring is valid.

    It is computed here from the brokers of the users alone; what a method believed about
    them counts for nothing.
    """
    check(problem, wiring.broker_of)
    return cost(problem, wiring.broker_of, core=wiring.core).total


def compare(problem: WiringProblem, methods: tuple[str, ...], *, seed: int) -> Compared:
    """Return what each of the methods finds."""
    costs, seconds, bounds = {}, {}, []
    for method in methods:
        wiring = wire(problem, method=method, seed=seed)
        costs[method] = checked_cost(problem, wiring)
        seconds[method] = wiring.seconds
        bounds.append(wiring.lower_bound)
    return Compared(costs, seconds, max(bounds))
