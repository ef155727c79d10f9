"""Flows: how much traffic a wiring sends between each pair of brokers."""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.wiring._flow_kernels import flows_along_spanning_trees, flows_in_tree
from distributary.wiring.core import broker_tree, traffic
from distributary.wiring.problem import WiringProblem

__all__ = ["carried", "flows"]


def flows(problem: WiringProblem, broker_of: IntArray, *, core: str = "mst") -> FloatArray:
    """Return the traffic between brokers, both ways together.

    Times the prices between them, it is what `cost` calls the core.

    `core` is "mst" or "one-tree". The result, shape (brokers, brokers), is zero but above the
    diagonal.
    """
    entering, subscribers = traffic(problem, broker_of)
    return carried(problem.core_prices, entering, subscribers > 0, core=core)


def carried(
    prices: FloatArray, entering: FloatArray, inside: BoolArray, *, core: str = "mst"
) -> FloatArray:
    """Return the traffic between brokers, as `flows` does, from what they have of each channel.

    `entering[c, b]` is what enters channel `c` at broker `b`, and `inside[c, b]` says whether `b`
    has a subscriber of `c`.
    """
    assert core in ("mst", "one-tree")
    found = np.zeros(prices.shape)
    if core == "one-tree":
        tree = broker_tree(prices)
        flows_in_tree(entering, inside, tree.order, tree.parents, found)
    else:
        flows_along_spanning_trees(entering, inside, prices, found)
    return found
