"""The trees that Zhou, Ooi and Tan compare with (section 5.1).

Each is what somebody would build without a cost model. They are valid, can be any factor
away from the best tree, and may overload nodes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from distributary.errors import BadInput, quoted
from distributary.fidelity._descent_kernels import nearest_nodes
from distributary.fidelity._dita_kernels import limited_tree
from distributary.fidelity.forest import OUTSIDE, ROOT, Forest, members
from distributary.fidelity.loss import loss
from distributary.fidelity.problem import FidelityProblem

__all__ = ["dita_tree", "random_tree", "source_tree"]

# How many of the nearest nodes are remembered for each server. Nearly always one of them
# has room; where none has, all nodes with room are looked at.
_NEAREST_COUNT = 32
# Up to this many fanout limits are all tried; of more, a sample that closes in on the best.
_LIMITS_ALL_TRIED = 512


def source_tree(problem: FidelityProblem, approach: str) -> Forest:
    """Return the forest in which everybody is right below the source."""
    parents = np.where(members(problem, approach), 0, OUTSIDE)
    parents[:, 0] = ROOT
    return Forest(approach, parents)


def random_tree(problem: FidelityProblem, approach: str, *, seed: int) -> Forest:
    """Return a random forest: nodes in random order, each below any node before it."""
    rng = np.random.default_rng(seed)
    inside = members(problem, approach)
    parents = np.where(inside, ROOT, OUTSIDE)
    for tree, row in enumerate(inside):
        servers = rng.permutation(np.flatnonzero(row[1:]) + 1)
        before = np.concatenate([[0], servers])
        parents[tree, servers] = before[rng.integers(0, np.arange(1, len(before)))]
    return Forest(approach, parents)


def dita_tree(problem: FidelityProblem, approach: str, *, fanout: int | None = None) -> Forest:
    """Return the forest of DiTA, in the centralised version that the paper compares with.

    Servers join in the order of their rates, the largest first, so that nobody is below a
    server that needs less; each goes below the node with the smallest delay to it that
    still has room. In one tree for several objects, the rates of all objects together make
    the order. Time is about proportional to the square of the number of servers.

    `fanout` is how many children a node may have in a tree, the same for all nodes and trees. When
    it is not given, the one with the least average loss is searched for, as the paper does; when
    all of them overload some node, the one with the smallest largest load. Up to about five hundred
    limits are all tried; beyond that the search looks at a geometric row of them and closes in on
    the best. Raises `BadInput` when it is less than 1.
    """
    if fanout is not None and fanout < 1:
        raise BadInput("fanout", f"{quoted(fanout)} is less than 1")
    inside = members(problem, approach)
    keys = problem.rates.sum(axis=1)[None, :] if approach == "one-tree" else problem.rates.T
    orders = []
    for row, key in zip(inside, keys, strict=True):
        servers = np.flatnonzero(row[1:]) + 1
        orders.append(servers[np.argsort(-key[servers], kind="stable")])
    n = problem.node_count
    near = nearest_nodes(
        np.zeros((1, n)),
        problem.delays,
        np.array([0, n - 1]),
        np.arange(1, n),
        min(_NEAREST_COUNT, n),
    )[0]

    def build(limit: int) -> tuple[Forest, int]:
        parents = np.where(inside, ROOT, OUTSIDE)
        widest = 0
        for row, order in zip(parents, orders, strict=True):
            widest = max(widest, limited_tree(order, problem.delays, near, limit, row))
        return Forest(approach, parents), widest

    if fanout is not None:
        return build(fanout)[0]
    # A limit that no node reaches changes nothing, so that larger ones need no trial.
    _, widest = build(problem.node_count)

    def quality(limit: int) -> tuple[float, float]:
        found = loss(problem, build(limit)[0])
        return found.average, float(found.loads.max())

    return build(_best_limit(quality, max(widest, 1)))[0]


def _best_limit(quality: Callable[[int], tuple[float, float]], largest: int) -> int:
    """Return the limit from 1 to `largest` with the least quality; of equal ones the smallest."""
    if largest <= _LIMITS_ALL_TRIED:
        return min(range(1, largest + 1), key=lambda limit: (quality(limit), limit))
    tried: dict[int, tuple[float, float]] = {}
    step = 1
    while step < largest:
        tried |= {limit: quality(limit) for limit in {step, step * 3 // 2}}
        step *= 2
    tried[largest] = quality(largest)
    while True:
        best = min(tried, key=lambda limit: (tried[limit], limit))
        below = max((limit for limit in tried if limit < best), default=best)
        above = min((limit for limit in tried if limit > best), default=best)
        closer = {(below + best) // 2, (best + above + 1) // 2} - tried.keys()
        if not closer:
            return best
        tried |= {limit: quality(limit) for limit in closer}
