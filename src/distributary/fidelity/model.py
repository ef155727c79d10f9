"""A problem as the arrays that the compiled planners share."""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.fidelity._state_kernels import PARENT, State, build
from distributary.fidelity.forest import OUTSIDE, ROOT, Forest, members
from distributary.fidelity.problem import FidelityProblem

__all__ = ["bare_parents", "forest_of", "servers_of", "state_of"]


def state_of(problem: FidelityProblem, approach: str, parents: IntArray) -> State:
    """Return the state of the trees with these parents, shape (trees, nodes)."""
    adaptation = problem.adaptation
    shares = (adaptation.collecting, adaptation.deciding) if adaptation else (0.0, 0.0)
    rates: FloatArray
    if approach == "one-tree":
        rates = problem.rates[None].copy()
        weights = problem.weights.sum(axis=1)[None]
    else:
        rates = problem.rates.T[:, :, None].copy()
        weights = problem.weights.T
    # Copies of the rest, because arrays that may not be written to are another type to the
    # compiler; the delays of ten thousand servers fill most of a gigabyte and are shared.
    return build(
        np.array(parents, dtype=np.int64, order="C"),
        rates,
        np.array(weights, dtype=np.float64, order="C"),
        problem.filter_times.copy(),
        problem.send_times.copy(),
        problem.delays,
        np.array(shares),
    )


def forest_of(state: State, approach: str) -> Forest:
    """Return the trees that a state has reached."""
    return Forest(approach, state.links[:, :, PARENT].copy())


def bare_parents(problem: FidelityProblem, approach: str) -> IntArray:
    """Return trees with nothing but the source in them."""
    parents = np.full(members(problem, approach).shape, OUTSIDE, dtype=np.int64)
    parents[:, 0] = ROOT
    return parents


def servers_of(problem: FidelityProblem, approach: str) -> tuple[IntArray, IntArray]:
    """Return the servers of all trees as (start, server), tree by tree."""
    inside = members(problem, approach)
    inside[:, 0] = False
    start = np.zeros(len(inside) + 1, dtype=np.int64)
    np.cumsum(inside.sum(axis=1), out=start[1:])
    return start, np.nonzero(inside)[1].astype(np.int64)
