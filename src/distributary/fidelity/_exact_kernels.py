"""Every tree there is, by Prüfer sequences.

Shapes: `m` servers, labelled 0 to m - 1, and the source, labelled m; `x` objects. With the
source as the largest label, reading a sequence takes off leaves in an order in which
children come before their parents and the source stays to the end: the order in which
peaks and loads are added up. The cost is that of `_cost_kernels.one_tree_loss`, which
allocates a dozen arrays a call and would take most of its time over that here.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.fidelity._cost_kernels import adaptation_delay, passing_delay
from distributary.kernels import inner_kernel, kernel

__all__ = ["best_tree"]


@kernel
def best_tree(
    rates: FloatArray,
    weights: FloatArray,
    filter_times: FloatArray,
    send_times: FloatArray,
    delays: FloatArray,
    collecting: float,
    deciding: float,
) -> IntArray:
    """Return the parents (m,) of the tree with the least average loss.

    `rates` (m + 1, x), `weights`, `filter_times`, `send_times` (m + 1,), `delays`
    (m + 1, m + 1), all by label, m at least 1. Of trees that lose the same, the first
    sequence wins; when a node is overloaded in every tree, the smallest largest load.
    """
    count, objects = rates.shape
    m = count - 1
    sequence = np.zeros(m - 1, dtype=np.int64)
    degree = np.empty(count, dtype=np.int64)
    parents = np.empty(m, dtype=np.int64)
    order = np.empty(count, dtype=np.int64)
    peak = np.empty((count, objects))
    passed = np.empty((count, objects))
    receivers = np.empty((count, objects))
    children = np.empty(count)
    grandchildren = np.empty(count)
    squares = np.empty(count)
    added = np.empty(count)
    delay = np.empty(count)
    best = np.zeros(m, dtype=np.int64)
    best_average = np.inf
    best_load = np.inf
    more = True
    while more:
        _read(sequence, degree, parents, order)
        peak[:] = rates
        passed[:] = 0.0
        receivers[:] = 0.0
        children[:] = 0.0
        grandchildren[:] = 0.0
        squares[:] = 0.0
        largest = 0.0
        for index in range(count):
            k = order[index]
            if children[k] > 0.0:
                total_peak = 0.0
                wanted = 0.0
                load = 0.0
                for x in range(objects):
                    total_peak += peak[k, x]
                    if peak[k, x] > 0.0:
                        wanted += 1.0
                    load += (
                        filter_times[k] * receivers[k, x] * peak[k, x]
                        + send_times[k] * passed[k, x]
                    )
                largest = max(largest, load)
                if largest >= 1.0 and (best_average < np.inf or largest >= best_load):
                    break
                added[k] = passing_delay(
                    load, load / total_peak, filter_times[k] + send_times[k], children[k]
                ) + wanted * adaptation_delay(
                    collecting, deciding, children[k], grandchildren[k], squares[k]
                )
            if k < m:
                p = parents[k]
                children[p] += 1.0
                grandchildren[p] += children[k]
                squares[p] += children[k] * children[k]
                for x in range(objects):
                    if peak[k, x] > 0.0:
                        peak[p, x] = max(peak[p, x], peak[k, x])
                        passed[p, x] += peak[k, x]
                        receivers[p, x] += 1.0
        if largest < 1.0:
            average = 0.0
            delay[m] = 0.0
            for index in range(m - 1, -1, -1):
                i = order[index]
                p = parents[i]
                delay[i] = delay[p] + added[p] + delays[p, i]
                average += weights[i] * delay[i]
            if average < best_average:
                best_average = average
                best[:] = parents
        elif best_average == np.inf and largest < best_load:
            best_load = largest
            best[:] = parents
        more = _advance(sequence, count)
    return best


@inner_kernel
def _read(sequence: IntArray, degree: IntArray, parents: IntArray, order: IntArray) -> None:
    """Write the tree of a Prüfer sequence to `parents`, and its nodes, children first, to `order`.

    `sequence` (m - 1,), `parents` (m,), `degree` and `order` (m + 1,).
    """
    m = parents.shape[0]
    degree[:] = 1
    for index in range(m - 1):
        degree[sequence[index]] += 1
    smallest = 0
    while degree[smallest] != 1:
        smallest += 1
    leaf = smallest
    for index in range(m - 1):
        p = sequence[index]
        parents[leaf] = p
        order[index] = leaf
        degree[p] -= 1
        if p < smallest and degree[p] == 1:
            leaf = p
        else:
            smallest += 1
            while degree[smallest] != 1:
                smallest += 1
            leaf = smallest
    parents[leaf] = m
    order[m - 1] = leaf
    order[m] = m


@inner_kernel
def _advance(sequence: IntArray, count: int) -> bool:
    """Step to the next sequence over `count` labels; false after the last one."""
    for index in range(sequence.shape[0] - 1, -1, -1):
        sequence[index] += 1
        if sequence[index] < count:
            return True
        sequence[index] = 0
    return False
