"""Compiled: what it costs to reach the brokers of one channel from each broker.

A channel has a set of brokers with subscribers. A message of the channel that enters at
broker `b` travels along the minimum spanning tree of that set and `b`.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel

__all__ = [
    "grow_tree",
    "grow_tree_inside",
    "insertion_weight",
    "reach_by_spanning_trees",
    "reach_in_one_tree",
    "reach_in_tree",
]


@kernel
def grow_tree(
    count: int, prices: FloatArray, parents: IntArray, edges: FloatArray, order: IntArray
) -> float:
    """Grow the minimum spanning tree of the first `count` brokers in `order`; return its weight.

    Filled, at least `count` long: `order[i]` is the i-th broker to join (the first there joins
    first), `parents[i]` the position in `order` of the one it joins, always smaller than `i`, and
    `edges[i]` the price between them. `prices` (brokers, brokers) are those between brokers.
    """
    if count == 0:
        return 0.0
    # Brokers that have not joined stand in `order` from `done` on; `edges` and `parents`
    # have the cheapest way to each of them so far.
    for i in range(count):
        edges[i] = np.inf
        parents[i] = 0
    edges[0] = 0.0
    parents[0] = -1
    weight = 0.0
    last = order[0]
    for done in range(1, count):
        best = done
        best_price = np.inf
        for i in range(done, count):
            price = prices[last, order[i]]
            if price < edges[i]:
                edges[i] = price
                parents[i] = done - 1
            if edges[i] < best_price:
                best_price = edges[i]
                best = i
        last = order[best]
        parent = parents[best]
        order[best], edges[best], parents[best] = order[done], edges[done], parents[done]
        order[done], edges[done], parents[done] = last, best_price, parent
        weight += best_price
    return weight


@kernel
def insertion_weight(
    count: int,
    order: IntArray,
    parents: IntArray,
    edges: FloatArray,
    added: FloatArray,
    ways: FloatArray,
) -> float:
    """Return the weight of the spanning tree with one broker more, in one pass.

    From the leaves up, the subtree of each node keeps open only its cheapest connection to
    the new broker: of that and the edge to the parent the dearer one goes up, and the
    other is in the tree for good (Chin and Houck).

    The tree is as `grow_tree` makes it; `added` are the prices between the new broker and every
    broker, `ways` is room for `count` numbers.
    """
    if count == 0:
        return 0.0
    weight = 0.0
    for i in range(count):
        ways[i] = added[order[i]]
    for i in range(count - 1, 0, -1):
        way = ways[i]
        edge = edges[i]
        if way < edge:
            weight += way
            dearer = edge
        else:
            weight += edge
            dearer = way
        parent = parents[i]
        if dearer < ways[parent]:
            ways[parent] = dearer
    return float(weight + ways[0])


@inner_kernel
def grow_tree_inside(
    inside: BoolArray, prices: FloatArray, parents: IntArray, edges: FloatArray, order: IntArray
) -> tuple[int, float]:
    """Grow the spanning tree of the brokers inside; return how many they are, and its weight."""
    count = 0
    for b in range(len(inside)):
        if inside[b]:
            order[count] = b
            count += 1
    return count, grow_tree(count, prices, parents, edges, order)


@kernel
def reach_by_spanning_trees(inside: BoolArray, prices: FloatArray, rows: FloatArray) -> None:
    """Fill `rows[c, b]` with the weight of the spanning tree of the brokers inside and `b`.

    `inside[c, b]` says whether `b` is a broker of channel `c`. Without any of them nothing
    has to be sent anywhere, and the weights are 0.
    """
    brokers = len(prices)
    parents, order = np.empty(brokers, np.int64), np.empty(brokers, np.int64)
    edges, ways = np.empty(brokers), np.empty(brokers)
    for c in range(len(inside)):
        count, weight = grow_tree_inside(inside[c], prices, parents, edges, order)
        for b in range(brokers):
            if inside[c, b]:
                rows[c, b] = weight
            else:
                rows[c, b] = insertion_weight(count, order, parents, edges, prices[b], ways)


@kernel
def reach_in_one_tree(
    inside: BoolArray,
    tree_order: IntArray,
    tree_parents: IntArray,
    tree_edges: FloatArray,
    rows: FloatArray,
) -> None:
    """Fill `rows[c, b]` as `reach_in_tree` does for each channel."""
    below, away = np.empty(len(tree_order), np.int64), np.empty(len(tree_order))
    for c in range(len(inside)):
        reach_in_tree(inside[c], tree_order, tree_parents, tree_edges, below, away, rows[c])


@inner_kernel
def reach_in_tree(
    inside: BoolArray,
    tree_order: IntArray,
    tree_parents: IntArray,
    tree_edges: FloatArray,
    below: IntArray,
    away: FloatArray,
    row: FloatArray,
) -> float:
    """Fill `row[b]` with the weight of what connects `b` and those inside in one given tree.

    The tree of all brokers is as `grow_tree` makes it; `below` and `away` are room for as many
    numbers as there are brokers. Returns the weight of the part that connects the brokers inside.
    """
    count = len(inside)
    total = 0
    for i in range(count):
        below[i] = 1 if inside[tree_order[i]] else 0
        total += below[i]
    if total == 0:
        row[:] = 0.0
        return 0.0
    weight = 0.0
    for i in range(count - 1, 0, -1):
        below[tree_parents[i]] += below[i]
        if 0 < below[i] < total:
            weight += tree_edges[i]
    # The part of the tree between the brokers inside: `away` is how far a broker is from
    # it. Above its top there is a chain of nodes with all of them below.
    for i in range(count):
        away[i] = 0.0
    top = 0
    for i in range(1, count):
        if below[i] == total:
            top = i  # Deeper than the last one, for parents come first.
    i = top
    while i > 0:
        parent = tree_parents[i]
        away[parent] = away[i] + tree_edges[i]
        i = parent
    for i in range(1, count):
        parent = tree_parents[i]
        if below[i] == 0:
            away[i] = away[parent] + tree_edges[i]
    for i in range(count):
        row[tree_order[i]] = weight + away[i]
    return weight
