"""Flows: how much traffic a wiring sends between each pair of brokers."""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.wiring._flow_kernels import flows_along_spanning_trees, flows_in_tree
from distributary.wiring.core import broker_tree, traffic
from distributary.wiring.problem import WiringProblem

__all__ = ["flows"]


def flows(problem: WiringProblem, broker_of: IntArray, *, core: str = "mst") -> FloatArray:
    """Return the traffic between brokers, both ways together.

    Times the prices between them, it is what `cost` calls the core.

    Parameters
    ----------
    problem
        Users, brokers and prices.
    broker_of
        The broker of every user, shape (users,).
    core
        "mst" or "one-tree".

    Returns
    -------
    FloatArray
        Shape (brokers, brokers), above the diagonal; zero elsewhere.
    """
    assert core in ("mst", "one-tree")
    entering, subscribers = traffic(problem, broker_of)
    inside = subscribers > 0
    carried = np.zeros((problem.broker_count, problem.broker_count))
    if core == "one-tree":
        tree = broker_tree(problem.core_prices)
        flows_in_tree(entering, inside, tree.order, tree.parents, carried)
    else:
        flows_along_spanning_trees(entering, inside, problem.core_prices, carried)
    return carried
