"""Compiled: finding room in brokers that are nearly full.

Shapes: `demands` (users,), `limits` and `loads` (brokers,), `prices` (users, brokers),
`broker_of` (users,).
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel

__all__ = ["fill_tightly", "overload", "relieve", "try_all"]

NOBODY = -1


@inner_kernel
def overload(loads: FloatArray, limits: FloatArray) -> float:
    """Return by how much brokers are above their limits, all together."""
    total = 0.0
    for b in range(len(loads)):
        if loads[b] > limits[b]:
            total += loads[b] - limits[b]
    return total


@kernel
def fill_tightly(
    users: IntArray,
    demands: FloatArray,
    limits: FloatArray,
    loads: FloatArray,
    broker_of: IntArray,
) -> None:
    """Attach each user to the broker that has least room left with it.

    A user that fits nowhere goes where it is least too much, so that everybody has a broker.
    """
    for u in users:
        best = 0
        for b in range(1, len(limits)):
            left = limits[b] - loads[b] - demands[u]
            best_left = limits[best] - loads[best] - demands[u]
            if best_left < 0.0:
                if left > best_left:
                    best = b
            elif 0.0 <= left < best_left:
                best = b
        broker_of[u] = best
        loads[best] += demands[u]


@inner_kernel
def _recount(demands: FloatArray, broker_of: IntArray, loads: FloatArray) -> None:
    """Add the loads up again, so that what rounding adds does not pile up."""
    loads[:] = 0.0
    for u in range(len(demands)):
        loads[broker_of[u]] += demands[u]


@inner_kernel
def _relieve_once(
    crowded: int,
    demands: FloatArray,
    limits: FloatArray,
    prices: FloatArray,
    loads: FloatArray,
    broker_of: IntArray,
) -> bool:
    """Make the move or swap that leaves least overload at a broker and the other concerned.

    Of equally good ones, that with the smallest increase of the access cost, and of those the
    first. Returns whether there was one that helps.
    """
    users, brokers = len(demands), len(limits)
    over = loads[crowded] - limits[crowded]
    found = False
    best_user, best_other, best_broker = NOBODY, NOBODY, crowded
    best_change, best_price = 0.0, np.inf
    for u in range(users):
        if broker_of[u] != crowded or demands[u] <= 0.0:
            continue
        # First moves to each broker, then swaps with each user elsewhere.
        for choice in range(brokers + users):
            if choice < brokers:
                other, b, more = NOBODY, choice, demands[u]
            else:
                other = choice - brokers
                b, more = broker_of[other], demands[u] - demands[other]
            if b == crowded or more <= 0.0:
                continue
            change = max(over - more, 0.0) - over
            change += max(loads[b] + more - limits[b], 0.0) - max(loads[b] - limits[b], 0.0)
            if change > best_change or change >= 0.0:
                continue
            price = demands[u] * (prices[u, b] - prices[u, crowded])
            if other != NOBODY:
                price += demands[other] * (prices[other, crowded] - prices[other, b])
            if change < best_change or price < best_price:
                found = True
                best_change, best_price = change, price
                best_user, best_other, best_broker = u, other, b
    if found:
        more = demands[best_user]
        broker_of[best_user] = best_broker
        if best_other != NOBODY:
            broker_of[best_other] = crowded
            more -= demands[best_other]
        loads[crowded] -= more
        loads[best_broker] += more
    return found


@kernel
def relieve(
    demands: FloatArray,
    limits: FloatArray,
    prices: FloatArray,
    loads: FloatArray,
    broker_of: IntArray,
    numbers: FloatArray,
    steps_max: int,
) -> float:
    """Move and swap users until no broker is above its limit; return what overload remains.

    The most overloaded broker comes first. When nothing helps it, users of other brokers
    swap places at random, which gathers their room differently: `numbers` (kicks, swaps, 2)
    in [0, 1) choose them. Stops after `steps_max` comparisons.
    """
    users = len(demands)
    kick = 0
    steps = 0
    _recount(demands, broker_of, loads)
    best = broker_of.copy()
    best_over = overload(loads, limits)
    while best_over > 0.0 and steps < steps_max:
        crowded = 0
        for b in range(len(limits)):
            if loads[b] - limits[b] > loads[crowded] - limits[crowded]:
                crowded = b
        inside = 0
        for u in range(users):
            if broker_of[u] == crowded:
                inside += 1
        steps += (inside + 1) * (users + len(limits))
        if not _relieve_once(crowded, demands, limits, prices, loads, broker_of):
            if kick == len(numbers):
                break
            for i in range(numbers.shape[1]):
                u = int(numbers[kick, i, 0] * users)
                v = int(numbers[kick, i, 1] * users)
                at, to = broker_of[u], broker_of[v]
                more = demands[v] - demands[u]
                if at != to and loads[at] + more <= limits[at] and loads[to] - more <= limits[to]:
                    broker_of[u], broker_of[v] = to, at
                    loads[at] += more
                    loads[to] -= more
            kick += 1
        _recount(demands, broker_of, loads)
        over = overload(loads, limits)
        if over < best_over:
            best_over = over
            best[:] = broker_of
    broker_of[:] = best
    _recount(demands, broker_of, loads)
    return best_over


@kernel
def try_all(
    users: IntArray, demands: FloatArray, limits: FloatArray, broker_of: IntArray, steps_max: int
) -> int:
    """Try every way to put `users` into the brokers, the tightest broker first.

    Brokers with equal room are the same, so that only the first of them is tried; a branch
    ends when the room that the users left can use is less than their demand. Users by
    descending demand end soonest.

    Returns 1 when a way was found, which is in `broker_of`; 0 when there is none; -1 when
    `steps_max` steps did not suffice to tell.
    """
    count, brokers = len(users), len(limits)
    if count == 0:
        return 1
    room = limits.copy()
    left = np.zeros(count + 1)
    for k in range(count - 1, -1, -1):
        left[k] = left[k + 1] + demands[users[k]]
    smallest = demands[users[count - 1]]
    before = np.empty(count)
    tried = np.full(count, -1.0)
    depth = 0
    steps = 0
    while depth >= 0:
        steps += 1
        if steps > steps_max:
            return -1
        need = demands[users[depth]]
        best = NOBODY
        usable = 0.0
        for b in range(brokers):
            if room[b] >= smallest:
                usable += room[b]
            if room[b] >= need and room[b] > tried[depth] and (best < 0 or room[b] < room[best]):
                best = b
        if best < 0 or usable < left[depth] * (1.0 - 1e-12):
            tried[depth] = -1.0
            depth -= 1
            if depth >= 0:
                room[broker_of[users[depth]]] = before[depth]
            continue
        tried[depth] = room[best]
        before[depth] = room[best]
        room[best] -= need
        broker_of[users[depth]] = best
        depth += 1
        if depth == count:
            return 1
    return 0
