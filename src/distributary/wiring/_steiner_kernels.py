"""Compiled: trees between brokers that may branch at brokers without subscribers.

A spanning tree of the brokers concerned is not the cheapest way to connect them: a broker
in the middle of three others may serve all of them.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel
from distributary.wiring._core_kernels import grow_tree, insertion_weight

__all__ = ["steiner_weights", "subset_weights"]

# A branching point must save more than rounding.
_SAVING = 1e-12
# Steps that may be spent on a branching point of its own for every broker of one channel.
_STEPS_MAX = 20_000_000


@kernel
def subset_weights(prices: FloatArray, branching: bool) -> FloatArray:
    """Return the weight of the tree that connects each set of brokers, by its bits.

    Parameters
    ----------
    prices
        Between brokers, shape (brokers, brokers), for at most a dozen of them.
    branching
        Whether brokers outside a set may be branching points: then a set costs no more
        than the cheapest of the sets that contain it.
    """
    count = len(prices)
    weights = np.zeros(1 << count)
    members, parents, order = (
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
    )
    edges = np.empty(count)
    for chosen in range(1, 1 << count):
        size = 0
        for b in range(count):
            if chosen >> b & 1:
                members[size] = b
                size += 1
        weights[chosen] = grow_tree(members, size, prices, parents, edges, order)
    if branching:
        for b in range(count):
            for chosen in range(1, 1 << count):
                if not chosen >> b & 1:
                    weights[chosen] = min(weights[chosen], weights[chosen | 1 << b])
    return weights


@kernel
def steiner_weights(inside: BoolArray, prices: FloatArray, rows: FloatArray) -> None:
    """Lower every weight for which a tree with branching points is found to be cheaper.

    Parameters
    ----------
    inside
        `inside[c, b]`: has broker `b` a subscriber of channel `c`?
    prices
        Between brokers.
    rows
        The weights of the spanning trees, by channel and where a message enters.
    """
    count = len(prices)
    members, parents, order, degrees = (
        np.empty(count, np.int64),
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
        _branch(prices, needed, used, members, parents, order, degrees, edges, ways, count)
        size = _grow(prices, used, members, parents, edges, order)
        weight = edges[:size].sum()
        between = used.copy()
        for b in range(count):
            if inside[c, b]:
                rows[c, b] = min(rows[c, b], weight)
            else:
                size = _grow(prices, between, members, parents, edges, order)
                joined = insertion_weight(size, order, parents, edges, prices[b], ways)
                rows[c, b] = min(rows[c, b], joined)
                if size * count * count <= _STEPS_MAX:
                    needed[:] = inside[c]
                    needed[b] = True
                    used[:] = between
                    used[b] = True
                    _branch(prices, needed, used, members, parents, order, degrees, edges, ways, 1)
                    size = _grow(prices, used, members, parents, edges, order)
                    rows[c, b] = min(rows[c, b], edges[:size].sum())


@kernel
def _grow(
    prices: FloatArray,
    used: BoolArray,
    members: IntArray,
    parents: IntArray,
    edges: FloatArray,
    order: IntArray,
) -> int:
    """Grow the spanning tree of the brokers used, and return how many they are."""
    size = 0
    for b in range(len(used)):
        if used[b]:
            members[size] = b
            size += 1
    grow_tree(members, size, prices, parents, edges, order)
    return size


@kernel
def _branch(
    prices: FloatArray,
    needed: BoolArray,
    used: BoolArray,
    members: IntArray,
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
        size = _grow(prices, used, members, parents, edges, order)
        weight = edges[:size].sum()
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
            size = _grow(prices, used, members, parents, edges, order)
            degrees[:size] = 0
            for i in range(1, size):
                degrees[i] += 1
                degrees[parents[i]] += 1
            for i in range(size):
                if degrees[i] < 3 and not needed[order[i]]:
                    used[order[i]] = False
                    dropped = True
                    break
