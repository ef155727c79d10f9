"""Compiled loops of the directed Steiner tree approximation (Charikar et al. 1998): level 1.

The graph is the multilayer graph of a small tree of `s` nodes and `m` formats: vertex
(u, i) is format `i` in hand at node `u`. Its metric closure is never written down: chains
of conversions are the same at every node up to the node's weight, and content only moves
from a node to its children, so distances compose along the path between two nodes.

Arrays that all kernels share:

- `parents`, (s,) int64: -1 at node 0, otherwise the index of a node that comes earlier;
- `sending`, (s, m) float64: what sending each format into a node costs; row 0 is unused;
- `weights`, (s,) float64: what a unit of conversion costs at each node;
- `chain`, `before`, (m, m): cheapest chains of conversions and their predecessors;
- `origin`, (s, m) int64: the tree grown so far, see the constants below.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel

__all__ = [
    "ABSENT",
    "FROM_PARENT",
    "IN_HAND",
    "grow_level_one",
    "join",
    "part_kept",
    "scaled",
    "seedling",
    "sort",
    "update_reach",
]

# How a vertex entered the tree; a value of 0 or more is the format it is made from.
ABSENT = -3
IN_HAND = -2
FROM_PARENT = -1


@kernel
def scaled(weight: float, cost: float) -> float:
    """Return weight * cost, where the impossible stays impossible even at weight 0."""
    if cost == np.inf:
        return np.inf
    return weight * cost


@kernel
def sort(keys: FloatArray, items: IntArray) -> None:
    """Sort `items` in place by their keys, smallest first; equal ones keep their order.

    A plain merge sort: the library's takes seconds to compile.
    """
    count = items.shape[0]
    spare = np.empty(count, dtype=np.int64)
    width = 1
    while width < count:
        for first in range(0, count, 2 * width):
            middle = min(first + width, count)
            end = min(first + 2 * width, count)
            left, right = first, middle
            for position in range(first, end):
                if right == end or (left < middle and keys[items[left]] <= keys[items[right]]):
                    spare[position] = items[left]
                    left += 1
                else:
                    spare[position] = items[right]
                    right += 1
        items[:] = spare
        width *= 2


@kernel
def seedling(
    s: int, sources: BoolArray
) -> tuple[IntArray, BoolArray, FloatArray, IntArray, BoolArray]:
    """Return the tree that has only the sources (m,), and what growing it keeps up to date.

    These are `origin`, and `touched`, `reach`, `entry` and `moved` as `update_reach` wants
    them for its first time.
    """
    m = sources.shape[0]
    origin = np.full((s, m), ABSENT, dtype=np.int64)
    for k in range(m):
        if sources[k]:
            origin[0, k] = IN_HAND
    reach = np.full((s, m), np.inf)
    entry = np.full((s, m), -1, dtype=np.int64)
    touched = np.ones(s, dtype=np.bool_)
    moved = np.zeros(s, dtype=np.bool_)
    return origin, touched, reach, entry, moved


@kernel
def update_reach(
    parents: IntArray,
    sending: FloatArray,
    weights: FloatArray,
    chain: FloatArray,
    origin: IntArray,
    touched: BoolArray,
    reach: FloatArray,
    entry: IntArray,
    moved: BoolArray,
) -> None:
    """Bring up to date how far each vertex is from the tree, and where its path enters its node.

    `reach` and `entry` are (s, m); `entry[u, i]` is the format that is in the tree at `u`,
    or is sent to `u`, and from which a chain of conversions leads to `i`. `touched`, (s,),
    says at which nodes the tree has grown, and is cleared; `moved`, (s,), comes back saying
    at which nodes a distance has changed.
    """
    s, m = sending.shape
    row = np.empty(m)
    for u in range(s):
        moved[u] = False
        if not touched[u] and (u == 0 or not moved[parents[u]]):
            continue
        touched[u] = False
        row[:] = np.inf
        for k in range(m):
            if origin[u, k] != ABSENT:
                arrival = 0.0
            elif u > 0:
                arrival = reach[parents[u], k] + sending[u, k]
            else:
                arrival = np.inf
            if arrival == np.inf:
                continue
            for i in range(m):
                distance = arrival + scaled(weights[u], chain[k, i])
                if distance < row[i]:
                    row[i] = distance
                    entry[u, i] = k
        for i in range(m):
            if row[i] != reach[u, i]:
                reach[u, i] = row[i]
                moved[u] = True


@kernel
def join(
    node: int,
    kind: int,
    parents: IntArray,
    before: IntArray,
    entry: IntArray,
    origin: IntArray,
    touched: BoolArray,
) -> None:
    """Add the path that leads from the tree to vertex (node, kind), given by `entry`."""
    u, i = node, kind
    while origin[u, i] == ABSENT:
        touched[u] = True
        k = entry[u, i]
        while i != k:
            step = before[k, i]
            origin[u, i] = step
            i = step
            if origin[u, i] != ABSENT:
                return
        origin[u, i] = FROM_PARENT
        u = parents[u]


@kernel
def part_kept(
    parents: IntArray,
    terminal_node: IntArray,
    terminal_format: IntArray,
    origin: IntArray,
) -> IntArray:
    """Return the part of the tree that leads to terminals; a missed terminal stays absent."""
    kept = np.full(origin.shape, ABSENT, dtype=np.int64)
    for t in range(terminal_node.shape[0]):
        u, i = terminal_node[t], terminal_format[t]
        while kept[u, i] == ABSENT and origin[u, i] != ABSENT:
            kept[u, i] = origin[u, i]
            if origin[u, i] == IN_HAND:
                break
            if origin[u, i] == FROM_PARENT:
                u = parents[u]
            else:
                i = origin[u, i]
    return kept


@kernel
def grow_level_one(
    parents: IntArray,
    sending: FloatArray,
    weights: FloatArray,
    chain: FloatArray,
    before: IntArray,
    sources: BoolArray,
    terminal_node: IntArray,
    terminal_format: IntArray,
) -> IntArray:
    """Return the union of shortest paths from the sources (m,) to the terminals (t,), as origin."""
    origin, touched, reach, entry, moved = seedling(sending.shape[0], sources)
    update_reach(parents, sending, weights, chain, origin, touched, reach, entry, moved)
    t_count = terminal_node.shape[0]
    distance = np.empty(t_count)
    for t in range(t_count):
        distance[t] = reach[terminal_node[t], terminal_format[t]]
    order = np.arange(t_count)
    sort(distance, order)
    for position in range(t_count):
        t = order[position]
        if distance[t] < np.inf:
            join(terminal_node[t], terminal_format[t], parents, before, entry, origin, touched)
    return part_kept(parents, terminal_node, terminal_format, origin)
