"""Moving work away from overloaded nodes.

Only loads are kept here, no delays of messages, so that a move is weighed by looking at
the nodes above the place it goes to, and only as far up as it raises their rates.

Shapes: `n` nodes, the source at 0; `x` objects; `t` trees, which is 1, or a tree for each
object. Tree `j` carries all objects when it is the only one, and otherwise object `j`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray, kernel
from distributary.fidelity._cost_kernels import top_down_order

__all__ = ["LIMIT", "Nodes", "Trees", "grow", "relieve", "trees_of"]

LIMIT = 1.0 - 1e-9
"""A node is overloaded from this load; the rest is room for rounding."""

# Nodes up to this load do not keep messages waiting for long, and are all the same to a move.
_CALM = 0.4
# What a relieved node, and one that takes over, should stay below. At a load of 0.99 it
# would be valid, and messages would wait a hundred times as long as they take.
_BUSY = 0.8
# A load must fall by this share to count as lower; less is rounding.
_NOISE = 1e-9


class Nodes(NamedTuple):
    """What the nodes need and can do; see `FidelityProblem`."""

    rates: FloatArray
    filter_times: FloatArray
    send_times: FloatArray
    delays: FloatArray


class Trees(NamedTuple):
    """Trees under change.

    `parents`, `first` child and next sibling `after` (t, n), -1 where there is none (-2 for
    the parent of nodes outside); `peak`, `passed` and `receivers` (n, x): the largest rate
    at a node or below, the sum of its children's peaks, and how many of them have one;
    `work` (n, x) and its sum over the objects, `load` (n,).
    """

    parents: IntArray
    first: IntArray
    after: IntArray
    peak: FloatArray
    passed: FloatArray
    receivers: FloatArray
    work: FloatArray
    load: FloatArray


@kernel
def trees_of(nodes: Nodes, parents: IntArray) -> Trees:
    """Return the trees with the given parents (t, n)."""
    n, objects = nodes.rates.shape
    trees = Trees(
        parents.copy(),
        np.full(parents.shape, -1, dtype=np.int64),
        np.full(parents.shape, -1, dtype=np.int64),
        np.zeros((n, objects)),
        np.zeros((n, objects)),
        np.zeros((n, objects)),
        np.zeros((n, objects)),
        np.zeros(n),
    )
    for tree in range(parents.shape[0]):
        _rebuild(nodes, trees, tree)
    return trees


@kernel
def _rebuild(nodes: Nodes, trees: Trees, tree: int) -> None:
    """Bring everything about one tree in line with its parents."""
    trees.first[tree, :] = -1
    trees.after[tree, :] = -1
    order = top_down_order(trees.parents[tree])
    for index in range(order.shape[0] - 1, -1, -1):
        k = order[index]
        if k > 0:
            _link(trees, tree, k, trees.parents[tree, k])
        _refresh(nodes, trees, tree, k)


@kernel
def _link(trees: Trees, tree: int, child: int, parent: int) -> None:
    """Put a node into the list of its parent's children."""
    trees.parents[tree, child] = parent
    trees.after[tree, child] = trees.first[tree, parent]
    trees.first[tree, parent] = child


@kernel
def _refresh(nodes: Nodes, trees: Trees, tree: int, k: int) -> bool:
    """Add up a node from its children; say whether its own peaks have changed."""
    objects = nodes.rates.shape[1]
    only = trees.parents.shape[0] == 1
    low = 0 if only else tree
    high = objects if only else tree + 1
    peak = trees.work[k]  # until the work itself is known
    for x in range(low, high):
        peak[x] = nodes.rates[k, x]
        trees.passed[k, x] = 0.0
        trees.receivers[k, x] = 0.0
    child = trees.first[tree, k]
    while child >= 0:
        for x in range(low, high):
            rate = trees.peak[child, x]
            peak[x] = max(peak[x], rate)
            trees.passed[k, x] += rate
            trees.receivers[k, x] += 1.0 if rate > 0.0 else 0.0
        child = trees.after[tree, child]
    changed = False
    for x in range(low, high):
        if peak[x] != trees.peak[k, x]:
            trees.peak[k, x] = peak[x]
            changed = True
        trees.work[k, x] = (
            nodes.filter_times[k] * trees.receivers[k, x] * trees.peak[k, x]
            + nodes.send_times[k] * trees.passed[k, x]
        )
    load = 0.0
    for x in range(objects):
        load += trees.work[k, x]
    trees.load[k] = load
    return changed


@kernel
def _refresh_upwards(nodes: Nodes, trees: Trees, tree: int, k: int) -> None:
    """Add up a node and those above it, as far as anything changes."""
    while k >= 0 and _refresh(nodes, trees, tree, k):
        k = trees.parents[tree, k]


@kernel
def _attach(nodes: Nodes, trees: Trees, tree: int, child: int, parent: int) -> None:
    """Hang a node, and what is below it, below a parent."""
    _link(trees, tree, child, parent)
    _refresh_upwards(nodes, trees, tree, parent)


@kernel
def _detach(nodes: Nodes, trees: Trees, tree: int, child: int) -> None:
    """Take a node, and what is below it, from its parent."""
    parent = trees.parents[tree, child]
    if trees.first[tree, parent] == child:
        trees.first[tree, parent] = trees.after[tree, child]
    else:
        before = trees.first[tree, parent]
        while trees.after[tree, before] != child:
            before = trees.after[tree, before]
        trees.after[tree, before] = trees.after[tree, child]
    _refresh_upwards(nodes, trees, tree, parent)


