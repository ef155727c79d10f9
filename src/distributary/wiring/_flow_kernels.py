"""Compiled: how much traffic each pair of brokers carries."""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel
from distributary.wiring._core_kernels import grow_tree_inside

__all__ = ["flows_along_spanning_trees", "flows_in_tree"]


@kernel
def flows_along_spanning_trees(
    entering: FloatArray, inside: BoolArray, prices: FloatArray, flows: FloatArray
) -> None:
    """Add to `flows` what the minimum spanning trees of all channels carry.

    `entering[c, b]` enters channel `c` at broker `b`, and `inside[c, b]` says whether `b` has a
    subscriber of `c`; `flows` (brokers, brokers) is added to at [b, b'] with b < b'.
    """
    count = len(prices)
    parents, order = np.empty(count, np.int64), np.empty(count, np.int64)
    ends = np.empty((count, 2), np.int64)
    edges, ways = np.empty(count), np.empty(count)
    for c in range(len(inside)):
        size, _ = grow_tree_inside(inside[c], prices, parents, edges, order)
        if size == 0:
            continue
        within = 0.0
        for b in range(count):
            if inside[c, b]:
                within += entering[c, b]
        for i in range(1, size):
            _add(flows, order[i], order[parents[i]], within)
        for b in range(count):
            if entering[c, b] > 0.0 and not inside[c, b]:
                rate = entering[c, b]
                # The pass of `insertion_weight`, which here remembers what it keeps.
                for i in range(size):
                    ways[i] = prices[b, order[i]]
                    ends[i, 0] = b
                    ends[i, 1] = order[i]
                for i in range(size - 1, 0, -1):
                    parent = parents[i]
                    first, last, dearer = ends[i, 0], ends[i, 1], ways[i]
                    if ways[i] < edges[i]:
                        _add(flows, first, last, rate)
                        first, last, dearer = order[i], order[parent], edges[i]
                    else:
                        _add(flows, order[i], order[parent], rate)
                    if dearer < ways[parent]:
                        ways[parent] = dearer
                        ends[parent, 0] = first
                        ends[parent, 1] = last
                _add(flows, ends[0, 0], ends[0, 1], rate)


@inner_kernel
def _add(flows: FloatArray, one: int, other: int, rate: float) -> None:
    """Add to the traffic of a pair of brokers, the smaller first."""
    if one < other:
        flows[one, other] += rate
    else:
        flows[other, one] += rate


@kernel
def flows_in_tree(
    entering: FloatArray,
    inside: BoolArray,
    tree_order: IntArray,
    tree_parents: IntArray,
    flows: FloatArray,
) -> None:
    """Add to `flows` what one tree of all brokers carries.

    The tree is as `grow_tree` makes it, the others are as for `flows_along_spanning_trees`.
    """
    count = len(tree_order)
    below, rates = np.empty(count, np.int64), np.empty(count)
    for c in range(len(inside)):
        for i in range(count):
            below[i] = 1 if inside[c, tree_order[i]] else 0
            rates[i] = entering[c, tree_order[i]]
        for i in range(count - 1, 0, -1):
            below[tree_parents[i]] += below[i]
            rates[tree_parents[i]] += rates[i]
        wanted, total = below[0], rates[0]
        if wanted == 0:
            continue
        for i in range(1, count):
            rate = 0.0
            # What enters on one side of a link crosses it if it is wanted on the other.
            if below[i] < wanted:
                rate += rates[i]
            if below[i] > 0:
                rate += total - rates[i]
            _add(flows, tree_order[i], tree_order[tree_parents[i]], rate)
