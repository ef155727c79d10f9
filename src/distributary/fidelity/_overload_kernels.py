"""Moving work away from overloaded nodes. For the shapes see `_load_kernels`."""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, IntArray
from distributary.fidelity._load_kernels import (
    LoadedTrees,
    StreamNodes,
    attach,
    detach,
    largest_above,
    nodes_below,
    rebuild,
    refresh,
    trees_of,
)
from distributary.kernels import inner_kernel, kernel

__all__ = ["LIMIT", "grow", "relieve"]

LIMIT = 1.0 - 1e-9
"""A node is overloaded from this load; the rest is room for rounding."""

# Nodes up to this load do not keep messages waiting for long, and are all the same to a move.
_CALM = 0.4
# What a relieved node, and one that takes over, should stay below. At a load of 0.99 it
# would be valid, and messages would wait a hundred times as long as they take.
_BUSY = 0.8
# A load must fall by this share to count as lower; less is rounding.
_NOISE = 1e-9


@inner_kernel
def _idle_delay(nodes: StreamNodes, trees: LoadedTrees, tree: int, k: int) -> float:
    """Return how long a message takes to a node and through it when nobody is busy."""
    delay: float = nodes.filter_times[k] + nodes.send_times[k]
    while k > 0:
        p = trees.parents[tree, k]
        delay += nodes.delays[p, k] + nodes.filter_times[p] + nodes.send_times[p]
        k = p
    return delay


@inner_kernel
def _best_parent(
    nodes: StreamNodes,
    trees: LoadedTrees,
    tree: int,
    child: int,
    open_nodes: BoolArray,
    relieved: int,
    enough: float,
    bound: float,
) -> tuple[int, float]:
    """Return the open node to hang `child` below, and the largest load which that makes.

    The largest load decides, all that are `_CALM` counting the same, then the delay. -1 and
    infinite when none will do; for `relieved`, `enough` and `bound` see `largest_above`.
    """
    best = -1
    best_load = bound
    best_delay = np.inf
    for parent in range(open_nodes.shape[0]):
        if not open_nodes[parent]:
            continue
        load = largest_above(nodes, trees, tree, child, parent, relieved, enough, best_load)
        if load == np.inf:
            continue
        load = max(load, _CALM)
        delay = _idle_delay(nodes, trees, tree, parent) + nodes.delays[parent, child]
        if best < 0 or load < best_load or delay < best_delay:
            best = parent
            best_load = load
            best_delay = delay
    return best, best_load if best >= 0 else np.inf


@kernel
def grow(nodes: StreamNodes, inside: BoolArray, orders: IntArray) -> LoadedTrees:
    """Return trees grown node by node, each below the node where it makes the least load.

    `inside` (t, n) is who belongs to each tree, the source always; `orders` (t, n) the
    order in which nodes join it, the source first; nodes outside are passed over.
    """
    parents = np.full(inside.shape, -2, dtype=np.int64)
    parents[:, 0] = -1
    trees = trees_of(nodes, parents)
    for tree in range(inside.shape[0]):
        open_nodes = np.zeros(inside.shape[1], dtype=np.bool_)
        open_nodes[0] = True
        for index in range(1, inside.shape[1]):
            i = orders[tree, index]
            if not inside[tree, i]:
                continue
            refresh(nodes, trees, tree, i)
            parent, _ = _best_parent(nodes, trees, tree, i, open_nodes, -1, np.inf, np.inf)
            attach(nodes, trees, tree, i, parent)
            open_nodes[i] = True
    return trees


@inner_kernel
def _move_away(
    nodes: StreamNodes, trees: LoadedTrees, tree: int, k: int, good: float, allowed: float
) -> tuple[bool, int]:
    """Move something from below a node to where it makes less load.

    Leaves among the children are tried first, then other children, then all further below;
    those with the largest rates first. The first that finds a place where all loads that
    rise stay below `good` moves there; if none does, the one whose place makes the least
    load, below `allowed`. No load that changes may end up as large as the node's own was:
    sorted, the loads fall with every move. Returns whether there was a move, and how many
    nodes were tried in vain.
    """
    enough = trees.load[k] * (1.0 - _NOISE)
    only = trees.parents.shape[0] == 1
    low = 0 if only else tree
    high = nodes.rates.shape[1] if only else tree + 1
    candidates = nodes_below(trees, tree, k)[1:]
    urgency = np.empty(candidates.shape[0])
    for index in range(candidates.shape[0]):
        c = candidates[index]
        rate = 0.0
        for x in range(low, high):
            rate += trees.peak[c, x]
        urgency[index] = -rate / (1.0 + rate)
        if trees.first[tree, c] >= 0:
            urgency[index] += 1.0
        if trees.parents[tree, c] != k:
            urgency[index] += 2.0
    best = np.full(2, -1, dtype=np.int64)
    best_load = min(allowed, enough)
    for failures in range(candidates.shape[0]):
        index = int(urgency.argmin())
        urgency[index] = np.inf
        c = candidates[index]
        old_parent = trees.parents[tree, c]
        detach(nodes, trees, tree, c)
        if trees.load[k] <= enough:
            open_nodes = trees.parents[tree] > -2
            for below in nodes_below(trees, tree, c):
                open_nodes[below] = False
            open_nodes[old_parent] = False
            parent, load = _best_parent(nodes, trees, tree, c, open_nodes, k, enough, best_load)
            if load < good:
                attach(nodes, trees, tree, c, parent)
                return True, failures
            if load < best_load:
                best[0] = c
                best[1] = parent
                best_load = load
        attach(nodes, trees, tree, c, old_parent)
    if best[0] < 0:
        return False, candidates.shape[0]
    detach(nodes, trees, tree, best[0])
    attach(nodes, trees, tree, best[0], best[1])
    return True, candidates.shape[0]


