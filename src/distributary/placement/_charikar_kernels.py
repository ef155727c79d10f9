"""Compiled loops of the directed Steiner tree approximation (Charikar et al. 1998): level 1.

The graph is the multilayer graph of a small tree of `s` nodes and `m` formats: vertex
(u, i) is format `i` in hand at node `u`. Its metric closure is never written down: chains
of conversions are the same at every node up to the node's weight, and content only moves
from a node to its children, so distances compose along the path between two nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel
from distributary.placement._sort_kernels import sort
from distributary.placement.chains import Chains
from distributary.placement.plan import NOT_MADE, Plan

__all__ = [
    "ABSENT",
    "FROM_PARENT",
    "IN_HAND",
    "GrowingTree",
    "LayeredGraph",
    "grow_level_one",
    "join",
    "part_kept",
    "scaled",
    "seedling",
    "update_reach",
]

# How a vertex entered the tree; a value of 0 or more is the format it is made from.
ABSENT = -3
IN_HAND = -2
FROM_PARENT = -1


class LayeredGraph(NamedTuple):
    """A few nodes of a dissemination tree, each with every format: papers, "multilayer graph".

    Attributes
    ----------
    chains
        The conversions, the same at every node up to its weight.
    parents
        Parent of each node, -1 at node 0; parents come first, shape (nodes,).
    sending
        What sending a format into a node costs, shape (nodes, formats); row 0 is unused.
    weights
        What a unit of conversion costs at each node, shape (nodes,).
    """

    chains: Chains
    parents: IntArray
    sending: FloatArray
    weights: FloatArray

    def cost(self, tree: Plan) -> float:
        """Return what the edges of `tree` cost together."""
        node, made = np.nonzero(tree.made_from != NOT_MADE)
        converting = self.weights[node] * self.chains.direct[tree.made_from[node, made], made]
        return float(self.sending[tree.receives].sum() + converting.sum())


class GrowingTree(NamedTuple):
    """A tree under growth, and how far each vertex is from it; (s, m) or (s,).

    `origin` says how each vertex entered the tree, by the constants above. `reach` is the
    distance of a vertex from the tree, and `entry[u, i]` the format that is in the tree at
    `u`, or is sent to `u`, and from which a chain of conversions leads to `i`. `touched`
    says at which nodes the tree has grown since `update_reach`, and `moved` at which nodes
    that changed a distance.
    """

    origin: IntArray
    reach: FloatArray
    entry: IntArray
    touched: BoolArray
    moved: BoolArray


@kernel
def scaled(weight: float, cost: float) -> float:
    """Return weight * cost, where the impossible stays impossible even at weight 0."""
    if cost == np.inf:
        return np.inf
    return weight * cost


@inner_kernel
def seedling(s: int, sources: BoolArray) -> GrowingTree:
    """Return the tree that has only the sources (m,)."""
    m = sources.shape[0]
    origin = np.full((s, m), ABSENT, dtype=np.int64)
    for k in range(m):
        if sources[k]:
            origin[0, k] = IN_HAND
    return GrowingTree(
        origin,
        np.full((s, m), np.inf),
        np.full((s, m), -1, dtype=np.int64),
        np.ones(s, dtype=np.bool_),
        np.zeros(s, dtype=np.bool_),
    )


@inner_kernel
def update_reach(graph: LayeredGraph, tree: GrowingTree) -> None:
    """Bring up to date how far each vertex is from the tree, and where its path enters its node."""
    s, m = graph.sending.shape
    row = np.empty(m)
    for u in range(s):
        tree.moved[u] = False
        if not tree.touched[u] and (u == 0 or not tree.moved[graph.parents[u]]):
            continue
        tree.touched[u] = False
        row[:] = np.inf
        for k in range(m):
            if tree.origin[u, k] != ABSENT:
                arrival = 0.0
            elif u > 0:
                arrival = tree.reach[graph.parents[u], k] + graph.sending[u, k]
            else:
                arrival = np.inf
            if arrival == np.inf:
                continue
            for i in range(m):
                distance = arrival + scaled(graph.weights[u], graph.chains.costs[k, i])
                if distance < row[i]:
                    row[i] = distance
                    tree.entry[u, i] = k
        for i in range(m):
            if row[i] != tree.reach[u, i]:
                tree.reach[u, i] = row[i]
                tree.moved[u] = True


@kernel
def join(graph: LayeredGraph, tree: GrowingTree, u: int, i: int) -> None:
    """Add the path that leads from the tree to vertex (u, i), given by `entry`."""
    while tree.origin[u, i] == ABSENT:
        tree.touched[u] = True
        k = tree.entry[u, i]
        while i != k:
            step = graph.chains.before[k, i]
            tree.origin[u, i] = step
            i = step
            if tree.origin[u, i] != ABSENT:
                return
        tree.origin[u, i] = FROM_PARENT
        u = graph.parents[u]


@inner_kernel
def part_kept(
    parents: IntArray, origin: IntArray, terminal_node: IntArray, terminal_format: IntArray
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
    graph: LayeredGraph, sources: BoolArray, terminal_node: IntArray, terminal_format: IntArray
) -> IntArray:
    """Return the union of shortest paths from the sources (m,) to the terminals (t,), as origin."""
    tree = seedling(graph.sending.shape[0], sources)
    update_reach(graph, tree)
    t_count = terminal_node.shape[0]
    distance = np.empty(t_count)
    for t in range(t_count):
        distance[t] = tree.reach[terminal_node[t], terminal_format[t]]
    order = np.arange(t_count)
    sort(distance, order)
    for nearest in order:
        if distance[nearest] < np.inf:
            join(graph, tree, terminal_node[nearest], terminal_format[nearest])
    return part_kept(graph.parents, tree.origin, terminal_node, terminal_format)
