"""Local search on trees of the multilayer graph.

A tree is kept as the vertex before each vertex. Three moves lower its cost: a vertex
is reached by another path; a vertex that serves several others is taken out and these
are reached in other ways; a vertex is put in and those it serves more cheaply move to
it. Every change goes through a log, so that a move that turns out dear is taken back.

Shapes: `n` brokers, `m` formats, `e` conversions; vertices are `v * m + k`.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["Layers", "Tree", "improve", "tree_of"]

# Moves must gain at least this share of the larger of the costs compared; less is rounding.
_NOISE = 1e-12


class Layers(NamedTuple):
    """The multilayer graph; see `MultilayerGraph` for the fields it shares.

    `arc_of` (m, m) is the number of each conversion or -1.
    """

    parents: IntArray
    child_start: IntArray
    child: IntArray
    in_start: IntArray
    in_from: IntArray
    arc_of: IntArray
    conversion_costs: FloatArray
    transmission_costs: FloatArray
    allowed: BoolArray
    roots: BoolArray


class Tree(NamedTuple):
    """A tree under change, with what the moves need.

    `before` (n * m,) is the vertex before each vertex or -1, `inside` whether it is in
    the tree, `branches` how many vertices follow it, `fixed` whether it is a root or a
    terminal. `mark`, `distance` and `after` belong to the search for paths; `mark_now`,
    `log_size` are counters of one entry; `log_vertex`, `log_before`, `log_inside` the log.
    """

    before: IntArray
    inside: BoolArray
    branches: IntArray
    fixed: BoolArray
    mark: IntArray
    gone: IntArray
    distance: FloatArray
    after: IntArray
    mark_now: IntArray
    log_size: IntArray
    log_vertex: IntArray
    log_before: IntArray
    log_inside: BoolArray


@kernel
def tree_of(layers: Layers, before: IntArray, terminals: IntArray) -> Tree:
    """Return the tree given by the vertex before each vertex."""
    count = before.shape[0]
    inside = layers.roots.copy()
    fixed = layers.roots.copy()
    branches = np.zeros(count, dtype=np.int64)
    for u in range(count):
        if before[u] >= 0:
            inside[u] = True
            branches[before[u]] += 1
    for index in range(terminals.shape[0]):
        fixed[terminals[index]] = True
    return Tree(
        before.copy(),
        inside,
        branches,
        fixed,
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros(count),
        np.zeros(count, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(4 * count + 64, dtype=np.int64),
        np.zeros(4 * count + 64, dtype=np.int64),
        np.zeros(4 * count + 64, dtype=np.bool_),
    )


@kernel
def _arc_cost(layers: Layers, origin: int, target: int) -> float:
    """Return the cost of the arc from one vertex to another."""
    m = layers.arc_of.shape[0]
    v = target // m
    if origin // m == v:
        arc = layers.arc_of[origin % m, target % m]
        return float(layers.conversion_costs[v * layers.in_from.shape[0] + arc])
    return float(layers.transmission_costs[target])


@kernel
def _put(tree: Tree, u: int, before: int) -> None:
    """Enter `u` from `before`, or take it out of the tree with `before` = -1."""
    at = tree.log_size[0]
    tree.log_vertex[at] = u
    tree.log_before[at] = tree.before[u]
    tree.log_inside[at] = tree.inside[u]
    tree.log_size[0] = at + 1
    if tree.before[u] >= 0:
        tree.branches[tree.before[u]] -= 1
    tree.before[u] = before
    tree.inside[u] = before >= 0
    if before >= 0:
        tree.branches[before] += 1


@kernel
def _undo(tree: Tree, size: int) -> None:
    """Take back all changes after the first `size` of the log."""
    while tree.log_size[0] > size:
        at = tree.log_size[0] - 1
        tree.log_size[0] = at
        u = tree.log_vertex[at]
        if tree.before[u] >= 0:
            tree.branches[tree.before[u]] -= 1
        tree.before[u] = tree.log_before[at]
        tree.inside[u] = tree.log_inside[at]
        if tree.before[u] >= 0:
            tree.branches[tree.before[u]] += 1


@kernel
def _trim(layers: Layers, tree: Tree, u: int) -> float:
    """Take out `u` and what only led to it, while nothing needs them; return the saving."""
    saved = 0.0
    while tree.inside[u] and not tree.fixed[u] and tree.branches[u] == 0:
        before = tree.before[u]
        saved += _arc_cost(layers, before, u)
        _put(tree, u, -1)
        u = before
    return saved


@kernel
def _above(tree: Tree, u: int, ancestor: int) -> bool:
    """Is `ancestor` on the way from the root to `u`, `u` itself included?"""
    while u >= 0:
        if u == ancestor:
            return True
        u = tree.before[u]
    return False


@kernel
def _nearest(layers: Layers, tree: Tree, x: int, banned: int, cutoff: float) -> tuple[float, int]:
    """Return the cheapest path into `x` from the tree: its cost and its first vertex.

    Vertices at or below `banned` do not count as the tree's, nor do those marked as
    gone. `tree.after` leads from the first vertex to `x`. Answers (inf, -1) when no path
    is cheaper than `cutoff`.
    """
    m = layers.arc_of.shape[0]
    conversions = layers.in_from.shape[0]
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
        if u != x and tree.inside[u] and tree.gone[u] == 0:
            if not _above(tree, u, banned):
                return d, u
            # A way through what hangs below would lead in a circle.
            continue
        tree.mark[u] = now + 1
        v = u // m
        k = u % m
        base = v * m
        arc = v * conversions
        for e in range(layers.in_start[k], layers.in_start[k + 1]):
            w = base + layers.in_from[e]
            if not layers.allowed[w] or tree.mark[w] == now + 1:
                continue
            reached = d + layers.conversion_costs[arc + e]
            if reached < cutoff and (tree.mark[w] < now or reached < tree.distance[w]):
                tree.mark[w] = now
                tree.distance[w] = reached
                tree.after[w] = u
                heapq.heappush(frontier, (reached, w))
        if v > 0:
            w = layers.parents[v] * m + k
            if layers.allowed[w] and tree.mark[w] != now + 1:
                reached = d + layers.transmission_costs[u]
                if reached < cutoff and (tree.mark[w] < now or reached < tree.distance[w]):
                    tree.mark[w] = now
                    tree.distance[w] = reached
                    tree.after[w] = u
                    heapq.heappush(frontier, (reached, w))
    return np.inf, -1


@kernel
def _attach(tree: Tree, first: int, x: int) -> None:
    """Put the path that `_nearest` found into the tree."""
    u = first
    while u != x:
        following = tree.after[u]
        _put(tree, following, u)
        u = following


@kernel
def _mark_way(layers: Layers, tree: Tree, x: int, value: int) -> float:
    """Mark what only leads to `x` as gone (1) or back (0); return what it all costs."""
    saved = _arc_cost(layers, tree.before[x], x)
    u = tree.before[x]
    while not tree.fixed[u] and tree.branches[u] == 1:
        tree.gone[u] = value
        saved += _arc_cost(layers, tree.before[u], u)
        u = tree.before[u]
    return saved


@kernel
def _exchange(layers: Layers, tree: Tree, x: int) -> float:
    """Reach `x` by a cheaper path, if there is one; return the gain."""
    saved = _mark_way(layers, tree, x, 1)
    cutoff = saved * (1.0 - _NOISE)
    price, first = _nearest(layers, tree, x, x, cutoff)
    _mark_way(layers, tree, x, 0)
    if first < 0:
        return 0.0
    old = tree.before[x]
    # Detach first: the new path may use vertices of the old one.
    _put(tree, x, -1)
    released = saved - _arc_cost(layers, old, x)
    trimmed = _trim(layers, tree, old)
    assert abs(trimmed - released) <= 1e-6 * (1.0 + saved)
    _attach(tree, first, x)
    tree.log_size[0] = 0
    return saved - price


@kernel
def _followers(layers: Layers, tree: Tree, u: int) -> IntArray:
    """Return the vertices that the tree enters from `u`."""
    m = layers.arc_of.shape[0]
    v = u // m
    k = u % m
    found = np.empty(tree.branches[u], dtype=np.int64)
    size = 0
    for j in range(m):
        if tree.before[v * m + j] == u:
            found[size] = v * m + j
            size += 1
    for index in range(layers.child_start[v], layers.child_start[v + 1]):
        w = layers.child[index] * m + k
        if tree.before[w] == u:
            found[size] = w
            size += 1
    return found


@kernel
def _eliminate(layers: Layers, tree: Tree, u: int) -> float:
    """Take `u` out and reach what it served in other ways, if that is cheaper."""
    followers = _followers(layers, tree, u)
    saved = _mark_way(layers, tree, u, 1)
    for index in range(followers.shape[0]):
        saved += _arc_cost(layers, u, followers[index])
    tree.gone[u] = 1
    spent = 0.0
    failed = False
    for index in range(followers.shape[0]):
        x = followers[index]
        price, first = _nearest(layers, tree, x, u, saved * (1.0 - _NOISE) - spent)
        if first < 0:
            failed = True
            break
        spent += price
        # The path may pass u or the way to it: they are the tree's again, and paid for.
        w = first
        while w != x:
            w = tree.after[w]
            if tree.gone[w] == 1:
                failed = True
        if failed:
            break
        _attach(tree, first, x)
    tree.gone[u] = 0
    # The marks were set along the way from u, which no attachment has changed.
    w = tree.before[u]
    while tree.gone[w] == 1:
        tree.gone[w] = 0
        w = tree.before[w]
    if failed:
        _undo(tree, 0)
        return 0.0
    gain = _trim(layers, tree, u)
    for index in range(followers.shape[0]):
        gain += _arc_cost(layers, u, followers[index])
    gain -= spent
    if gain <= _NOISE * saved:
        _undo(tree, 0)
        return 0.0
    tree.log_size[0] = 0
    return gain


@kernel
def _release(layers: Layers, tree: Tree, x: int) -> float:
    """Return what is saved when `x` is entered from elsewhere."""
    saved = _arc_cost(layers, tree.before[x], x)
    u = tree.before[x]
    while not tree.fixed[u] and tree.branches[u] == 1:
        saved += _arc_cost(layers, tree.before[u], u)
        u = tree.before[u]
    return saved


@kernel
def _insert(layers: Layers, tree: Tree, z: int, candidates: IntArray) -> float:
    """Put `z` in and enter from it what becomes cheaper, if that pays; return the gain."""
    m = layers.arc_of.shape[0]
    conversions = layers.in_from.shape[0]
    v = z // m
    k = z % m
    size = 0
    hoped = 0.0
    for j in range(m):
        arc = layers.arc_of[k, j]
        w = v * m + j
        if arc >= 0 and tree.before[w] >= 0:
            gain = _release(layers, tree, w) - layers.conversion_costs[v * conversions + arc]
            if gain > 0.0:
                candidates[size] = w
                size += 1
                hoped += gain
    for index in range(layers.child_start[v], layers.child_start[v + 1]):
        w = layers.child[index] * m + k
        if tree.before[w] >= 0:
            gain = _release(layers, tree, w) - layers.transmission_costs[w]
            if gain > 0.0:
                candidates[size] = w
                size += 1
                hoped += gain
    if size == 0:
        return 0.0
    price, first = _nearest(layers, tree, z, -2, hoped * (1.0 - _NOISE))
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
        cost = _arc_cost(layers, z, x)
        if _above(tree, z, x) or _release(layers, tree, x) <= cost:
            continue
        gain += _arc_cost(layers, old, x) - cost
        _put(tree, x, z)
        gain += _trim(layers, tree, old)
    if gain <= _NOISE * hoped:
        _undo(tree, 0)
        return 0.0
    tree.log_size[0] = 0
    return gain


@kernel
def improve(layers: Layers, tree: Tree, order: IntArray, rounds: int) -> float:
    """Apply the three moves until none helps or the rounds are over; return the gain.

    `order` (n * m,) is the order in which vertices are tried.
    """
    gain = 0.0
    start = layers.child_start
    longest = 0
    for v in range(start.shape[0] - 1):
        longest = max(longest, start[v + 1] - start[v])
    candidates = np.empty(layers.arc_of.shape[0] + longest, dtype=np.int64)
    for _ in range(rounds):
        gained = 0.0
        for index in range(order.shape[0]):
            u = order[index]
            if not layers.allowed[u] or layers.roots[u]:
                continue
            if not tree.inside[u]:
                gained += _insert(layers, tree, u, candidates)
            elif tree.fixed[u]:
                gained += _exchange(layers, tree, u)
            elif tree.branches[u] > 1:
                gained += _eliminate(layers, tree, u)
                if tree.inside[u] and tree.branches[u] > 1:
                    gained += _exchange(layers, tree, u)
        gain += gained
        if gained <= 0.0:
            break
    return gain
