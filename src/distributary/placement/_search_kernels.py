"""Local search on trees of the multilayer graph.

A tree is kept as the vertex before each vertex. Three moves lower its cost: a vertex
is reached by another path; a vertex that serves several others is taken out and these
are reached in other ways; a vertex is put in and those it serves more cheaply move to
it. Every change goes through a log, so that a move that turns out dear is taken back.

Shapes: `n` brokers, `m` formats, `e` conversions; vertices are `v * m + k`.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple, cast

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel
from distributary.placement.multilayer import MultilayerGraph
from distributary.placement.plan import ABSENT, HELD

__all__ = ["Arborescence", "arborescence_of", "improve"]

# A scalar of NumPy is a variable to the compiler; of a literal -1 it would make `_put` twice.
_OUT = cast(int, np.int64(ABSENT))
# Moves must gain at least this share of the larger of the costs compared; less is rounding.
_NOISE = 1e-12


class Arborescence(NamedTuple):
    """A tree under change, with what the moves need.

    `before` (n * m,) is the vertex before each vertex, `ABSENT`, or `HELD` at roots,
    `branches` how many vertices follow it, `fixed` whether it is a root or a terminal.
    `mark`, `distance` and `after` belong to the search for paths, and `gone` marks what a
    move takes out; `mark_now`, `log_size` are counters of one entry; `log_vertex` and
    `log_before` are the log.
    """

    before: IntArray
    branches: IntArray
    fixed: BoolArray
    mark: IntArray
    gone: BoolArray
    distance: FloatArray
    after: IntArray
    mark_now: IntArray
    log_size: IntArray
    log_vertex: IntArray
    log_before: IntArray


@kernel
def arborescence_of(graph: MultilayerGraph, before: IntArray) -> Arborescence:
    """Return the tree given by the vertex before each vertex."""
    count = before.shape[0]
    before = before.copy()
    fixed = graph.roots.copy()
    branches = np.zeros(count, dtype=np.int64)
    for u in range(count):
        if graph.roots[u]:
            before[u] = HELD
        elif before[u] >= 0:
            branches[before[u]] += 1
    for terminal in graph.terminals:
        fixed[terminal] = True
    return Arborescence(
        before,
        branches,
        fixed,
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.bool_),
        np.zeros(count),
        np.zeros(count, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(4 * count + 64, dtype=np.int64),
        np.zeros(4 * count + 64, dtype=np.int64),
    )


@inner_kernel
def _arc_cost(graph: MultilayerGraph, origin: int, target: int) -> float:
    """Return the cost of the arc from one vertex to another."""
    m = graph.arc_of.shape[0]
    v = target // m
    if origin // m == v:
        arc = graph.arc_of[origin % m, target % m]
        return float(graph.conversion_costs[v * graph.in_from.shape[0] + arc])
    return float(graph.transmission_costs[target])


@kernel
def _put(tree: Arborescence, u: int, before: int) -> None:
    """Enter `u` from `before`, or take it out of the tree with `before` = -1."""
    at = tree.log_size[0]
    tree.log_vertex[at] = u
    tree.log_before[at] = tree.before[u]
    tree.log_size[0] = at + 1
    if tree.before[u] >= 0:
        tree.branches[tree.before[u]] -= 1
    tree.before[u] = before
    if before >= 0:
        tree.branches[before] += 1


@inner_kernel
def _undo(tree: Arborescence, size: int) -> None:
    """Take back all changes after the first `size` of the log."""
    while tree.log_size[0] > size:
        at = tree.log_size[0] - 1
        tree.log_size[0] = at
        u = tree.log_vertex[at]
        if tree.before[u] >= 0:
            tree.branches[tree.before[u]] -= 1
        tree.before[u] = tree.log_before[at]
        if tree.before[u] >= 0:
            tree.branches[tree.before[u]] += 1


@inner_kernel
def _trim(graph: MultilayerGraph, tree: Arborescence, u: int) -> float:
    """Take out `u` and what only led to it, while nothing needs them; return the saving."""
    saved = 0.0
    while tree.before[u] >= 0 and not tree.fixed[u] and tree.branches[u] == 0:
        before = tree.before[u]
        saved += _arc_cost(graph, before, u)
        _put(tree, u, _OUT)
        u = before
    return saved


@kernel
def _above(tree: Arborescence, u: int, ancestor: int) -> bool:
    """Is `ancestor` on the way from the root to `u`, `u` itself included?"""
    while u >= 0:
        if u == ancestor:
            return True
        u = tree.before[u]
    return False


@kernel
def _nearest(
    graph: MultilayerGraph, tree: Arborescence, x: int, banned: int, cutoff: float
) -> tuple[float, int]:
    """Return the cheapest path into `x` from the tree: its cost and its first vertex.

    Vertices at or below `banned` do not count as the tree's, nor do those marked as
    gone. `tree.after` leads from the first vertex to `x`. Answers (inf, -1) when no path
    is cheaper than `cutoff`.
    """
    m = graph.arc_of.shape[0]
    conversions = graph.in_from.shape[0]
    now = tree.mark_now[0] + 2
    tree.mark_now[0] = now
    frontier = [(0.0, x)]
    tree.mark[x] = now
    tree.distance[x] = 0.0
    while len(frontier) > 0:
        d, u = heapq.heappop(frontier)
        if d >= cutoff:
            break
        if tree.mark[u] == now + 1 or d > tree.distance[u]:
            continue
        if u != x and tree.before[u] != ABSENT and not tree.gone[u]:
            if not _above(tree, u, banned):
                return d, u
            # A way through what hangs below would lead in a circle.
            continue
        tree.mark[u] = now + 1
        v = u // m
        k = u % m
        base = v * m
        arc = v * conversions
        for e in range(graph.in_start[k], graph.in_start[k + 1]):
            w = base + graph.in_from[e]
            if not graph.allowed[w] or tree.mark[w] == now + 1:
                continue
            reached = d + graph.conversion_costs[arc + e]
            if reached < cutoff and (tree.mark[w] < now or reached < tree.distance[w]):
                tree.mark[w] = now
                tree.distance[w] = reached
                tree.after[w] = u
                heapq.heappush(frontier, (reached, w))
        if v > 0:
            w = graph.parents[v] * m + k
            if graph.allowed[w] and tree.mark[w] != now + 1:
                reached = d + graph.transmission_costs[u]
                if reached < cutoff and (tree.mark[w] < now or reached < tree.distance[w]):
                    tree.mark[w] = now
                    tree.distance[w] = reached
                    tree.after[w] = u
                    heapq.heappush(frontier, (reached, w))
    return np.inf, -1


@kernel
def _attach(tree: Arborescence, first: int, x: int) -> None:
    """Put the path that `_nearest` found into the tree."""
    u = first
    while u != x:
        following = tree.after[u]
        _put(tree, following, u)
        u = following


@kernel
def _release(graph: MultilayerGraph, tree: Arborescence, x: int) -> float:
    """Return what is saved when `x` is entered from elsewhere."""
    saved = _arc_cost(graph, tree.before[x], x)
    u = tree.before[x]
    while not tree.fixed[u] and tree.branches[u] == 1:
        saved += _arc_cost(graph, tree.before[u], u)
        u = tree.before[u]
    return saved


@inner_kernel
def _toggle_way(tree: Arborescence, x: int) -> None:
    """Mark what only leads to `x` as gone, or as back when it is marked."""
    u = tree.before[x]
    while not tree.fixed[u] and tree.branches[u] == 1:
        tree.gone[u] = not tree.gone[u]
        u = tree.before[u]


@kernel
def _exchange(graph: MultilayerGraph, tree: Arborescence, x: int) -> float:
    """Reach `x` by a cheaper path, if there is one; return the gain."""
    saved = _release(graph, tree, x)
    _toggle_way(tree, x)
    price, first = _nearest(graph, tree, x, x, saved * (1.0 - _NOISE))
    _toggle_way(tree, x)
    if first < 0:
        return 0.0
    old = tree.before[x]
    # Detach first: the new path may use vertices of the old one.
    _put(tree, x, _OUT)
    released = saved - _arc_cost(graph, old, x)
    trimmed = _trim(graph, tree, old)
    assert abs(trimmed - released) <= 1e-6 * (1.0 + saved)
    _attach(tree, first, x)
    tree.log_size[0] = 0
    return saved - price


@kernel
def _followers(graph: MultilayerGraph, tree: Arborescence, u: int) -> IntArray:
    """Return the vertices that the tree enters from `u`."""
    m = graph.arc_of.shape[0]
    v = u // m
    k = u % m
    found = np.empty(tree.branches[u], dtype=np.int64)
    size = 0
    for j in range(m):
        if tree.before[v * m + j] == u:
            found[size] = v * m + j
            size += 1
    for index in range(graph.child_start[v], graph.child_start[v + 1]):
        w = graph.child[index] * m + k
        if tree.before[w] == u:
            found[size] = w
            size += 1
    return found


@inner_kernel
def _eliminate(graph: MultilayerGraph, tree: Arborescence, u: int) -> float:
    """Take `u` out and reach what it served in other ways, if that is cheaper."""
    followers = _followers(graph, tree, u)
    saved = _release(graph, tree, u)
    _toggle_way(tree, u)
    for index in range(followers.shape[0]):
        saved += _arc_cost(graph, u, followers[index])
    tree.gone[u] = True
    spent = 0.0
    failed = False
    for index in range(followers.shape[0]):
        x = followers[index]
        price, first = _nearest(graph, tree, x, u, saved * (1.0 - _NOISE) - spent)
        if first < 0:
            failed = True
            break
        spent += price
        # The path may pass u or the way to it: they are the tree's again, and paid for.
        w = first
        while w != x:
            w = tree.after[w]
            if tree.gone[w]:
                failed = True
        if failed:
            break
        _attach(tree, first, x)
    tree.gone[u] = False
    # The marks were set along the way from u, which no attachment has changed.
    w = tree.before[u]
    while tree.gone[w]:
        tree.gone[w] = False
        w = tree.before[w]
    if failed:
        _undo(tree, 0)
        return 0.0
    gain = _trim(graph, tree, u)
    for index in range(followers.shape[0]):
        gain += _arc_cost(graph, u, followers[index])
    gain -= spent
    if gain <= _NOISE * saved:
        _undo(tree, 0)
        return 0.0
    tree.log_size[0] = 0
    return gain


@kernel
def _insert(graph: MultilayerGraph, tree: Arborescence, z: int, candidates: IntArray) -> float:
    """Put `z` in and enter from it what becomes cheaper, if that pays; return the gain."""
    m = graph.arc_of.shape[0]
    conversions = graph.in_from.shape[0]
    v = z // m
    k = z % m
    size = 0
    hoped = 0.0
    for j in range(m):
        arc = graph.arc_of[k, j]
        w = v * m + j
        if arc >= 0 and tree.before[w] >= 0:
            gain = _release(graph, tree, w) - graph.conversion_costs[v * conversions + arc]
            if gain > 0.0:
                candidates[size] = w
                size += 1
                hoped += gain
    for index in range(graph.child_start[v], graph.child_start[v + 1]):
        w = graph.child[index] * m + k
        if tree.before[w] >= 0:
            gain = _release(graph, tree, w) - graph.transmission_costs[w]
            if gain > 0.0:
                candidates[size] = w
                size += 1
                hoped += gain
    if size == 0:
        return 0.0
    price, first = _nearest(graph, tree, z, z, hoped * (1.0 - _NOISE))
    if first < 0:
        return 0.0
    _attach(tree, first, z)
    gain = -price
    for index in range(size):
        x = candidates[index]
        old = tree.before[x]
        if old < 0:
            # It only led to a candidate that has moved.
            continue
        cost = _arc_cost(graph, z, x)
        if _above(tree, z, x) or _release(graph, tree, x) <= cost:
            continue
        gain += _arc_cost(graph, old, x) - cost
        _put(tree, x, z)
        gain += _trim(graph, tree, old)
    if gain <= _NOISE * hoped:
        _undo(tree, 0)
        return 0.0
    tree.log_size[0] = 0
    return gain


@kernel
def improve(graph: MultilayerGraph, tree: Arborescence, order: IntArray, rounds: int) -> float:
    """Apply the three moves until none helps or the rounds are over; return the gain.

    `order` (n * m,) is the order in which vertices are tried.
    """
    gain = 0.0
    start = graph.child_start
    longest = 0
    for v in range(start.shape[0] - 1):
        longest = max(longest, start[v + 1] - start[v])
    candidates = np.empty(graph.arc_of.shape[0] + longest, dtype=np.int64)
    for _ in range(rounds):
        gained = 0.0
        for index in range(order.shape[0]):
            u = order[index]
            if not graph.allowed[u] or graph.roots[u]:
                continue
            if tree.before[u] == ABSENT:
                gained += _insert(graph, tree, u, candidates)
            elif tree.fixed[u]:
                gained += _exchange(graph, tree, u)
            elif tree.branches[u] > 1:
                gained += _eliminate(graph, tree, u)
                if tree.before[u] >= 0 and tree.branches[u] > 1:
                    gained += _exchange(graph, tree, u)
        gain += gained
        if gained <= 0.0:
            break
    return gain
