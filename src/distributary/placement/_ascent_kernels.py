"""Dual ascent and path heuristics on the multilayer graph.

Shapes: `n` brokers, `m` formats, `e` conversions; vertices are `v * m + k`.
"""

from __future__ import annotations

import heapq

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel
from distributary.placement.multilayer import MultilayerGraph

__all__ = ["ascend", "connect"]


@kernel
def ascend(
    graph: MultilayerGraph,
    guide: IntArray,
    conversion_left: FloatArray,
    transmission_left: FloatArray,
) -> float:
    """Raise dual variables until zero-cost arcs connect the root to every terminal.

    Wong's dual ascent for directed Steiner trees. `conversion_left` (n * e,) and
    `transmission_left` (n * m,) hold the arc costs and are lowered in place to the
    reduced costs; the return value is a lower bound on the cost of any tree.

    A terminal grows the set of vertices that reach it at no cost; what enters the set
    is lowered evenly until an arc becomes free and its tail joins. Terminals take turns:
    the set that the guiding tree enters least often, and then the one with the fewest
    entering arcs, grows first (a tree that is optimal enters the raised sets once, so a
    good guide gives a good bound). A terminal retires when another waiting terminal
    joins its set, since what connects that one connects both.

    `guide` (n * m,) is the vertex before each vertex in the guiding tree, or -1.
    """
    m = graph.in_start.shape[0] - 1
    conversions = graph.in_from.shape[0]
    count = graph.allowed.shape[0]
    waiting = np.zeros(count, dtype=np.bool_)
    joined_at = np.zeros(count)
    stamp = np.full(count, -1, dtype=np.int64)
    members = np.empty(count, dtype=np.int64)
    bound = 0.0
    visit = 0
    # Weight of one more guiding arc against entering arcs: they come first.
    guided = 1.0e6
    queue = [(0.0, 0)]
    queue.pop()
    for index in range(graph.terminals.shape[0]):
        waiting[graph.terminals[index]] = True
    for index in range(graph.terminals.shape[0]):
        t = graph.terminals[index]
        k = t % m
        heapq.heappush(queue, (float(graph.in_start[k + 1] - graph.in_start[k] + 1), t))
    frontier = [(0.0, 0)]
    while len(queue) > 0:
        _key, t = heapq.heappop(queue)
        limit = queue[0][0] if len(queue) > 0 else np.inf
        visit += 1
        frontier.clear()
        heapq.heappush(frontier, (0.0, t))
        size = 0
        entering = 0
        guides = 0
        level = 0.0
        retired = False
        while True:
            level, u = heapq.heappop(frontier)
            if stamp[u] == visit:
                continue
            if graph.roots[u] or (waiting[u] and u != t):
                retired = True
                break
            if level > 0.0 and guided * max(guides - 1, 0) + entering > limit:
                # Its turn is over; u joins when the set grows again.
                break
            stamp[u] = visit
            joined_at[u] = level
            members[size] = u
            size += 1
            v = u // m
            k = u % m
            before = guide[u]
            if before >= 0 and stamp[before] != visit:
                guides += 1
            base = v * m
            arc = v * conversions
            for e in range(graph.in_start[k], graph.in_start[k + 1]):
                w = base + graph.in_from[e]
                if not graph.allowed[w]:
                    continue
                if stamp[w] == visit:
                    entering -= 1
                    continue
                entering += 1
                heapq.heappush(frontier, (level + conversion_left[arc + e], w))
            if v > 0:
                w = graph.parents[v] * m + k
                if graph.allowed[w] and stamp[w] != visit:
                    entering += 1
                    heapq.heappush(frontier, (level + transmission_left[u], w))
            # Guiding arcs out of u into members no longer enter the set.
            for index in range(size - 1):
                if guide[members[index]] == u:
                    guides -= 1
        # Sums of doubles miss zero by a little, and an arc that is almost free must be free.
        tiny = 1.0e-13 * level
        for index in range(size):
            u = members[index]
            raised = level - joined_at[u]
            if raised <= 0.0:
                continue
            v = u // m
            k = u % m
            base = v * m
            arc = v * conversions
            for e in range(graph.in_start[k], graph.in_start[k + 1]):
                w = base + graph.in_from[e]
                part = raised
                if stamp[w] == visit:
                    part = joined_at[w] - joined_at[u]
                if part > 0.0:
                    left = conversion_left[arc + e] - part
                    conversion_left[arc + e] = left if left > tiny else 0.0
            if v > 0:
                w = graph.parents[v] * m + k
                part = raised
                if stamp[w] == visit:
                    part = joined_at[w] - joined_at[u]
                if part > 0.0:
                    left = transmission_left[u] - part
                    transmission_left[u] = left if left > tiny else 0.0
        bound += level
        if retired:
            waiting[t] = False
        else:
            heapq.heappush(queue, (guided * max(guides - 1, 0) + entering, t))
    return bound


@kernel
def connect(
    graph: MultilayerGraph,
    conversion_left: FloatArray,
    transmission_left: FloatArray,
) -> IntArray:
    """Connect the terminals one by one, always the nearest, by its cheapest path.

    The path heuristic of Takahashi and Matsuyama on the arcs whose reduced cost is
    zero. One search runs throughout: the vertices of a new path restart it
    at distance zero. Returns the vertex before each vertex, or -1 outside the tree.
    """
    m = graph.out_start.shape[0] - 1
    conversions = graph.out_to.shape[0]
    count = graph.allowed.shape[0]
    distance = np.full(count, np.inf)
    before = np.full(count, -1, dtype=np.int64)
    tree = np.full(count, -1, dtype=np.int64)
    in_tree = graph.roots.copy()
    waiting = np.zeros(count, dtype=np.bool_)
    left = graph.terminals.shape[0]
    for index in range(left):
        waiting[graph.terminals[index]] = True
    queue = [(0.0, 0)]
    queue.pop()
    for u in range(count):
        if graph.roots[u]:
            distance[u] = 0.0
            heapq.heappush(queue, (0.0, u))
    while left > 0 and len(queue) > 0:
        d, u = heapq.heappop(queue)
        if d > distance[u]:
            continue
        if waiting[u]:
            w = u
            while not in_tree[w]:
                in_tree[w] = True
                tree[w] = before[w]
                if waiting[w]:
                    waiting[w] = False
                    left -= 1
                distance[w] = 0.0
                heapq.heappush(queue, (0.0, w))
                w = before[w]
            continue
        v = u // m
        k = u % m
        base = v * m
        arc = v * conversions
        for index in range(graph.out_start[k], graph.out_start[k + 1]):
            w = base + graph.out_to[index]
            e = arc + graph.out_arc[index]
            if not graph.allowed[w] or in_tree[w] or conversion_left[e] > 0.0:
                continue
            reached = d + graph.conversion_costs[e]
            if reached < distance[w]:
                distance[w] = reached
                before[w] = u
                heapq.heappush(queue, (reached, w))
        for index in range(graph.child_start[v], graph.child_start[v + 1]):
            w = graph.child[index] * m + k
            if not graph.allowed[w] or in_tree[w] or transmission_left[w] > 0.0:
                continue
            reached = d + graph.transmission_costs[w]
            if reached < distance[w]:
                distance[w] = reached
                before[w] = u
                heapq.heappush(queue, (reached, w))
    return tree
