"""A problem as the arrays that the compiled planners share."""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.fidelity._state_kernels import (
    FILTER,
    OWNER,
    PARENT,
    PEAK,
    SEND,
    WEIGHT,
    PackedForest,
    fill,
)
from distributary.fidelity.forest import OUTSIDE, ROOT, Forest, members
from distributary.fidelity.problem import FidelityProblem

__all__ = ["bare_parents", "forest_of", "servers_of", "state_of", "tree_state"]


def state_of(problem: FidelityProblem, approach: str, parents: IntArray) -> PackedForest:
    """Return the packed forest with these parents, shape (trees, nodes)."""
    adaptation = problem.adaptation
    shares = (adaptation.collecting, adaptation.deciding) if adaptation else (0.0, 0.0)
    rates: FloatArray
    if approach == "one-tree":
        rates = problem.rates[None].copy()
        weights = problem.weights.sum(axis=1)[None]
    else:
        rates = problem.rates.T[:, :, None].copy()
        weights = problem.weights.T
    return tree_state(
        parents,
        rates,
        weights,
        (problem.filter_times, problem.send_times),
        problem.delays,
        adaptation=shares,
    )


def tree_state(
    parents: IntArray,
    rates: FloatArray,
    weights: FloatArray,
    times: tuple[FloatArray, FloatArray],
    delays: FloatArray,
    *,
    adaptation: tuple[float, float] = (0.0, 0.0),
) -> PackedForest:
    """Return the state of trees: `parents` and `weights` (t, n), `rates` (t, n, x).

    `times` are those to filter and to send. The delays of ten thousand servers fill most of
    a gigabyte and are shared, and may not be written to from now on: the compiler takes
    arrays that may for another type.
    """
    trees, n, objects = rates.shape
    delays.flags.writeable = False
    links = np.full((trees, n, 4), -1, dtype=np.int64)
    links[:, :, PARENT] = parents
    sums = np.zeros((trees, n, 11))
    sums[:, :, WEIGHT] = weights
    nodes = np.zeros((n, 6))
    nodes[:, FILTER], nodes[:, SEND] = times
    peaks = np.zeros((trees, n, 4, objects))
    peaks[:, :, PEAK, :] = rates
    peaks[:, :, OWNER, :] = -1.0
    state = PackedForest(
        links=links,
        sums=sums,
        peaks=peaks,
        nodes=nodes,
        rates=rates,
        delays=delays,
        adaptation=np.array(adaptation),
        total=np.zeros(1),
        rows=np.zeros((4, objects)),
    )
    fill(state, np.array(parents, dtype=np.int64, order="C"))
    return state


def forest_of(state: PackedForest, approach: str) -> Forest:
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
