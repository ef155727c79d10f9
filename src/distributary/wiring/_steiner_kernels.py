"""Compiled: trees between brokers that may branch at brokers without subscribers.

A spanning tree of the brokers concerned is not the cheapest way to connect them: a broker
in the middle of three others may serve all of them.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel
from distributary.wiring._core_kernels import grow_tree, grow_tree_inside, insertion_weight

__all__ = ["steiner_weights", "subset_weights"]

# A branching point must save more than rounding.
_SAVING = 1e-12
# Steps that may be spent on a branching point of its own for every broker of one channel.
_STEPS_MAX = 20_000_000


@kernel
def subset_weights(prices: FloatArray, branching: bool) -> FloatArray:
    """Return the weight of the tree that connects each set of brokers, by its bits.

    For at most a dozen brokers. With `branching`, brokers outside a set may be branching points:
    then a set costs no more than the cheapest of the sets that contain it.
    """
    count = len(prices)
    weights = np.zeros(1 << count)
    parents, order = np.empty(count, np.int64), np.empty(count, np.int64)
    edges = np.empty(count)
    for chosen in range(1, 1 << count):
        size = 0
        for b in range(count):
            if chosen >> b & 1:
                order[size] = b
                size += 1
        weights[chosen] = grow_tree(size, prices, parents, edges, order)
    if branching:
        for b in range(count):
            for chosen in range(1, 1 << count):
                if not chosen >> b & 1:
                    weights[chosen] = min(weights[chosen], weights[chosen | 1 << b])
    return weights


@kernel
def steiner_weights(inside: BoolArray, prices: FloatArray, rows: FloatArray) -> None:
    """Lower every weight for which a tree with branching points is found to be cheaper.

    `inside[c, b]` says whether broker `b` has a subscriber of channel `c`; `rows` has the weights
    of the spanning trees, by channel and where a message enters.
    """
    count = len(prices)
    parents, order, degrees = (
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
    )
    edges, ways = np.empty(count), np.empty(count)
    needed, used = np.empty(count, np.bool_), np.empty(count, np.bool_)
    for c in range(len(inside)):
        if not inside[c].any():
            continue
        needed[:] = inside[c]
        used[:] = needed
        _branch(prices, needed, used, parents, order, degrees, edges, ways, count)
        size, weight = grow_tree_inside(used, prices, parents, edges, order)
        between = used.copy()
        for b in range(count):
            if inside[c, b]:
                rows[c, b] = min(rows[c, b], weight)
            else:
                size, _ = grow_tree_inside(between, prices, parents, edges, order)
                joined = insertion_weight(size, order, parents, edges, prices[b], ways)
                rows[c, b] = min(rows[c, b], joined)
                if size * count * count <= _STEPS_MAX:
                    needed[:] = inside[c]
                    needed[b] = True
                    used[:] = between
                    used[b] = True
                    _branch(prices, needed, used, parents, order, degrees, edges, ways, 1)
                    _, weight_of_all = grow_tree_inside(used, prices, parents, edges, order)
                    rows[c, b] = min(rows[c, b], weight_of_all)


@inner_kernel
def _branch(
    prices: FloatArray,
    needed: BoolArray,
    used: BoolArray,
    parents: IntArray,
    order: IntArray,
    degrees: IntArray,
    edges: FloatArray,
    ways: FloatArray,
    points_max: int,
) -> None:
    """Take the branching point that saves most into `used`, as long as one saves anything.

    A branching point with fewer than three neighbours saves nothing and is dropped.
    """
    for _ in range(points_max):
        size, weight = grow_tree_inside(used, prices, parents, edges, order)
        best = -1
        best_weight = weight * (1.0 - _SAVING)
        for b in range(len(used)):
            if not used[b]:
                with_it = insertion_weight(size, order, parents, edges, prices[b], ways)
                if with_it < best_weight:
                    best_weight = with_it
                    best = b
        if best < 0:
            return
        used[best] = True
        dropped = True
        while dropped:
            dropped = False
            size, _ = grow_tree_inside(used, prices, parents, edges, order)
            degrees[:size] = 0
            for i in range(1, size):
                degrees[i] += 1
                degrees[parents[i]] += 1
            for i in range(size):
                if degrees[i] < 3 and not needed[order[i]]:
                    used[order[i]] = False
                    dropped = True
                    break
