"""Compiled: the trees of Steiner-tree mixing, and the draw that mixes them.

Shapes: `access` (users, brokers), `core` (brokers, brokers), `ways` and `last` (brokers,
users), `weights` (users, brokers). The members of a channel are its subscribers: `near` and
`ends` (brokers, members) are the columns of `ways` and `last` that concern them, side by
side, for a tree reads them again and again.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel

__all__ = ["draw_brokers", "edge_traffic", "shortest_ways"]

SmallIntArray: TypeAlias = NDArray[np.int32]

NOBODY = -1


@kernel
def shortest_ways(
    access: FloatArray, core: FloatArray, nearest: IntArray
) -> tuple[FloatArray, SmallIntArray]:
    """Return the price of the shortest way from each broker to each user, and its last broker.

    Of equal ways the direct one is taken, then the one whose last broker is nearest, then
    the first.

    `nearest` (brokers, brokers) has all brokers by their price from each, nearest first.
    """
    users, brokers = access.shape
    ways = np.empty((brokers, users))
    last = np.empty((brokers, users), np.int32)
    for u in range(users):
        least = np.inf
        for b in range(brokers):
            least = min(least, access[u, b])
        for t in range(brokers):
            best, at = access[u, t], t
            for b in nearest[t]:
                if core[t, b] + least >= best:
                    break
                way = core[t, b] + access[u, b]
                if way < best:
                    best, at = way, b
            ways[t, u] = best
            last[t, u] = at
    return ways, last


@inner_kernel
def _grow(
    start: int,
    left_out: int,
    near: FloatArray,
    ends: SmallIntArray,
    key: FloatArray,
    parent: SmallIntArray,
    active: SmallIntArray,
    inside: BoolArray,
    openers: IntArray,
) -> int:
    """Grow the tree of one channel from a broker; return how many other brokers joined it.

    The nearest member joins next, of equally near ones the first; when the way to it ends
    with a broker that is not in the tree, that broker joins as well, and members to whom it
    is nearer are reached from there. Between two brokers joining, the order of members does
    not matter: all who are nearer than the next to bring in a broker keep what they have.

    `left_out` is a member that does not take part, or -1. Filled: by `key` and `parent` the price
    of the way by which each member joins, and its broker; by `openers` the members that brought in
    a broker. `active` and `inside` are room for as many as there are members and brokers.
    """
    inside[:] = False
    inside[start] = True
    count, opened = 0, 0
    best, best_key = NOBODY, np.inf
    for i in range(near.shape[1]):
        key[i] = near[start, i]
        parent[i] = ends[start, i]
        if i == left_out:
            continue
        active[count] = i
        count += 1
        if key[i] < best_key and not inside[parent[i]]:
            best, best_key = i, key[i]
    while best >= 0:
        joining, joining_key = best, best_key
        broker = parent[joining]
        inside[broker] = True
        openers[opened] = joining
        opened += 1
        row, row_ends = near[broker], ends[broker]
        best, best_key = NOBODY, np.inf
        kept = 0
        for k in range(count):
            i = active[k]
            own_key = key[i]
            if own_key < joining_key or (own_key == joining_key and i <= joining):
                continue
            active[kept] = i
            kept += 1
            if row[i] < own_key:
                own_key = row[i]
                key[i] = own_key
                parent[i] = row_ends[i]
            if own_key < best_key and not inside[parent[i]]:
                best, best_key = i, own_key
        count = kept
    return opened


@inner_kernel
def _find_starts(
    members: IntArray,
    publishers: IntArray,
    access: FloatArray,
    near: FloatArray,
    starts: IntArray,
) -> None:
    """Fill in the broker at which the tree of each publisher starts.

    That is the first on the shortest way to any other member; -1 when there is none.
    """
    brokers = len(near)
    nearest = np.full(brokers, NOBODY)
    way, next_way = np.full(brokers, np.inf), np.full(brokers, np.inf)
    for b in range(brokers):
        for i in range(len(members)):
            if near[b, i] < way[b]:
                next_way[b] = way[b]
                way[b] = near[b, i]
                nearest[b] = members[i]
            elif near[b, i] < next_way[b]:
                next_way[b] = near[b, i]
    for k in range(len(publishers)):
        u = publishers[k]
        starts[k] = NOBODY
        best = np.inf
        for b in range(brokers):
            total = access[u, b] + (next_way[b] if nearest[b] == u else way[b])
            if total < best:
                starts[k], best = b, total


@kernel
def edge_traffic(
    access: FloatArray,
    ways: FloatArray,
    last: SmallIntArray,
    publisher_start: IntArray,
    publisher: IntArray,
    rate: FloatArray,
    member_start: IntArray,
    member: IntArray,
    weights: FloatArray,
) -> None:
    """Add to `weights` what passes each edge between user and broker in all trees.

    A tree depends on its publisher only through the broker where it starts, and in that the
    publisher itself is not among those to be reached. Hence the publishers of a channel that
    start at one broker share a tree in which all subscribers are reached: leaving out one
    that brought in no broker changes nothing for the others. Only for a publisher that did
    is a tree grown without it.

    Publishers with their rates, and members, come channel by channel, users ascending.
    """
    users, brokers = access.shape
    key, parent, active = np.empty(users), np.empty(users, np.int32), np.empty(users, np.int32)
    inside, openers = np.empty(brokers, np.bool_), np.empty(brokers, np.int64)
    starts = np.empty(users, np.int64)
    own = np.zeros(users)
    apart = np.full(users, NOBODY)
    for c in range(len(member_start) - 1):
        members = member[member_start[c] : member_start[c + 1]]
        publishers = publisher[publisher_start[c] : publisher_start[c + 1]]
        rates = rate[publisher_start[c] : publisher_start[c + 1]]
        if len(members) == 0 or len(publishers) == 0:
            continue
        near, ends = (
            np.empty((brokers, len(members))),
            np.empty((brokers, len(members)), np.int32),
        )
        for b in range(brokers):
            for i in range(len(members)):
                near[b, i] = ways[b, members[i]]
                ends[b, i] = last[b, members[i]]
        _find_starts(members, publishers, access, near, starts)
        for start in range(brokers):
            grown = False
            opened = 0
            together = 0.0
            for k in range(len(publishers)):
                if starts[k] != start:
                    continue
                if not grown:
                    opened = _grow(start, NOBODY, near, ends, key, parent, active, inside, openers)
                    for e in range(opened):
                        apart[members[openers[e]]] = openers[e]
                    grown = True
                u = publishers[k]
                weights[u, start] += rates[k]
                if apart[u] == NOBODY:
                    own[u] = rates[k]
                    together += rates[k]
            if not grown:
                continue
            if together > 0.0:
                for i in range(len(members)):
                    # Nobody is sent what it published itself.
                    passing = max(together - own[members[i]], 0.0)
                    weights[members[i], parent[i]] += passing
            brought = openers[:opened].copy()
            for k in range(len(publishers)):
                if starts[k] != start:
                    continue
                left_out = apart[publishers[k]]
                own[publishers[k]] = 0.0
                if left_out != NOBODY:
                    _grow(start, left_out, near, ends, key, parent, active, inside, openers)
                    for i in range(len(members)):
                        if i != left_out:
                            weights[members[i], parent[i]] += rates[k]
            for i in brought:
                apart[members[i]] = NOBODY


@kernel
def draw_brokers(
    numbers: FloatArray,
    weights: FloatArray,
    access: FloatArray,
    demands: FloatArray,
    limits: FloatArray,
    loads: FloatArray,
    broker_of: IntArray,
) -> None:
    """Attach each user to a broker with room, with a probability proportional to its weight.

    Where no broker with room has any weight, to the nearest with room. `numbers` (users,)
    are in [0, 1).
    """
    brokers = len(limits)
    for u in range(len(demands)):
        total = 0.0
        nearest, best = NOBODY, NOBODY
        for b in range(brokers):
            if loads[b] + demands[u] <= limits[b]:
                total += weights[u, b]
                if nearest < 0 or access[u, b] < access[u, nearest]:
                    nearest = b
        left = numbers[u] * total
        for b in range(brokers):
            if weights[u, b] > 0.0 and loads[b] + demands[u] <= limits[b]:
                # Rounding may leave something after the last: it is the last's.
                best = b
                left -= weights[u, b]
                if left < 0.0:
                    break
        if best < 0:
            best = nearest
        if best >= 0:
            broker_of[u] = best
            loads[best] += demands[u]
