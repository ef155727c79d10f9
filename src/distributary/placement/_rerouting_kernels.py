"""Bringing formats to brokers by other ways, with an eye on the schedule.

Only the brokers between the root and a vertex can lead to it, so the best way into a
vertex is found layer by layer down that path: over the link, then through the conversions
of the broker. A job of a new way starts in the first gap of its link or processor that is
long enough, so that nothing already planned has to move.

Shapes: `n` brokers, `m` formats; vertices are `broker * m + format`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel
from distributary.placement._timetable_kernels import (
    ABSENT,
    HELD,
    Network,
    Timetable,
    detach,
    enter,
)

__all__ = ["Price", "Ways", "avoid", "connect", "empty_ways", "followers", "pull_up", "trim"]

# Where a label comes from, when it is not a format of the same broker.
_UNREACHED = -1
_PLANNED = -2
_RECEIVED = -3


class Price(NamedTuple):
    """What a way is judged by: its weights times arrival, time worked, and cost."""

    arrival: float
    work: float
    cost: float


class Ways(NamedTuple):
    """Room for the search of one way; (depth, m), (m,) or (depth,).

    `key`, `worth` (the key without the arrival), `start`, `time` and `via` are labels,
    `busy_start` and `busy_end` the jobs of one link or processor, `path` the brokers from
    the root on. `banned` (3,) holds a vertex that must not be used, and both ends of a job
    that must not be. `steps` (1,) counts pairs of formats looked at: a measure of work that
    is the same on every machine.
    """

    key: FloatArray
    worth: FloatArray
    start: FloatArray
    time: FloatArray
    via: IntArray
    settled: BoolArray
    busy_start: FloatArray
    busy_end: FloatArray
    path: IntArray
    banned: IntArray
    steps: IntArray


@kernel
def empty_ways(depth: int, m: int) -> Ways:
    """Return room for ways through at most `depth` brokers."""
    return Ways(
        np.zeros((depth, m)),
        np.zeros((depth, m)),
        np.zeros((depth, m)),
        np.zeros((depth, m)),
        np.zeros((depth, m), dtype=np.int64),
        np.zeros(m, dtype=np.bool_),
        np.zeros(m),
        np.zeros(m),
        np.zeros(depth, dtype=np.int64),
        np.full(3, -1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@kernel
def avoid(ways: Ways, vertex: int, origin: int, target: int) -> None:
    """Ban a vertex and the job from `origin` into `target`; -1 bans nothing."""
    ways.banned[0] = vertex
    ways.banned[1] = origin
    ways.banned[2] = target


@kernel
def trim(network: Network, table: Timetable, u: int) -> None:
    """Take out `u` and what only led to it, as far as nobody wants or uses it."""
    m = network.sizes.shape[0]
    while (
        table.before[u // m, u % m] >= 0
        and table.branches[u // m, u % m] == 0
        and not network.wanted[u // m, u % m]
    ):
        u = detach(network, table, u)


@kernel
def _rooted(table: Timetable, ways: Ways, layer: int, k: int) -> bool:
    """Does `k` at this layer's broker come from the root, and not from a vertex taken out?

    The labels of the layer above tell: a walk up to the root would take as long as the
    path has brokers, for every format of every layer.
    """
    m = table.before.shape[1]
    v = ways.path[layer]
    before = table.before[v, k]
    while before >= 0:
        if before // m != v:
            return bool(ways.via[layer - 1, before % m] == _PLANNED)
        before = table.before[v, before % m]
    return bool(before == HELD)


@kernel
def _gather(network: Network, table: Timetable, ways: Ways, v: int, converting: bool) -> int:
    """Write down when the link or processor of `v` is busy, in order; return how often."""
    m = network.sizes.shape[0]
    count = 0
    for k in range(m):
        before = table.before[v, k]
        if before < 0 or (before // m == v) != converting:
            continue
        at = count
        while at > 0 and ways.busy_start[at - 1] > table.start[v, k]:
            ways.busy_start[at] = ways.busy_start[at - 1]
            ways.busy_end[at] = ways.busy_end[at - 1]
            at -= 1
        ways.busy_start[at] = table.start[v, k]
        ways.busy_end[at] = table.arrival[v, k]
        count += 1
    return count


@kernel
def _first_gap(ways: Ways, count: int, ready: float, duration: float) -> float:
    """Return the first moment from `ready` on at which the duration fits in."""
    moment = ready
    for index in range(count):
        if ways.busy_start[index] >= moment + duration:
            break
        moment = max(moment, ways.busy_end[index])
    return moment


@kernel
def connect(network: Network, table: Timetable, ways: Ways, price: Price, x: int) -> bool:
    """Bring in the absent vertex `x` by the best way from what is planned; False if none.

    What hangs on vertices that were taken out does not count as planned.
    """
    m = network.sizes.shape[0]
    goal = x % m
    depth = 0
    v = x // m
    while v >= 0:
        depth += 1
        v = network.parents[v]
    ways.steps[0] += depth * m * m
    v = x // m
    for layer in range(depth - 1, -1, -1):
        ways.path[layer] = v
        v = network.parents[v]
    for layer in range(depth):
        _receive(network, table, ways, price, layer, x)
        _convert(network, table, ways, price, layer, x)
    layer, k = depth - 1, goal
    if ways.via[layer, k] == _UNREACHED:
        return False
    while ways.via[layer, k] != _PLANNED:
        u = ways.path[layer] * m + k
        start, time = ways.start[layer, k], ways.time[layer, k]
        if ways.via[layer, k] == _RECEIVED:
            layer -= 1
        else:
            k = ways.via[layer, k]
        enter(network, table, u, ways.path[layer] * m + k, start, time)
    return True


@kernel
def _receive(
    network: Network, table: Timetable, ways: Ways, price: Price, layer: int, x: int
) -> None:
    """Set the labels of one broker from what is planned there and what its parent has."""
    m = network.sizes.shape[0]
    v = ways.path[layer]
    busy = _gather(network, table, ways, v, False)
    for k in range(m):
        u = v * m + k
        ways.key[layer, k] = np.inf
        ways.via[layer, k] = _UNREACHED
        if table.before[v, k] != ABSENT:
            if _rooted(table, ways, layer, k):
                ways.time[layer, k] = table.arrival[v, k]
                ways.worth[layer, k] = 0.0
                ways.key[layer, k] = price.arrival * table.arrival[v, k]
                ways.via[layer, k] = _PLANNED
            continue
        if layer == 0 or ways.via[layer - 1, k] == _UNREACHED:
            continue
        if not (network.allowed[v, k] or u == x) or u == ways.banned[0]:
            continue
        if u == ways.banned[2] and network.parents[v] * m + k == ways.banned[1]:
            continue
        duration = network.sending[v, k]
        start = _first_gap(ways, busy, ways.time[layer - 1, k], duration)
        ways.start[layer, k] = start
        ways.time[layer, k] = start + duration
        ways.worth[layer, k] = (
            ways.worth[layer - 1, k]
            + price.work * duration
            + price.cost * network.link_weights[v] * network.sizes[k]
        )
        ways.key[layer, k] = price.arrival * ways.time[layer, k] + ways.worth[layer, k]
        ways.via[layer, k] = _RECEIVED


@kernel
def _convert(
    network: Network, table: Timetable, ways: Ways, price: Price, layer: int, x: int
) -> None:
    """Lower the labels of one broker by its conversions, the best label first."""
    m = network.sizes.shape[0]
    v = ways.path[layer]
    busy = _gather(network, table, ways, v, True)
    ways.settled[:] = False
    for _ in range(m):
        i = -1
        for k in range(m):
            if (
                not ways.settled[k]
                and ways.via[layer, k] != _UNREACHED
                and (i < 0 or ways.key[layer, k] < ways.key[layer, i])
            ):
                i = k
        if i < 0 or v * m + i == x:
            return
        ways.settled[i] = True
        for e in range(network.out_start[i], network.out_start[i + 1]):
            j = network.out_to[e]
            u = v * m + j
            if ways.settled[j] or table.before[v, j] != ABSENT:
                continue
            if not (network.allowed[v, j] or u == x) or u == ways.banned[0]:
                continue
            if u == ways.banned[2] and v * m + i == ways.banned[1]:
                continue
            duration = network.node_costs[v] * network.costs[i, j]
            worth = (
                ways.worth[layer, i]
                + price.work * duration
                + price.cost * network.node_weights[v] * network.costs[i, j]
            )
            if price.arrival * (ways.time[layer, i] + duration) + worth >= ways.key[layer, j]:
                continue
            start = _first_gap(ways, busy, ways.time[layer, i], duration)
            key = price.arrival * (start + duration) + worth
            if key < ways.key[layer, j]:
                ways.key[layer, j] = key
                ways.worth[layer, j] = worth
                ways.start[layer, j] = start
                ways.time[layer, j] = start + duration
                ways.via[layer, j] = i


@kernel
def followers(network: Network, table: Timetable, u: int) -> IntArray:
    """Return the vertices that come from `u`, (branches,)."""
    m = network.sizes.shape[0]
    v, k = u // m, u % m
    found = np.empty(table.branches[v, k], dtype=np.int64)
    size = 0
    if size == found.shape[0]:
        return found
    for j in range(m):
        if table.before[v, j] == u:
            found[size] = v * m + j
            size += 1
    for index in range(network.child_start[v], network.child_start[v + 1]):
        c = network.child[index]
        if table.before[c, k] == u:
            found[size] = c * m + k
            size += 1
    return found


@kernel
def pull_up(network: Network, table: Timetable, u: int, wishes_max: int) -> IntArray:
    """Take out `u`, all that comes from it and what only led to it; return the wishes in it.

    When there are more than `wishes_max` of them nothing is taken out, and none returned.
    """
    m = network.sizes.shape[0]
    pulled = [u]
    wishes = 0
    at = 0
    while at < len(pulled):
        w = pulled[at]
        if network.wanted[w // m, w % m]:
            wishes += 1
        if wishes > wishes_max:
            return np.empty(0, dtype=np.int64)
        pulled.extend(followers(network, table, w))
        at += 1
    found = np.empty(wishes, dtype=np.int64)
    size = 0
    for w in pulled[::-1]:
        if network.wanted[w // m, w % m]:
            found[size] = w
            size += 1
        before = detach(network, table, w)
        if w == u:
            trim(network, table, before)
    return found
