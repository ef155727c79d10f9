"""The loss of fidelity of a forest: the single source of truth for every method.

The loss of a server on an object is its rate times the delay of its updates: the time
that it waits, as a share of all time. It is a cost and not cut off at 1. The average is
taken over the objects of a server first and then over the servers that want something.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.arguments import checked
from distributary.arrays import FloatArray
from distributary.fidelity import _cost_kernels as kernels
from distributary.fidelity.forest import Forest
from distributary.fidelity.problem import FidelityProblem

__all__ = ["Loss", "loss"]


@dataclass(frozen=True, eq=False)
class Loss:
    """What a forest loses, and where.

    Attributes
    ----------
    average
        The average loss of fidelity; infinite when a node is overloaded.
    servers
        The loss of each node, shape (nodes,); 0 at the source and at servers that want
        nothing.
    delays
        Seconds from the source to each node, shape (nodes, trees); 0 outside the tree.
    loads
        The share of time each node is busy, shape (nodes,); overloaded from 1.
    overloaded
        The names of the overloaded nodes.
    """

    average: float
    servers: FloatArray
    delays: FloatArray
    loads: FloatArray
    overloaded: tuple[str, ...]


@checked
def loss(problem: FidelityProblem, forest: Forest) -> Loss:
    """Return the loss of fidelity of `forest`."""
    adaptation = problem.adaptation
    collecting = adaptation.collecting if adaptation else 0.0
    deciding = adaptation.deciding if adaptation else 0.0
    common = (problem.filter_times, problem.send_times, problem.delays, collecting, deciding)
    parents = np.ascontiguousarray(forest.parents)
    if forest.approach == "one-tree":
        weights = problem.weights.sum(axis=1)
        average, one_delay, loads = kernels.one_tree_loss(
            parents[0], problem.rates, weights, *common
        )
        delays = one_delay[:, None]
    else:
        weights = problem.weights
        average, delays, loads = kernels.forest_loss(parents, problem.rates, weights, *common)
    servers = max(int(problem.served.sum()), 1)
    weighted = np.zeros_like(delays)
    # Weights are zero outside the trees, where a delay means nothing.
    np.multiply(
        weights.reshape(delays.shape), delays, out=weighted, where=weights.reshape(delays.shape) > 0
    )
    overloaded = np.flatnonzero(loads >= 1.0)
    return Loss(
        float(average),
        weighted.sum(axis=1) * servers,
        delays,
        loads,
        tuple(problem.names[k] for k in overloaded),
    )