@inner_kernel
def _exchange_labels(parents: IntArray, i: int, j: int) -> None:
    """Let two nodes of a tree (n,) take each other's places."""
    for v in range(parents.shape[0]):
        if parents[v] == i:
            parents[v] = j
        elif parents[v] == j:
            parents[v] = i
    parents[i], parents[j] = parents[j], parents[i]


@inner_kernel
def _exchange(nodes: StreamNodes, trees: LoadedTrees, tree: int, k: int) -> bool:
    """Let an overloaded node change places with the node that makes the least load of it."""
    n = trees.parents.shape[1]
    old = trees.load.copy()
    best = np.full(1, -1, dtype=np.int64)
    best_load = trees.load[k] * (1.0 - _NOISE)
    for j in range(1, n):
        if j == k or trees.parents[tree, j] == -2:
            continue
        _exchange_labels(trees.parents[tree], k, j)
        rebuild(nodes, trees, tree)
        largest = trees.load[k]
        for v in range(n):
            if abs(trees.load[v] - old[v]) > _NOISE * old[v]:
                largest = max(largest, trees.load[v])
        if largest < best_load:
            best[0] = j
            best_load = largest
        _exchange_labels(trees.parents[tree], k, j)
    if best[0] >= 0:
        _exchange_labels(trees.parents[tree], k, best[0])
    rebuild(nodes, trees, tree)
    return bool(best[0] >= 0)


@kernel
def relieve(
    nodes: StreamNodes, trees: LoadedTrees, limit: float, hard: bool, failures_max: int
) -> None:
    """Lower the loads that are not below `limit`, the largest first, as long as a move helps.

    Without `hard`, nothing moves to where a load comes to `limit`. With it, too large a
    load may be passed on when it gets smaller, and nodes may change places. Stops for good
    after `failures_max` nodes have been tried in vain. At the end, when nobody is
    overloaded, nodes that are merely busy give away what others can take without getting
    busy themselves.
    """
    failures = _lower(nodes, trees, limit, np.inf if hard else limit, failures_max)
    if trees.load[trees.load.argmax()] < LIMIT:
        _lower(nodes, trees, _BUSY, _BUSY, failures_max - failures)


@inner_kernel
def _lower(
    nodes: StreamNodes, trees: LoadedTrees, limit: float, allowed: float, failures_max: int
) -> int:
    """Lower the loads that are not below `limit`, and count the nodes tried in vain.

    Nothing moves to where a load comes to `allowed`. Nodes change places if that is infinite.
    """
    count = trees.parents.shape[0]
    failures = 0
    turn = 0
    moved = True
    while moved and failures < failures_max:
        moved = False
        waiting = trees.load.copy()
        for _ in range(waiting.shape[0]):
            k = int(waiting.argmax())
            if waiting[k] < limit:
                break
            waiting[k] = -1.0
            # The trees take turns, so that no tree is emptied while others stay as they are.
            idle = 0
            while idle < count and trees.load[k] >= limit and failures < failures_max:
                turn = (turn + 1) % count
                idle += 1
                if trees.first[turn, k] >= 0:
                    done, more = _move_away(nodes, trees, turn, k, limit, allowed)
                    failures += more
                    if done:
                        moved = True
                        idle = 0
            if trees.load[k] >= limit and k > 0 and allowed == np.inf:
                for tree in range(count):
                    if trees.first[tree, k] >= 0 and failures < failures_max:
                        failures += trees.parents.shape[1]
                        moved |= _exchange(nodes, trees, tree, k)
    return failures
