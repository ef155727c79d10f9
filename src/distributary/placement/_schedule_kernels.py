"""The schedule of a plan, kept up to date while the plan changes.

A plan is a tree: `before[v, k]` is the vertex (`broker * m + format`) that format `k` at
broker `v` comes from, `ABSENT` when `v` does not have it, `HELD` when the root holds it.
What comes from the parent was sent over the link into `v`, what comes from another format
at `v` was converted there; these are the jobs of the link and of the processor.

A change is a transaction: rows of a broker are saved before they are touched, `settle`
brings the times up to date where they can have changed and nowhere else, and the whole is
then kept or taken back.

Shapes: `n` brokers, `m` formats, `e` conversions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray, kernel

__all__ = [
    "ABSENT",
    "HELD",
    "Network",
    "Timetable",
    "detach",
    "enter",
    "keep",
    "latest",
    "put_back",
    "settle",
    "timetable_of",
]

ABSENT = -1
HELD = -2


class Network(NamedTuple):
    """How long everything takes, and what it costs.

    `child[child_start[v]:child_start[v + 1]]` are the children of `v`. Conversions by
    origin: those out of `i` are `e` in `out_start[i]:out_start[i + 1]`, into format
    `out_to[e]`. `sending` (n, m) is how long each format takes on the link into each
    broker; a conversion takes `node_costs[v] * costs[i, j]`. `link_weights` and
    `node_weights` are the factors of the plan's cost.
    """

    parents: IntArray
    child_start: IntArray
    child: IntArray
    out_start: IntArray
    out_to: IntArray
    costs: FloatArray
    sizes: FloatArray
    sending: FloatArray
    node_costs: FloatArray
    link_weights: FloatArray
    node_weights: FloatArray
    wanted: BoolArray
    allowed: BoolArray


class Timetable(NamedTuple):
    """A plan under change, with its schedule; arrays are (n, m) or (n,).

    `branches` is how many jobs use a vertex as their input. `start` and `arrival` are the
    times of the job into a vertex, `cause` the vertex it waited for: its input, or the
    job before it on the same link or processor. `tail` is the longest way from a vertex
    to a wish, waiting left out; minus infinity when nobody waits for it. `late` is when a
    broker's last wish is served. `gain` (1,) is what the transaction has saved in cost.
    The rest belongs to `settle` and to transactions.
    """

    before: IntArray
    branches: IntArray
    start: FloatArray
    arrival: FloatArray
    cause: IntArray
    tail: FloatArray
    late: FloatArray
    gain: FloatArray
    stale_tails: BoolArray
    stale_times: BoolArray
    saved: BoolArray
    saved_node: IntArray
    saved_count: IntArray
    old_before: IntArray
    old_branches: IntArray
    old_start: FloatArray
    old_arrival: FloatArray
    old_cause: IntArray
    old_tail: FloatArray
    old_late: FloatArray


@kernel
def timetable_of(network: Network, before: IntArray) -> Timetable:
    """Return the schedule of the plan that `before` (n, m) describes."""
    n, m = before.shape
    branches = np.zeros((n, m), dtype=np.int64)
    for v in range(n):
        for k in range(m):
            if before[v, k] >= 0:
                branches[before[v, k] // m, before[v, k] % m] += 1
    table = Timetable(
        before.copy(),
        branches,
        np.full((n, m), np.inf),
        np.full((n, m), np.inf),
        np.full((n, m), -1, dtype=np.int64),
        np.full((n, m), -np.inf),
        np.zeros(n),
        np.zeros(1),
        np.ones(n, dtype=np.bool_),
        np.ones(n, dtype=np.bool_),
        np.zeros(n, dtype=np.bool_),
        np.zeros(n, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros((n, m), dtype=np.int64),
        np.zeros((n, m), dtype=np.int64),
        np.zeros((n, m)),
        np.zeros((n, m)),
        np.zeros((n, m), dtype=np.int64),
        np.zeros((n, m)),
        np.zeros(n),
    )
    settle(network, table)
    keep(table)
    return table


@kernel
def _save(table: Timetable, v: int) -> None:
    """Remember the rows of `v`, unless this transaction has done so."""
    if table.saved[v]:
        return
    table.saved[v] = True
    table.saved_node[table.saved_count[0]] = v
    table.saved_count[0] += 1
    for k in range(table.before.shape[1]):
        table.old_before[v, k] = table.before[v, k]
        table.old_branches[v, k] = table.branches[v, k]
        table.old_start[v, k] = table.start[v, k]
        table.old_arrival[v, k] = table.arrival[v, k]
        table.old_cause[v, k] = table.cause[v, k]
        table.old_tail[v, k] = table.tail[v, k]
    table.old_late[v] = table.late[v]


@kernel
def keep(table: Timetable) -> None:
    """End the transaction and keep what it changed."""
    for index in range(table.saved_count[0]):
        table.saved[table.saved_node[index]] = False
    table.saved_count[0] = 0
    table.gain[0] = 0.0


@kernel
def put_back(table: Timetable) -> None:
    """End the transaction and take back what it changed."""
    for index in range(table.saved_count[0]):
        v = table.saved_node[index]
        for k in range(table.before.shape[1]):
            table.before[v, k] = table.old_before[v, k]
            table.branches[v, k] = table.old_branches[v, k]
            table.start[v, k] = table.old_start[v, k]
            table.arrival[v, k] = table.old_arrival[v, k]
            table.cause[v, k] = table.old_cause[v, k]
            table.tail[v, k] = table.old_tail[v, k]
        table.late[v] = table.old_late[v]
    table.stale_tails[:] = False
    table.stale_times[:] = False
    keep(table)


@kernel
def _touch(network: Network, table: Timetable, v: int) -> None:
    """Note that the jobs of `v` change: its own times, and the tails of its parent."""
    _save(table, v)
    table.stale_tails[v] = True
    table.stale_times[v] = True
    if v > 0:
        _save(table, network.parents[v])
        table.stale_tails[network.parents[v]] = True


@kernel
def _job_cost(network: Network, v: int, k: int, before: int) -> float:
    """Return what the job that brings `k` to `v` from `before` costs."""
    m = network.sizes.shape[0]
    if before // m == v:
        return network.node_weights[v] * network.costs[before % m, k]
    return network.link_weights[v] * network.sizes[k]


@kernel
def enter(
    network: Network, table: Timetable, u: int, before: int, start: float, arrival: float
) -> None:
    """Bring the absent vertex `u` in from `before`; the times hold until `settle`."""
    m = network.sizes.shape[0]
    v, k = u // m, u % m
    _touch(network, table, v)
    table.before[v, k] = before
    table.branches[before // m, before % m] += 1
    table.start[v, k] = start
    table.arrival[v, k] = arrival
    table.gain[0] -= _job_cost(network, v, k, before)


@kernel
def detach(network: Network, table: Timetable, u: int) -> int:
    """Take out the job into `u`, and return where it came from; what follows `u` hangs."""
    m = network.sizes.shape[0]
    v, k = u // m, u % m
    _touch(network, table, v)
    before = table.before[v, k]
    table.before[v, k] = ABSENT
    table.branches[before // m, before % m] -= 1
    table.gain[0] += _job_cost(network, v, k, before)
    return before


@kernel
def settle(network: Network, table: Timetable) -> None:
    """Bring tails and times up to date, once per transaction.

    Tails go up the tree and times go down it; either stops where nothing changes.
    """
    n = table.late.shape[0]
    for v in range(n - 1, -1, -1):
        if table.stale_tails[v]:
            table.stale_tails[v] = False
            _save(table, v)
            _set_tails(network, table, v)
    for v in range(n):
        if table.stale_times[v]:
            table.stale_times[v] = False
            _save(table, v)
            _set_times(network, table, v)


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
        while True:
            chosen = -1
            for index in range(count):
                k = jobs[index]
                if ready[k] <= now and (
                    chosen < 0 or table.tail[v, k] > table.tail[v, jobs[chosen]]
                ):
                    chosen = index
            k = jobs[chosen]
            pause = np.inf
            for index in range(count):
                j = jobs[index]
                if ready[j] > now and ready[j] < min(pause, now + takes[k]):
                    first = max(takes[j] + table.tail[v, j], table.tail[v, k])
                    second = max(takes[k] + table.tail[v, k], table.tail[v, j])
                    if ready[j] + max(
                        takes[j] + table.tail[v, j], takes[j] + takes[k] + table.tail[v, k]
                    ) < now + takes[k] + max(table.tail[v, k], takes[j] + table.tail[v, j]):
                        pause = ready[j]
            if pause == np.inf:
                break
            now = pause
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
def latest(table: Timetable) -> float:
    """Return when the last wish is served."""
    return float(table.late.max())
