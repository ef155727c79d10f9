"""The updates that a source publishes, and the ways that they take.

`n` nodes with the source at 0, `x` objects, `t` trees. Every update has one random number
between 0 and 1, its chance. A server needs the update when the chance is below the server's
share, its rate as a part of the rate of the source; a parent passes it on when the chance is
below the largest share in the child's subtree. Needs are nested by this: what a server needs
is never stopped above it, and of what arrives at node k child j gets the part r^m_j / r^m_k,
as Zhou, Ooi and Tan have it in section 3.1.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray, UintArray
from distributary.fidelity._cost_kernels import top_down_order
from distributary.kernels import kernel
from distributary.xorshift import uniform

__all__ = ["build_routes", "draw_updates"]


@kernel
def draw_updates(
    seed: UintArray, begins: FloatArray, rates: FloatArray, end: float
) -> tuple[FloatArray, FloatArray]:
    """Return when one object changes up to `end`, and the chance of every update.

    A Poisson process whose rate is `rates[e]` from `begins[e]` on. It forgets: where the rate
    changes, the time to the next update is drawn anew.
    """
    capacity = 64
    times = np.empty(capacity)
    chances = np.empty(capacity)
    size = 0
    for epoch in range(begins.shape[0]):
        now = begins[epoch]
        stop = min(begins[epoch + 1], end) if epoch + 1 < begins.shape[0] else end
        if rates[epoch] <= 0.0:
            continue
        while True:
            now -= np.log(1.0 - uniform(seed)) / rates[epoch]
            if now >= stop:
                break
            if size == capacity:
                capacity *= 2
                more_times = np.empty(capacity)
                more_chances = np.empty(capacity)
                more_times[:size] = times
                more_chances[:size] = chances
                times = more_times
                chances = more_chances
            times[size] = now
            chances[size] = uniform(seed)
            size += 1
    return times[:size].copy(), chances[:size].copy()


@kernel
def build_routes(
    parents: IntArray, rates: FloatArray, start: IntArray, child: IntArray, share: FloatArray
) -> None:
    """Enter to whom each node passes each object, and which share of its updates.

    `parents` (t, n) has one tree for all objects, or one for each; `rates` (n, x). Of object
    x the children of node k stand in `child` and their shares in `share`, both (x * n,), from
    `start[x, k]` to `start[x, k + 1]`; `start` is (x, n + 1). A child with no use for the
    object in its subtree is not among them.
    """
    n, objects = rates.shape
    size = 0
    peak = np.empty(n)
    room = np.empty(n + 1, dtype=np.int64)
    order = top_down_order(parents[0])
    for x in range(objects):
        tree = parents[x] if parents.shape[0] > 1 else parents[0]
        if parents.shape[0] > 1:
            order = top_down_order(tree)
        for k in range(n):
            peak[k] = rates[k, x]
        for index in range(order.shape[0] - 1, 0, -1):
            i = order[index]
            if peak[i] > peak[tree[i]]:
                peak[tree[i]] = peak[i]
        room[:] = 0
        for index in range(1, order.shape[0]):
            i = order[index]
            if peak[i] > 0.0:
                room[tree[i] + 1] += 1
        start[x, 0] = size
        for k in range(n):
            start[x, k + 1] = start[x, k] + room[k + 1]
            room[k] = start[x, k]
        size = start[x, n]
        for index in range(1, order.shape[0]):
            i = order[index]
            if peak[i] > 0.0:
                at = room[tree[i]]
                room[tree[i]] += 1
                child[at] = i
                share[at] = peak[i] / peak[0]
