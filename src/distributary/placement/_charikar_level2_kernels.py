"""Compiled loops of the directed Steiner tree approximation: level 2, bunches of terminals.

`_charikar_kernels` describes the graph and the arrays.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel
from distributary.placement._charikar_kernels import (
    ABSENT,
    FROM_PARENT,
    GrowingTree,
    LayeredGraph,
    join,
    part_kept,
    scaled,
    seedling,
    update_reach,
)
from distributary.placement._sort_kernels import sort

__all__ = ["grow_level_two"]

# A scalar of NumPy is a variable to the compiler; a literal 0 would have what it is given
# to compiled once more.
_FIRST = cast(int, np.int64(0))


@inner_kernel
def _distances_to_terminals(
    graph: LayeredGraph,
    depths: IntArray,
    terminal_node: IntArray,
    terminal_format: IntArray,
) -> tuple[FloatArray, IntArray]:
    """Return how far each terminal is from the vertices at and above its node.

    `far[t, h, i]` is the distance from format `i` at the node `h` levels above the node
    of terminal `t`; `leave[t, h, i]` is the format that this path sends one level down
    (at height 0: the terminal's format). Both are (t, levels, m).
    """
    m = graph.sending.shape[1]
    levels = 1
    for node in terminal_node:
        levels = max(levels, depths[node] + 1)
    t_count = terminal_node.shape[0]
    far = np.full((t_count, levels, m), np.inf)
    leave = np.full((t_count, levels, m), -1, dtype=np.int64)
    for t in range(t_count):
        node = terminal_node[t]
        target = terminal_format[t]
        for i in range(m):
            far[t, 0, i] = scaled(graph.weights[node], graph.chains.costs[i, target])
            leave[t, 0, i] = target
        for h in range(1, depths[node] + 1):
            above = graph.parents[node]
            for k in range(m):
                onward = graph.sending[node, k] + far[t, h - 1, k]
                if onward == np.inf:
                    continue
                for i in range(m):
                    distance = onward + scaled(graph.weights[above], graph.chains.costs[i, k])
                    if distance < far[t, h, i]:
                        far[t, h, i] = distance
                        leave[t, h, i] = k
            node = above
    return far, leave


@inner_kernel
def _extend(
    graph: LayeredGraph,
    tree: GrowingTree,
    kind: int,
    terminal: int,
    height: int,
    terminal_node: IntArray,
    leave: IntArray,
) -> None:
    """Add the path to a terminal from format `kind`, in the tree `height` levels above it.

    Where the path meets the tree again, only its last part is added.
    """
    way = np.empty(height + 1, dtype=np.int64)
    u = terminal_node[terminal]
    for h in range(height + 1):
        way[h] = u
        u = graph.parents[u]
    starts = np.empty(height + 1, dtype=np.int64)
    i = kind
    for h in range(height, -1, -1):
        starts[h] = i
        i = leave[terminal, h, i]
    # Backwards from the terminal, level by level, until the path is in the tree.
    for h in range(height + 1):
        u = way[h]
        while i != starts[h]:
            if tree.origin[u, i] != ABSENT:
                return
            tree.touched[u] = True
            tree.origin[u, i] = graph.chains.before[starts[h], i]
            i = tree.origin[u, i]
        if tree.origin[u, i] != ABSENT:
            return
        tree.touched[u] = True
        tree.origin[u, i] = FROM_PARENT


@inner_kernel
def _densest(
    reach: float,
    depth: int,
    kind: int,
    nearest: IntArray,
    covered: BoolArray,
    far: FloatArray,
    depths: IntArray,
    terminal_node: IntArray,
) -> tuple[float, int]:
    """Return the lowest cost per terminal of a bunch through one vertex, and its terminals.

    `nearest` lists the terminals below the vertex, the nearest first, and `reach` is how
    far the vertex is from the tree.
    """
    density, size = np.inf, 0
    total = reach
    count = 0
    for t in nearest:
        if covered[t]:
            continue
        step = far[t, depths[terminal_node[t]] - depth, kind]
        # Once a terminal is farther than the density, so is every later one, and each
        # would only raise it.
        if total == np.inf or step == np.inf or step > density:
            break
        total += step
        count += 1
        if total / count < density:
            density, size = total / count, count
    return density, size


@kernel
def grow_level_two(
    graph: LayeredGraph, sources: BoolArray, terminal_node: IntArray, terminal_format: IntArray
) -> IntArray:
    """Return the tree grown by greedily adding the bunch of lowest density, as origin.

    A bunch is a path from the tree to some vertex, and paths from there to its nearest
    uncovered terminals; its density is its cost per terminal.
    """
    s, m = graph.sending.shape
    t_count = terminal_node.shape[0]
    depths = np.zeros(s, dtype=np.int64)
    for u in range(1, s):
        depths[u] = depths[graph.parents[u]] + 1
    far, leave = _distances_to_terminals(graph, depths, terminal_node, terminal_format)

    # For every vertex the terminals at and below its node, nearest first: those of
    # (u, i) are order[start[u] + i * below[u] :][: below[u]].
    below = np.zeros(s, dtype=np.int64)
    for t in range(t_count):
        u = terminal_node[t]
        while u >= 0:
            below[u] += 1
            u = graph.parents[u]
    start = np.zeros(s + 1, dtype=np.int64)
    for u in range(s):
        start[u + 1] = start[u] + below[u] * m
    order = np.empty(start[s], dtype=np.int64)
    filled = np.zeros(s, dtype=np.int64)
    for t in range(t_count):
        u = terminal_node[t]
        while u >= 0:
            for i in range(m):
                order[start[u] + i * below[u] + filled[u]] = t
            filled[u] += 1
            u = graph.parents[u]
    distance = np.empty(t_count)
    for u in range(s):
        for i in range(m):
            first = start[u] + i * below[u]
            for n in range(first, first + below[u]):
                t = order[n]
                distance[t] = far[t, depths[terminal_node[t]] - depths[u], i]
            sort(distance, order[first : first + below[u]])

    tree = seedling(s, sources)
    # The best bunch of each vertex is kept from round to round, until a distance to its
    # node changes or a terminal below it is covered.
    density = np.full((s, m), np.inf)
    bunch = np.zeros((s, m), dtype=np.int64)
    stale = np.ones(s, dtype=np.bool_)
    covered = np.zeros(t_count, dtype=np.bool_)
    while True:
        done = True
        for t in range(t_count):
            if covered[t]:
                continue
            if tree.origin[terminal_node[t], terminal_format[t]] == ABSENT:
                done = False
                continue
            covered[t] = True
            u = terminal_node[t]
            while u >= 0:
                stale[u] = True
                u = graph.parents[u]
        if done:
            break
        update_reach(graph, tree)
        best_node, best_format = _FIRST, _FIRST
        for u in range(s):
            for i in range(m):
                if stale[u] or tree.moved[u]:
                    first = start[u] + i * below[u]
                    density[u, i], bunch[u, i] = _densest(
                        tree.reach[u, i],
                        depths[u],
                        i,
                        order[first : first + below[u]],
                        covered,
                        far,
                        depths,
                        terminal_node,
                    )
                if density[u, i] < density[best_node, best_format]:
                    best_node, best_format = u, i
            stale[u] = False
        if density[best_node, best_format] == np.inf:
            break
        join(graph, tree, best_node, best_format)
        left = bunch[best_node, best_format]
        first = start[best_node] + best_format * below[best_node]
        for n in range(first, first + below[best_node]):
            t = order[n]
            if left > 0 and not covered[t]:
                left -= 1
                height = depths[terminal_node[t]] - depths[best_node]
                _extend(graph, tree, best_format, t, height, terminal_node, leave)
    return part_kept(graph.parents, tree.origin, terminal_node, terminal_format)
