"""Who attaches to which broker, by a rule: everybody at one of two, whichever is cheaper."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from distributary.errors import InfeasiblePlan, InvalidPlan
from distributary.wiring import WiringProblem, check, cost

__all__ = ["two_homes"]


def two_homes(problem: WiringProblem, *, core: str) -> NDArray[np.int64]:
    """Try every pair of brokers, with every user at the cheaper of the two; keep the best.

    Few brokers have little to tell each other. Where brokers have capacities, pairs without room
    are left out.
    """
    best: NDArray[np.int64] | None = None
    least = np.inf
    for pair in combinations(range(problem.broker_count), min(2, problem.broker_count)):
        prices = problem.access_prices[:, pair]
        broker_of = np.array(pair, dtype=np.int64)[prices.argmin(axis=1)]
        try:
            check(problem, broker_of)
        except InvalidPlan:
            continue
        total = cost(problem, broker_of, core=core).total
        if total < least:
            best, least = broker_of, total
    if best is None:
        shortfall = float(problem.demands.sum() - np.sort(problem.capacities)[-2:].sum())
        raise InfeasiblePlan("no two brokers have room for everybody", shortfall=shortfall)
    return best
