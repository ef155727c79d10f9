"""The loads of a forest that is being changed.

Only loads are kept, no delays of messages, so that a move is weighed by looking at the
nodes above the place it goes to, and only as far up as it raises their rates.

Shapes: `n` nodes, the source at 0; `x` objects; `t` trees, which is 1, or a tree for each
object. Tree `j` carries all objects when it is the only one, and otherwise object `j`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.fidelity._cost_kernels import top_down_order
from distributary.kernels import inner_kernel, kernel

__all__ = [
    "LoadedTrees",
    "StreamNodes",
    "attach",
    "detach",
    "largest_above",
    "nodes_below",
    "rebuild",
    "refresh",
    "trees_of",
]


class StreamNodes(NamedTuple):
    """What the nodes need and can do; see `FidelityProblem`."""

    rates: FloatArray
    filter_times: FloatArray
    send_times: FloatArray
    delays: FloatArray


class LoadedTrees(NamedTuple):
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
def trees_of(nodes: StreamNodes, parents: IntArray) -> LoadedTrees:
    """Return the trees with the given parents (t, n)."""
    n, objects = nodes.rates.shape
    trees = LoadedTrees(
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
        rebuild(nodes, trees, tree)
    return trees


@inner_kernel
def rebuild(nodes: StreamNodes, trees: LoadedTrees, tree: int) -> None:
    """Bring everything about one tree in line with its parents."""
    trees.first[tree, :] = -1
    trees.after[tree, :] = -1
    order = top_down_order(trees.parents[tree])
    for index in range(order.shape[0] - 1, -1, -1):
        k = order[index]
        if k > 0:
            _link(trees, tree, k, trees.parents[tree, k])
        refresh(nodes, trees, tree, k)


@inner_kernel
def _link(trees: LoadedTrees, tree: int, child: int, parent: int) -> None:
    """Put a node into the list of its parent's children."""
    trees.parents[tree, child] = parent
    trees.after[tree, child] = trees.first[tree, parent]
    trees.first[tree, parent] = child


@inner_kernel
def refresh(nodes: StreamNodes, trees: LoadedTrees, tree: int, k: int) -> bool:
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


@inner_kernel
def _refresh_upwards(nodes: StreamNodes, trees: LoadedTrees, tree: int, k: int) -> None:
    """Add up a node and those above it, as far as anything changes."""
    while k >= 0 and refresh(nodes, trees, tree, k):
        k = trees.parents[tree, k]


@inner_kernel
def attach(nodes: StreamNodes, trees: LoadedTrees, tree: int, child: int, parent: int) -> None:
    """Hang a node, and what is below it, below a parent."""
    _link(trees, tree, child, parent)
    _refresh_upwards(nodes, trees, tree, parent)


@inner_kernel
def detach(nodes: StreamNodes, trees: LoadedTrees, tree: int, child: int) -> None:
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


@inner_kernel
def largest_above(
    nodes: StreamNodes,
    trees: LoadedTrees,
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


@inner_kernel
def nodes_below(trees: LoadedTrees, tree: int, k: int) -> IntArray:
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
