"""The schedule of a plan, kept up to date while the plan changes.

Times follow from the plan alone: see `schedule` for the rule. Only what a change can have
affected is computed again.

Shapes: `n` brokers, `m` formats.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel
from distributary.placement._timetable_kernels import (
    ABSENT,
    HELD,
    Network,
    Timetable,
    blank_timetable,
    keep,
    save,
)

__all__ = ["latest", "settle", "timetable_of"]


@kernel
def timetable_of(network: Network, before: IntArray) -> Timetable:
    """Return the plan that `before` (n, m) describes, with its schedule."""
    table = blank_timetable(before)
    settle(network, table, np.inf)
    keep(table)
    return table


@kernel
def settle(network: Network, table: Timetable, limit: float) -> bool:
    """Bring tails and times up to date, once per transaction.

    Tails go up the tree and times go down it; either stops where nothing changes. As soon
    as a wish is served after `limit` the answer is False, and the times are unfinished:
    all that is left is to take the transaction back.
    """
    n = table.late.shape[0]
    for v in range(n - 1, -1, -1):
        if table.stale_tails[v]:
            table.stale_tails[v] = False
            save(table, v)
            _set_tails(network, table, v)
    for v in range(n):
        if table.stale_times[v]:
            table.stale_times[v] = False
            save(table, v)
            _set_times(network, table, v)
            if table.late[v] > limit:
                return False
    return True


@kernel
def _set_tails(network: Network, table: Timetable, v: int) -> None:
    """Compute the tails at `v` from those at its children."""
    m = network.sizes.shape[0]
    tail = np.full(m, -np.inf)
    for k in range(m):
        if network.wanted[v, k]:
            tail[k] = 0.0
    for index in range(network.child_start[v], network.child_start[v + 1]):
        c = network.child[index]
        for k in range(m):
            if table.before[c, k] == v * m + k:
                tail[k] = max(tail[k], network.sending[c, k] + table.tail[c, k])
    for k in range(m):
        # Each tail climbs the chain of conversions as long as it is the longest there.
        at = k
        while tail[at] > -np.inf and table.before[v, at] >= 0 and table.before[v, at] // m == v:
            origin = table.before[v, at] % m
            through = network.node_costs[v] * network.costs[origin, at] + tail[at]
            if through <= tail[origin]:
                break
            tail[origin] = through
            at = origin
    for k in range(m):
        if table.before[v, k] == ABSENT:
            tail[k] = -np.inf
        if tail[k] != table.tail[v, k]:
            table.tail[v, k] = tail[k]
            table.stale_times[v] = True
            if v > 0:
                table.stale_tails[network.parents[v]] = True


@kernel
def _set_times(network: Network, table: Timetable, v: int) -> None:
    """Compute when the jobs of `v` run: those of its link, then those of its processor."""
    m = network.sizes.shape[0]
    for k in range(m):
        table.start[v, k] = np.inf
        table.arrival[v, k] = np.inf
        table.cause[v, k] = -1
        if table.before[v, k] == HELD:
            table.start[v, k] = 0.0
            table.arrival[v, k] = 0.0
    for converting in range(2):
        _run_jobs(network, table, v, converting == 1)
    late = 0.0
    for k in range(m):
        if network.wanted[v, k]:
            late = max(late, table.arrival[v, k])
    table.late[v] = late
    for index in range(network.child_start[v], network.child_start[v + 1]):
        c = network.child[index]
        for k in range(m):
            # Rows that nobody has settled yet were computed from the saved times.
            if table.before[c, k] == v * m + k and table.arrival[v, k] != table.old_arrival[v, k]:
                table.stale_times[c] = True
                break


@kernel
def _run_jobs(network: Network, table: Timetable, v: int, converting: bool) -> None:
    """Run the jobs of one link or processor, of those that can start the longest tail first."""
    m = network.sizes.shape[0]
    jobs = np.empty(m, dtype=np.int64)
    ready = np.empty(m)
    takes = np.empty(m)
    count = 0
    for k in range(m):
        origin = table.before[v, k]
        if origin >= 0 and (origin // m == v) == converting:
            jobs[count] = k
            count += 1
            if converting:
                takes[k] = network.node_costs[v] * network.costs[origin % m, k]
            else:
                takes[k] = network.sending[v, k]
    free = 0.0
    last = -1
    while count > 0:
        now = np.inf
        for index in range(count):
            k = jobs[index]
            ready[k] = table.arrival[table.before[v, k] // m, table.before[v, k] % m]
            now = min(now, ready[k])
        now = max(now, free)
        chosen = _most_urgent(jobs[:count], ready, table.tail[v], now)
        pause = _pause(jobs[:count], ready, takes, table.tail[v], now, jobs[chosen])
        while pause < np.inf:
            now = pause
            chosen = _most_urgent(jobs[:count], ready, table.tail[v], now)
            pause = _pause(jobs[:count], ready, takes, table.tail[v], now, jobs[chosen])
        k = jobs[chosen]
        table.cause[v, k] = last if now > ready[k] else table.before[v, k]
        table.start[v, k] = now
        free = now + takes[k]
        table.arrival[v, k] = free
        last = v * m + k
        # Jobs stay in the order of their formats, which settles ties.
        for index in range(chosen, count - 1):
            jobs[index] = jobs[index + 1]
        count -= 1


@kernel
def _most_urgent(jobs: IntArray, ready: FloatArray, tail: FloatArray, now: float) -> int:
    """Return where among `jobs` the one with the longest tail is that is ready by `now`."""
    chosen = -1
    for index in range(jobs.shape[0]):
        k = jobs[index]
        if ready[k] <= now and (chosen < 0 or tail[k] > tail[jobs[chosen]]):
            chosen = index
    return chosen


@kernel
def _pause(
    jobs: IntArray, ready: FloatArray, takes: FloatArray, tail: FloatArray, now: float, k: int
) -> float:
    """Return until when to wait for a job instead of starting `k`; infinity if not at all.

    Waiting pays when, of the two, the last wish is served earlier. Without pauses a long
    job that nobody is in a hurry for goes first whenever it is ready a moment earlier.
    """
    pause = np.inf
    for index in range(jobs.shape[0]):
        j = jobs[index]
        if not now < ready[j] < min(pause, now + takes[k]):
            continue
        k_first = now + takes[k] + max(tail[k], takes[j] + tail[j])
        j_first = ready[j] + takes[j] + max(tail[j], takes[k] + tail[k])
        if j_first < k_first:
            pause = ready[j]
    return pause


@kernel
def latest(table: Timetable) -> float:
    """Return when the last wish is served."""
    return float(table.late.max())