@kernel
def _largest_above(
    nodes: Nodes,
    trees: Trees,
    tree: int,
    child: int,
    parent: int,
    relieved: int,
    enough: float,
    bound: float,
) -> float:
    """Return the largest load among the nodes that `child` below `parent` would change.

    The node `relieved`, from below which the child was taken, does not count, but has to
    stay within `enough`. Infinite when it does not, or when another exceeds `bound`.
    Nothing is changed.
    """
    objects = nodes.rates.shape[1]
    only = trees.parents.shape[0] == 1
    low = 0 if only else tree
    high = objects if only else tree + 1
    largest = 0.0
    k = parent
    below = -1
    while k >= 0:
        load = trees.load[k]
        rises = False
        for x in range(low, high):
            rate = trees.peak[child, x]
            # What node `k` sends towards the new place already.
            old = trees.peak[below, x] if below >= 0 else 0.0
            if rate <= old:
                continue
            peak = max(trees.peak[k, x], rate)
            receivers = trees.receivers[k, x] + (1.0 if old == 0.0 else 0.0)
            passed = trees.passed[k, x] + rate - old
            load += (
                nodes.filter_times[k] * receivers * peak
                + nodes.send_times[k] * passed
                - trees.work[k, x]
            )
            if rate > trees.peak[k, x]:
                rises = True
        if load > (enough if k == relieved else bound):
            return np.inf
        if k != relieved:
            largest = max(largest, load)
        if not rises:
            break
        below = k
        k = trees.parents[tree, k]
    return largest


@kernel
def _idle_delay(nodes: Nodes, trees: Trees, tree: int, k: int) -> float:
    """Return how long a message takes to a node and through it when nobody is busy."""
    delay: float = nodes.filter_times[k] + nodes.send_times[k]
    while k > 0:
        p = trees.parents[tree, k]
        delay += nodes.delays[p, k] + nodes.filter_times[p] + nodes.send_times[p]
        k = p
    return delay


@kernel
def _best_parent(
    nodes: Nodes,
    trees: Trees,
    tree: int,
    child: int,
    open_nodes: BoolArray,
    relieved: int,
    enough: float,
    bound: float,
) -> tuple[int, float]:
    """Return the open node to hang `child` below, and the largest load which that makes.

    The largest load decides, all that are `_CALM` counting the same, then the delay. -1 and
    infinite when none will do; for `relieved`, `enough` and `bound` see `_largest_above`.
    """
    best = -1
    best_load = bound
    best_delay = np.inf
    for parent in range(open_nodes.shape[0]):
        if not open_nodes[parent]:
            continue
        load = _largest_above(nodes, trees, tree, child, parent, relieved, enough, best_load)
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
def grow(nodes: Nodes, inside: BoolArray, orders: IntArray) -> Trees:
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
            _refresh(nodes, trees, tree, i)
            parent, _ = _best_parent(nodes, trees, tree, i, open_nodes, -1, np.inf, np.inf)
            _attach(nodes, trees, tree, i, parent)
            open_nodes[i] = True
    return trees


@kernel
def _below(trees: Trees, tree: int, k: int) -> IntArray:
    """Return a node and all below it, parents first."""
    n = trees.parents.shape[1]
    found = np.empty(n, dtype=np.int64)
    found[0] = k
    size = 1
    at = 0
    while at < size:
        child = trees.first[tree, found[at]]
        at += 1
        while child >= 0:
            found[size] = child
            size += 1
            child = trees.after[tree, child]
    return found[:size]


@kernel
def _move_away(
    nodes: Nodes, trees: Trees, tree: int, k: int, good: float, allowed: float
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
    candidates = _below(trees, tree, k)[1:]
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
        _detach(nodes, trees, tree, c)
        if trees.load[k] <= enough:
            open_nodes = trees.parents[tree] > -2
            for below in _below(trees, tree, c):
                open_nodes[below] = False
            open_nodes[old_parent] = False
            parent, load = _best_parent(nodes, trees, tree, c, open_nodes, k, enough, best_load)
            if load < good:
                _attach(nodes, trees, tree, c, parent)
                return True, failures
            if load < best_load:
                best[0] = c
                best[1] = parent
                best_load = load
        _attach(nodes, trees, tree, c, old_parent)
    if best[0] < 0:
        return False, candidates.shape[0]
    _detach(nodes, trees, tree, best[0])
    _attach(nodes, trees, tree, best[0], best[1])
    return True, candidates.shape[0]


@kernel
def _exchange_labels(parents: IntArray, i: int, j: int) -> None:
    """Let two nodes of a tree (n,) take each other's places."""
    for v in range(parents.shape[0]):
        if parents[v] == i:
            parents[v] = j
        elif parents[v] == j:
            parents[v] = i
    parents[i], parents[j] = parents[j], parents[i]


@kernel
def _exchange(nodes: Nodes, trees: Trees, tree: int, k: int) -> bool:
    """Let an overloaded node change places with the node that makes the least load of it."""
    n = trees.parents.shape[1]
    old = trees.load.copy()
    best = np.full(1, -1, dtype=np.int64)
    best_load = trees.load[k] * (1.0 - _NOISE)
    for j in range(1, n):
        if j == k or trees.parents[tree, j] == -2:
            continue
        _exchange_labels(trees.parents[tree], k, j)
        _rebuild(nodes, trees, tree)
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
    _rebuild(nodes, trees, tree)
    return bool(best[0] >= 0)


@kernel
def relieve(nodes: Nodes, trees: Trees, limit: float, hard: bool, failures_max: int) -> None:
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


@kernel
def _lower(nodes: Nodes, trees: Trees, limit: float, allowed: float, failures_max: int) -> int:
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
