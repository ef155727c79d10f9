"""The quickest way to every vertex when nothing is ever waited for, and a bound from it.

Shapes: `n` brokers, `m` formats.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel
from distributary.placement._timetable_kernels import ABSENT, HELD, Network

__all__ = ["busy_bound", "quickest_ways", "used_by_wishes"]


@kernel
def quickest_ways(network: Network, held: BoolArray) -> tuple[FloatArray, IntArray]:
    """Return when each vertex can be there at the earliest, and the vertex before it.

    Both (n, m); infinite and `ABSENT` for what cannot be made. A label-setting search at
    each broker, parents first: what its parent has is known by then.
    """
    n, m = network.wanted.shape
    time = np.full((n, m), np.inf)
    before = np.full((n, m), ABSENT, dtype=np.int64)
    settled = np.zeros(m, dtype=np.bool_)
    for v in range(n):
        for k in range(m):
            if v == 0:
                if held[k]:
                    time[v, k] = 0.0
                    before[v, k] = HELD
            elif time[network.parents[v], k] < np.inf:
                time[v, k] = time[network.parents[v], k] + network.sending[v, k]
                before[v, k] = network.parents[v] * m + k
        settled[:] = False
        for _ in range(m):
            i = -1
            for k in range(m):
                if not settled[k] and (i < 0 or time[v, k] < time[v, i]):
                    i = k
            if time[v, i] == np.inf:
                break
            settled[i] = True
            for e in range(network.out_start[i], network.out_start[i + 1]):
                j = network.out_to[e]
                reached = time[v, i] + network.node_costs[v] * network.costs[i, j]
                if not settled[j] and reached < time[v, j]:
                    time[v, j] = reached
                    before[v, j] = v * m + i
    return time, before


@kernel
def used_by_wishes(network: Network, before: IntArray) -> IntArray:
    """Return `before` (n, m) without what leads to no wish."""
    n, m = before.shape
    used = np.full((n, m), ABSENT, dtype=np.int64)
    for v in range(n):
        for k in range(m):
            if network.wanted[v, k]:
                u = v * m + k
                while u >= 0 and used[u // m, u % m] == ABSENT:
                    used[u // m, u % m] = before[u // m, u % m]
                    u = before[u // m, u % m]
            if v == 0 and before[v, k] == HELD:
                used[v, k] = HELD
    return used


@kernel
def busy_bound(network: Network, time: FloatArray) -> float:
    """Return a moment by which some broker cannot have all it wants.

    Each format a broker wants is the result of a job on its link or on its processor. No
    job starts before its input can be there, and the jobs of either go one after another.
    Whichever way the jobs are divided, even if one could be done in part by each, the
    link or the processor is busy until then. `time` (n, m) is from `quickest_ways`.
    """
    n, m = time.shape
    bound = 0.0
    linked = np.empty(m)
    made = np.empty(m)
    for v in range(n):
        wishes = np.flatnonzero(network.wanted[v] & (time[v] > 0.0))
        # The wishes that can be there late anyway make the strongest sets.
        wishes = wishes[np.argsort(-time[v][wishes], kind="mergesort")]
        link_free = np.inf
        input_there = np.inf
        for count in range(wishes.shape[0]):
            k = wishes[count]
            linked[count] = np.inf
            if v > 0 and time[network.parents[v], k] < np.inf:
                linked[count] = network.sending[v, k]
                link_free = min(link_free, time[network.parents[v], k])
            made[count] = np.inf
            for i in range(m):
                if time[v, i] < np.inf and network.costs[i, k] < np.inf:
                    made[count] = min(made[count], network.node_costs[v] * network.costs[i, k])
                    input_there = min(input_there, time[v, i])
            divided = _divide(linked[: count + 1], made[: count + 1], link_free, input_there)
            bound = max(bound, divided)
    return bound


@kernel
def _divide(linked: FloatArray, made: FloatArray, link_free: float, input_there: float) -> float:
    """Return how soon jobs can be over that take `linked` on one machine or `made` on another.

    The machines start at `link_free` and `input_there`; jobs may be divided between them.
    """
    all_linked = link_free + linked.sum()
    all_made = input_there + made.sum()
    best = min(all_linked, all_made)
    share = np.empty(linked.shape[0])
    on_link = 0.0
    on_processor = 0.0
    for index in range(linked.shape[0]):
        # What only one machine can do is not divided; what takes no time need not be.
        share[index] = np.inf
        if made[index] == np.inf:
            on_link += linked[index]
        elif linked[index] == np.inf:
            on_processor += made[index]
        elif linked[index] == 0.0 or made[index] == 0.0:
            continue
        else:
            share[index] = linked[index] / made[index]
            on_processor += made[index]
    # Move to the link first what gains most by it, until both end at the same moment.
    for index in np.argsort(share, kind="mergesort"):
        if share[index] == np.inf:
            break
        ahead = (input_there + on_processor) - (link_free + on_link)
        if ahead <= 0.0:
            break
        part = min(1.0, ahead / (linked[index] + made[index]))
        on_link += part * linked[index]
        on_processor -= part * made[index]
    return float(min(best, max(link_free + on_link, input_there + on_processor)))
