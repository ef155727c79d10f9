"""Charikar et al.'s approximation, levels 1 and 2, on a graph written out edge by edge.

The metric closure is computed from every vertex of the explicit multilayer graph, and the
tree is a dictionary from vertex to predecessor.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from distributary.placement.charikar import LayeredGraph

Vertex = tuple[int, int]
Edges = dict[Vertex, dict[Vertex, float]]


def steiner_cost(
    graph: LayeredGraph, sources: Iterable[int], terminals: Iterable[Vertex], level: int
) -> float:
    """Return the cost of the approximate tree."""
    edges = explicit_edges(graph)
    grow = level_one if level == 1 else level_two
    tree = grow(edges, {(0, k) for k in sources}, sorted(terminals))
    used: set[Vertex] = set()
    for terminal in terminals:
        vertex: Vertex | None = terminal
        while vertex is not None and vertex not in used:
            used.add(vertex)
            vertex = tree[vertex]
    return sum(edges[before][v] for v in used if (before := tree[v]) is not None)


def explicit_edges(graph: LayeredGraph) -> Edges:
    """Return all edges of the multilayer graph."""
    node_count, m = graph.sending.shape
    edges: Edges = {(v, k): {} for v in range(node_count) for k in range(m)}
    for v in range(node_count):
        for i, j in np.argwhere(np.isfinite(graph.chains.direct)).tolist():
            edges[v, i][v, j] = float(graph.weights[v] * graph.chains.direct[i, j])
        if v > 0:
            for k in range(m):
                edges[int(graph.parents[v]), k][v, k] = float(graph.sending[v, k])
    return edges


def level_one(
    edges: Edges, sources: set[Vertex], terminals: list[Vertex]
) -> dict[Vertex, Vertex | None]:
    """Return the union of shortest paths from the sources."""
    tree: dict[Vertex, Vertex | None] = dict.fromkeys(sources)
    distance, before = shortest_paths(edges, sources)
    for terminal in sorted(terminals, key=lambda t: distance[t]):
        attach(tree, before, terminal)
    return tree


def level_two(
    edges: Edges, sources: set[Vertex], terminals: list[Vertex]
) -> dict[Vertex, Vertex | None]:
    """Return the tree of lowest-density bunches, where what is in the tree is free."""
    tree: dict[Vertex, Vertex | None] = dict.fromkeys(sources)
    closure = {v: shortest_paths(edges, {v}) for v in edges}
    while uncovered := [t for t in terminals if t not in tree]:
        distance, before = shortest_paths(edges, set(tree))
        bunches = []
        for center, reach in distance.items():
            nearest = sorted(
                (t for t in uncovered if t in closure[center][0]),
                key=lambda t: closure[center][0][t],
            )
            total = reach
            for size, terminal in enumerate(nearest, start=1):
                total += closure[center][0][terminal]
                bunches.append((total / size, center, nearest[:size]))
        _, center, covered = min(bunches)
        attach(tree, before, center)
        for terminal in covered:
            attach(tree, closure[center][1], terminal)
    return tree


def attach(tree: dict[Vertex, Vertex | None], before: dict[Vertex, Vertex], vertex: Vertex) -> None:
    """Add the path to `vertex`, from the last of its vertices that is in the tree."""
    while vertex not in tree:
        tree[vertex] = before[vertex]
        vertex = before[vertex]


def shortest_paths(
    edges: Edges, starts: set[Vertex]
) -> tuple[dict[Vertex, float], dict[Vertex, Vertex]]:
    """Return the distance of every vertex that can be reached, and its predecessor."""
    distance = dict.fromkeys(starts, 0.0)
    before: dict[Vertex, Vertex] = {}
    queue = [(0.0, start) for start in sorted(starts)]
    while queue:
        reached, v = heapq.heappop(queue)
        if reached > distance[v]:
            continue
        for w, cost in edges[v].items():
            if reached + cost < distance.get(w, np.inf):
                distance[w] = reached + cost
                before[w] = v
                heapq.heappush(queue, (reached + cost, w))
    return distance, before
