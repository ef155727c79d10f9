"""A plan that can be changed and changed back, with its schedule beside it.

A plan is a tree: `before[v, k]` is the vertex (`broker * m + format`) that format `k` at
broker `v` comes from, `ABSENT` when `v` does not have it, `HELD` when the root holds it.
What comes from the parent was sent over the link into `v`, what comes from another format
at `v` was converted there; these are the jobs of the link and of the processor.

A change is a transaction: rows of a broker are saved before they are touched, `settle` in
`_schedule_kernels` brings the times up to date, and the whole is then kept or put back.

Shapes: `n` brokers, `m` formats, `e` conversions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel

__all__ = [
    "ABSENT",
    "HELD",
    "Network",
    "Timetable",
    "blank_timetable",
    "detach",
    "enter",
    "keep",
    "put_back",
    "save",
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
def blank_timetable(before: IntArray) -> Timetable:
    """Return the plan that `before` (n, m) describes, with all times still to be settled."""
    n, m = before.shape
    branches = np.zeros((n, m), dtype=np.int64)
    for v in range(n):
        for k in range(m):
            if before[v, k] >= 0:
                branches[before[v, k] // m, before[v, k] % m] += 1
    return Timetable(
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


@kernel
def save(table: Timetable, v: int) -> None:
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
    save(table, v)
    table.stale_tails[v] = True
    table.stale_times[v] = True
    if v > 0:
        save(table, network.parents[v])
        table.stale_tails[network.parents[v]] = True


@kernel
def _job_cost(network: Network, v: int, k: int, before: int) -> float:
    """Return what the job that brings `k` to `v` from `before` costs."""
    m = network.sizes.shape[0]
    if before // m == v:
        return float(network.node_weights[v] * network.costs[before % m, k])
    return float(network.link_weights[v] * network.sizes[k])


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
    before = int(table.before[v, k])
    table.before[v, k] = ABSENT
    table.branches[before // m, before % m] -= 1
    table.gain[0] += _job_cost(network, v, k, before)
    return before
