"""Local search for an early last delivery.

Three moves work on the critical path, the chain of jobs that the last delivery waited
for: a vertex comes another way; a vertex is taken out and what came from it comes from
elsewhere; a vertex and everything below it are taken out and all wishes in that part are
served anew, one by one. A fourth pass makes the plan cheaper and no slower.

Shapes: `n` brokers, `m` formats; vertices are `broker * m + format`.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel
from distributary.placement._rerouting_kernels import (
    Price,
    Ways,
    avoid,
    connect,
    followers,
    pull_up,
    trim,
)
from distributary.placement._schedule_kernels import latest, settle
from distributary.placement._timetable_kernels import (
    ABSENT,
    Network,
    Timetable,
    detach,
    keep,
    put_back,
)

__all__ = ["cheapen", "critical_path", "hasten", "replant", "serve"]

# Times and costs that differ by a smaller share are equal up to rounding.
_NOISE = 1e-12
_CROWDING_NOISE = 1e-9


@kernel
def serve(network: Network, table: Timetable, ways: Ways, price: Price, wishes: IntArray) -> bool:
    """Serve absent wishes one after another; False when one cannot be served."""
    m = network.sizes.shape[0]
    for x in wishes:
        if table.before[x // m, x % m] == ABSENT and not connect(network, table, ways, price, x):
            return False
    return True


@kernel
def critical_path(network: Network, table: Timetable) -> IntArray:
    """Return the jobs that the last delivery waited for, the last first."""
    m = network.sizes.shape[0]
    v = int(np.argmax(table.late))
    path = [0]
    path.pop()
    for k in range(m):
        if network.wanted[v, k] and table.arrival[v, k] == table.late[v]:
            u = v * m + k
            while u >= 0 and table.before[u // m, u % m] >= 0:
                path.append(u)
                u = table.cause[u // m, u % m]
            break
    found = np.empty(len(path), dtype=np.int64)
    for index in range(len(path)):
        found[index] = path[index]
    return found


@kernel
def _crowding(table: Timetable, scale: float) -> float:
    """Return how many brokers are about as late as `scale`.

    The sum of the 64th powers of their share of it: lower when fewer are, or when they
    are less so. With several brokers equally late it shows that one of them got better.
    """
    total = 0.0
    for v in range(table.late.shape[0]):
        share = table.late[v] / scale
        for _ in range(6):
            share *= share
        total += share
    return total


@kernel
def _accept(network: Network, table: Timetable, before: float, crowding: float) -> bool:
    """End the transaction: keep it if it is faster, or as fast and less crowded."""
    if settle(network, table, before) and (
        latest(table) < before * (1.0 - _NOISE)
        or _crowding(table, before) < crowding * (1.0 - _CROWDING_NOISE)
    ):
        keep(table)
        return True
    put_back(table)
    return False


@kernel
def _come_another_way(network: Network, table: Timetable, ways: Ways, price: Price, u: int) -> bool:
    """Bring `u` by another job than now, with what follows it; False if there is none."""
    before = detach(network, table, u)
    trim(network, table, before)
    avoid(ways, -1, before, u)
    return connect(network, table, ways, price, u)


@kernel
def _do_without(network: Network, table: Timetable, ways: Ways, price: Price, u: int) -> bool:
    """Take out `u` and bring what came from it by other ways; False if there are none."""
    served = followers(network, table, u)
    m = network.sizes.shape[0]
    order = np.empty(served.shape[0])
    for index in range(served.shape[0]):
        x = served[index]
        order[index] = -table.tail[x // m, x % m]
        detach(network, table, x)
    trim(network, table, u)
    avoid(ways, u, -1, -1)
    return serve(network, table, ways, price, served[np.argsort(order, kind="mergesort")])


@kernel
def hasten(
    network: Network, table: Timetable, ways: Ways, works: FloatArray, steps_max: int
) -> None:
    """Try the first two moves along the critical path until none helps.

    `works` are the weights of work against arrival to try; `steps_max` is when to stop at
    the latest, counted as `Ways.steps`.
    """
    m = network.sizes.shape[0]
    improved = True
    while improved:
        improved = False
        before = latest(table)
        if before <= 0.0:
            return
        crowding = _crowding(table, before)
        for u in critical_path(network, table):
            for work in works:
                if ways.steps[0] >= steps_max:
                    return
                price = Price(1.0, work, 0.0)
                if _come_another_way(network, table, ways, price, u):
                    improved = _accept(network, table, before, crowding)
                else:
                    put_back(table)
                if not improved and not network.wanted[u // m, u % m]:
                    if _do_without(network, table, ways, price, u):
                        improved = _accept(network, table, before, crowding)
                    else:
                        put_back(table)
                if improved:
                    break
            if improved:
                break


@kernel
def replant(
    network: Network,
    table: Timetable,
    ways: Ways,
    quickest: FloatArray,
    work: float,
    limit: float,
    chance: FloatArray,
) -> bool:
    """Take out a part of the tree that the critical path enters, and serve it anew.

    `quickest` (n, m) is when a wish could be served if nothing else were to be done; the
    farthest are served first, give or take a part that is drawn. `chance` (4 + wishes,)
    are draws from [0, 1), and a part with more wishes than that is left alone. Returns
    whether the new part is kept: when the last delivery is not after `limit`.
    """
    m = network.sizes.shape[0]
    path = critical_path(network, table)
    if path.shape[0] == 0:
        return False
    u = path[int(chance[0] * path.shape[0])]
    origin = table.before[u // m, u % m]
    wishes = pull_up(network, table, u, chance.shape[0] - 4)
    if chance[1] < 0.5:
        avoid(ways, -1, origin, u)
    else:
        avoid(ways, -1, -1, -1)
    if chance[2] < 0.5:
        # Something else at the same broker, or the wishes stay in each other's way.
        v, k = u // m, int(chance[3] * m)
        if table.before[v, k] >= 0:
            more = pull_up(network, table, v * m + k, chance.shape[0] - 4 - wishes.shape[0])
            wishes = np.concatenate((wishes, more))
    order = np.empty(wishes.shape[0])
    for index in range(wishes.shape[0]):
        x = wishes[index]
        order[index] = -quickest[x // m, x % m] * (0.5 + chance[4 + index])
    wishes = wishes[np.argsort(order, kind="mergesort")]
    if (
        wishes.shape[0] > 0
        and serve(network, table, ways, Price(1.0, work, 0.0), wishes)
        and settle(network, table, limit)
    ):
        keep(table)
        return True
    put_back(table)
    return False


@kernel
def cheapen(
    network: Network,
    table: Timetable,
    ways: Ways,
    patience: float,
    saving_min: float,
    first: int,
    last: int,
) -> float:
    """Make the plan cheaper without making its last delivery any later.

    Tries once the vertices of the brokers from `first` to before `last`, the last first;
    `patience` is what a second of arrival may cost, and a change that saves less than
    `saving_min` is rounding. Returns the saving.
    """
    m = network.sizes.shape[0]
    saved = 0.0
    limit = latest(table)
    price = Price(patience, 0.0, 1.0)
    for u in range(last * m - 1, first * m - 1, -1):
        v, k = u // m, u % m
        for without in range(2):
            if table.before[v, k] < 0 or (without and network.wanted[v, k]):
                continue
            if without:
                done = _do_without(network, table, ways, price, u)
            else:
                done = _come_another_way(network, table, ways, price, u)
            gain = table.gain[0]
            if done and gain > saving_min and settle(network, table, limit):
                keep(table)
                saved += gain
            else:
                put_back(table)
    return saved
