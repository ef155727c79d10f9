"""What a wiring costs: the one definition that every method, test and report uses."""

from __future__ import annotations

import numpy as np

from distributary.arguments import checked
from distributary.arrays import IntArray
from distributary.wiring.core import core_costs
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import WiringCost

__all__ = ["cost"]


@checked
def cost(problem: WiringProblem, broker_of: IntArray, *, core: str = "mst") -> WiringCost:
    """Return the cost of attaching every user `u` to broker `broker_of[u]`.

    Access: the traffic of every user times the price to its broker. Core: whatever enters
    a channel at a broker, times the weight of the tree that connects that broker with all
    brokers that have a subscriber of the channel.

    `core` says which tree: "mst" (the minimum spanning tree of those brokers), "steiner" (the same
    with other brokers as branching points; the best found) or "one-tree" (within one minimum
    spanning tree of all brokers).
    """
    prices = problem.access_prices[np.arange(problem.user_count), broker_of]
    return WiringCost(
        access=float(problem.demands @ prices),
        core=float(core_costs(problem, broker_of, core=core).sum()),
    )
