"""The cost model of loss of fidelity, over a whole tree at a time.

Shapes: `n` nodes, the source at 0; `x` objects. `parents` has -1 at the source and -2 for
nodes outside the tree. Symbols are those of Zhou, Ooi and Tan, sections 3 and 4: `r^m`
(here `peak`) is the largest rate in a subtree, `rho` a node's load, `t` its mean time for
a message, `g` the delay it adds to what it passes on.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel

__all__ = [
    "adaptation_delay",
    "forest_loss",
    "one_tree_loss",
    "passing_delay",
    "top_down_order",
]


@kernel
def top_down_order(parents: IntArray) -> IntArray:
    """Return the nodes of a tree, parents first; nodes outside are left out."""
    n = parents.shape[0]
    start = np.zeros(n + 2, dtype=np.int64)
    inside = 1
    for i in range(1, n):
        if parents[i] >= 0:
            start[parents[i] + 2] += 1
            inside += 1
    for k in range(2, n + 2):
        start[k] += start[k - 1]
    child = np.empty(n, dtype=np.int64)
    for i in range(1, n):
        if parents[i] >= 0:
            child[start[parents[i] + 1]] = i
            start[parents[i] + 1] += 1
    order = np.empty(inside, dtype=np.int64)
    order[0] = 0
    size = 1
    at = 0
    while at < size:
        k = order[at]
        at += 1
        for index in range(start[k], start[k + 1]):
            order[size] = child[index]
            size += 1
    return order[:size]


@inner_kernel
def passing_delay(load: float, time: float, fixed: float, children: float) -> float:
    """Return `g`: what a node adds to the delay of a message that it passes on.

    Equation (5) written as queueing, `load / (1 - load) * time`, plus the children served
    before, half of `time` less one child's share of it, plus filtering and sending
    (`fixed`). Infinite when the node is overloaded.
    """
    if load >= 1.0:
        return np.inf
    return load / (1.0 - load) * time + 0.5 * time * (1.0 - 1.0 / children) + fixed


@inner_kernel
def adaptation_delay(
    collecting: float, deciding: float, children: float, grandchildren: float, squares: float
) -> float:
    """Return what adapting the tree adds to `g`: equation (7).

    `squares` is the sum over the children of the square of their number of children. The
    possible moves are promotions, demotions, cousin swaps, and the two that take a
    grandchild to another child or exchange it with one.
    """
    moves = (
        grandchildren
        + children * (children - 1.0)
        + (grandchildren * grandchildren - squares)
        + 2.0 * (children * grandchildren - grandchildren)
    )
    return collecting * (children + grandchildren) + deciding * moves


@kernel
def one_tree_loss(
    parents: IntArray,
    rates: FloatArray,
    weights: FloatArray,
    filter_times: FloatArray,
    send_times: FloatArray,
    delays: FloatArray,
    collecting: float,
    deciding: float,
) -> tuple[float, FloatArray, FloatArray]:
    """Return the average loss with one tree for all objects: equations (9) to (12).

    `rates` (n, x); `weights` (n,) is by how much a second of delay at each server raises
    the average. Returns the average, and per node (n,) the delay from the source and the
    load; nodes outside the tree have zeros.
    """
    n, objects = rates.shape
    order = top_down_order(parents)
    peak = np.zeros((n, objects))
    passed = np.zeros((n, objects))
    receivers = np.zeros((n, objects))
    children = np.zeros(n)
    grandchildren = np.zeros(n)
    squares = np.zeros(n)
    load = np.zeros(n)
    added = np.zeros(n)
    for index in range(order.shape[0] - 1, -1, -1):
        k = order[index]
        total_peak = 0.0
        wanted = 0.0
        work = 0.0
        for x in range(objects):
            if rates[k, x] > peak[k, x]:
                peak[k, x] = rates[k, x]
            total_peak += peak[k, x]
            if peak[k, x] > 0.0:
                wanted += 1.0
            work += filter_times[k] * receivers[k, x] * peak[k, x] + send_times[k] * passed[k, x]
        load[k] = work
        if children[k] > 0.0:
            time = work / total_peak
            added[k] = passing_delay(
                work, time, filter_times[k] + send_times[k], children[k]
            ) + wanted * adaptation_delay(
                collecting, deciding, children[k], grandchildren[k], squares[k]
            )
        if k > 0:
            p = parents[k]
            children[p] += 1.0
            grandchildren[p] += children[k]
            squares[p] += children[k] * children[k]
            for x in range(objects):
                if peak[k, x] > peak[p, x]:
                    peak[p, x] = peak[k, x]
                passed[p, x] += peak[k, x]
                if peak[k, x] > 0.0:
                    receivers[p, x] += 1.0
    delay = np.zeros(n)
    average = 0.0
    for index in range(1, order.shape[0]):
        i = order[index]
        p = parents[i]
        delay[i] = delay[p] + added[p] + delays[p, i]
        average += weights[i] * delay[i]
    return average, delay, load


@kernel
def forest_loss(
    parents: IntArray,
    rates: FloatArray,
    weights: FloatArray,
    filter_times: FloatArray,
    send_times: FloatArray,
    delays: FloatArray,
    collecting: float,
    deciding: float,
) -> tuple[float, FloatArray, FloatArray]:
    """Return the average loss with a tree per object that share their servers' time.

    `parents` and `rates` by object: (x, n) and (n, x); `weights` (n, x). A node's load is
    the sum over its trees. Returns the average, the delay of each object at each node
    (n, x), and the load of each node (n,).
    """
    n, objects = rates.shape
    peak = np.zeros((n, objects))
    passed = np.zeros((n, objects))
    children = np.zeros((n, objects))
    grandchildren = np.zeros((n, objects))
    squares = np.zeros((n, objects))
    load = np.zeros(n)
    total_peak = np.zeros(n)
    for x in range(objects):
        order = top_down_order(parents[x])
        for index in range(order.shape[0] - 1, -1, -1):
            k = order[index]
            if rates[k, x] > peak[k, x]:
                peak[k, x] = rates[k, x]
            total_peak[k] += peak[k, x]
            load[k] += filter_times[k] * children[k, x] * peak[k, x] + send_times[k] * passed[k, x]
            if k > 0:
                p = parents[x, k]
                children[p, x] += 1.0
                grandchildren[p, x] += children[k, x]
                squares[p, x] += children[k, x] * children[k, x]
                passed[p, x] += peak[k, x]
                if peak[k, x] > peak[p, x]:
                    peak[p, x] = peak[k, x]
    delay = np.zeros((n, objects))
    average = 0.0
    for x in range(objects):
        order = top_down_order(parents[x])
        for index in range(1, order.shape[0]):
            i = order[index]
            p = parents[x, i]
            if load[p] >= 1.0:
                added = np.inf
            else:
                own = filter_times[p] * children[p, x] + send_times[p] * passed[p, x] / peak[p, x]
                added = (
                    load[p] / (1.0 - load[p]) * load[p] / total_peak[p]
                    + 0.5 * own * (1.0 - 1.0 / children[p, x])
                    + filter_times[p]
                    + send_times[p]
                    + adaptation_delay(
                        collecting,
                        deciding,
                        children[p, x],
                        grandchildren[p, x],
                        squares[p, x],
                    )
                )
            delay[i, x] = delay[p, x] + added + delays[p, i]
            average += weights[i, x] * delay[i, x]
    return average, delay, load
