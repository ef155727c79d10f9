"""The queueing model of Zhou, Ooi and Tan, section 3.1, event by event.

An event is the arrival of an update at a node. Every node handles what arrives in the order
of arrival: it looks at its children in random order, takes an exponential time to filter for
each, and where the child's subtree needs the update an exponential time more to send it.
Arrivals are taken in the order of time, so when one is taken, everything that arrived before
it at that node has been handled, and the node is free from a known time on: handling needs
no event of its own, and there is one event per message.

`n` nodes with the source at 0, `x` objects, `m` updates in the order of time, `s` versions of
the trees, `e` epochs between changes of rates, `p` phases between other changes, `w` windows,
`c` windows of statistics. Every node draws from a generator of its own, so what it draws does
not depend on what happens elsewhere at the same time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import FloatArray, IntArray, UintArray
from distributary.kernels import inner_kernel, kernel
from distributary.xorshift import uniform

__all__ = ["NodeStates", "Speeds", "Tally", "TreeVersions", "Updates", "advance"]

# Entries of `counters`: the next update, the events that wait, and the messages received by
# servers.
NEXT, WAITING, RECEIVED = range(3)
# Columns of `copies`: how many updates were meant for the server, the sum of their delays, the
# time outside, and until when that has been counted.
MEANT, DELAY, OUTSIDE, COUNTED = range(4)
# Columns of `handled`: how many messages a node had children to look at for, how long they
# waited, and how long handling them took.
MESSAGES, WAITED, SERVED = range(3)
# Columns of `steps`: how many children a node filtered for and sent to, and how long it took.
FILTERED, FILTERING, SENT, SENDING = range(4)


class Updates(NamedTuple):
    """What the source publishes.

    `times`, `chances` (m,) floats; `objects`, `epochs` and `following`, the next update of
    the same object, (m,) integers; `versions` (m,) is the version of the trees that an update
    takes, entered when it is published. `shares` (e, n, x) is which share of the updates of
    an object each server needs, `first` (x,) the first update of each object.
    """

    times: FloatArray
    chances: FloatArray
    objects: IntArray
    epochs: IntArray
    following: IntArray
    versions: IntArray
    shares: FloatArray
    first: IntArray


class TreeVersions(NamedTuple):
    """The trees: `start` (s, x, n + 1), `child` and `share` (s, x * n) as in `build_routes`.

    `under_way` (s,) counts the events of each version that wait.
    """

    start: IntArray
    child: IntArray
    share: FloatArray
    under_way: IntArray


class Speeds(NamedTuple):
    """How fast nodes and links are.

    `ends` (p,) is when a phase ends, infinite for the last one; `filter_times` and
    `send_times` (p, n); `delays` (d, n, n), of which phase p has number `delay_of[p]`.
    """

    ends: FloatArray
    filter_times: FloatArray
    send_times: FloatArray
    delays: FloatArray
    delay_of: IntArray


class NodeStates(NamedTuple):
    """Where nodes are: `generators`, `free` (from when), and `phases`, each (n,)."""

    generators: UintArray
    free: FloatArray
    phases: IntArray


class Tally(NamedTuple):
    """What is measured.

    `copies` (n, x, 4), `handled` (n, 3) and `steps` (n, c, 4) have the columns named above;
    `latest` (n, x) is the latest update that has arrived, -1 for none. `late` (n, w) sums the
    delays by the time of publication, `outside` (n, w) the time outside, both over the
    objects; `busy` (n, w) is the time that the node worked.
    """

    copies: FloatArray
    latest: IntArray
    late: FloatArray
    outside: FloatArray
    busy: FloatArray
    handled: FloatArray
    steps: FloatArray


@kernel
def _spread(row: FloatArray, begin: float, stop: float, window: float) -> None:
    """Add the time from `begin` to `stop` to the windows (w,) that it falls into."""
    at = int(begin / window)
    last = row.shape[0] - 1
    while True:
        edge = (at + 1) * window
        if stop <= edge or at >= last:
            row[min(at, last)] += stop - begin
            return
        if edge > begin:
            row[at] += edge - begin
            begin = edge
        at += 1


@kernel
def _push(times: FloatArray, keys: IntArray, size: int, time: float, key: int) -> None:
    """Enter an event into a heap of `size` events, which has room for it."""
    at = size
    while at > 0:
        up = (at - 1) >> 1
        if times[up] < time or (times[up] == time and keys[up] < key):
            break
        times[at] = times[up]
        keys[at] = keys[up]
        at = up
    times[at] = time
    keys[at] = key


@inner_kernel
def _drop_first(times: FloatArray, keys: IntArray, size: int) -> None:
    """Take the first event out of a heap of `size` events."""
    last = size - 1
    time = times[last]
    key = keys[last]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= last:
            break
        right = down + 1
        if right < last and (
            times[right] < times[down] or (times[right] == times[down] and keys[right] < keys[down])
        ):
            down = right
        if time < times[down] or (time == times[down] and key < keys[down]):
            break
        times[at] = times[down]
        keys[at] = keys[down]
        at = down
    times[at] = time
    keys[at] = key


@kernel
def advance(
    until: float,
    version: int,
    end: float,
    window: float,
    collect: float,
    updates: Updates,
    routes: TreeVersions,
    conditions: Speeds,
    nodes: NodeStates,
    tally: Tally,
    counters: IntArray,
    heap_times: FloatArray,
    heap_keys: IntArray,
) -> tuple[FloatArray, IntArray]:
    """Take all events before `until`; updates published by then take `version` of the trees.

    `end` is the end of the run, up to which windows of `window` seconds are filled; statistics
    are kept for windows of `collect` seconds. `counters` (3,) and the heap go on from one call
    to the next; the heap is returned because it may have grown.
    """
    times, chances, objects, epochs, following, versions, shares, first_update = updates
    route_start, route_child, route_share, under_way = routes
    phase_ends, filter_times, send_times, delays, delay_of = conditions
    generators, free, phases = nodes
    copies, latest, late, outside, busy, handled, steps = tally
    n = free.shape[0]
    count = times.shape[0]
    collected = steps.shape[1]
    upcoming = counters[NEXT]
    size = counters[WAITING]
    received = counters[RECEIVED]
    seed = np.empty(1, dtype=np.uint64)
    order = np.empty(n, dtype=np.int64)
    while True:
        if upcoming < count and (size == 0 or times[upcoming] <= heap_times[0]):
            m = upcoming
            now = times[m]
            if now >= until:
                break
            k = 0
            upcoming += 1
            versions[m] = version
        elif size > 0:
            now = heap_times[0]
            if now >= until:
                break
            m = heap_keys[0] // n
            k = heap_keys[0] - m * n
            _drop_first(heap_times, heap_keys, size)
            size -= 1
            under_way[versions[m]] -= 1
            received += 1
        else:
            break
        x = objects[m]
        chance = chances[m]
        v = versions[m]
        if k == 0:
            copies[0, x, MEANT] += 1.0
        elif chance < shares[epochs[m], k, x]:
            late_by = now - times[m]
            copies[k, x, MEANT] += 1.0
            copies[k, x, DELAY] += late_by
            late[k, min(int(times[m] / window), late.shape[1] - 1)] += late_by
            if m > latest[k, x]:
                # The copy is outside since the first update that it needed and lacks; one
                # that comes after a later one has come changes nothing any more.
                due = first_update[x] if latest[k, x] < 0 else following[latest[k, x]]
                while chances[due] >= shares[epochs[due], k, x]:
                    due = following[due]
                begin = max(times[due], copies[k, x, COUNTED])
                stop = min(now, end)
                if begin < stop:
                    copies[k, x, OUTSIDE] += stop - begin
                    _spread(outside[k], begin, stop, window)
                copies[k, x, COUNTED] = now
                latest[k, x] = m
        first = route_start[v, x, k]
        last = route_start[v, x, k + 1]
        if first == last:
            continue
        if size + last - first > heap_times.shape[0]:
            capacity = 2 * (size + last - first)
            more_times = np.empty(capacity)
            more_keys = np.empty(capacity, dtype=np.int64)
            more_times[:size] = heap_times[:size]
            more_keys[:size] = heap_keys[:size]
            heap_times = more_times
            heap_keys = more_keys
        begin = max(now, free[k])
        phase = phases[k]
        while phase_ends[phase] <= begin:
            phase += 1
        phases[k] = phase
        links = delay_of[phase]
        filter_time = filter_times[phase, k]
        send_time = send_times[phase, k]
        clock = begin
        sent = 0
        sending = 0.0
        seed[0] = generators[k]
        for place in range(last - first):
            order[place] = first + place
        for place in range(last - first):
            if place + 1 < last - first:
                other = place + int(uniform(seed) * (last - first - place))
                at = order[other]
                order[other] = order[place]
            else:
                at = order[place]
            clock -= filter_time * np.log(1.0 - uniform(seed))
            if chance < route_share[v, at]:
                j = route_child[v, at]
                took = -send_time * np.log(1.0 - uniform(seed))
                clock += took
                sending += took
                sent += 1
                _push(heap_times, heap_keys, size, clock + delays[links, k, j], m * n + j)
                size += 1
        generators[k] = seed[0]
        under_way[v] += sent
        free[k] = clock
        handled[k, MESSAGES] += 1.0
        handled[k, WAITED] += begin - now
        handled[k, SERVED] += clock - begin
        if begin < end:
            _spread(busy[k], begin, min(clock, end), window)
            during = min(int(begin / collect), collected - 1)
            steps[k, during, FILTERED] += last - first
            steps[k, during, FILTERING] += clock - begin - sending
            steps[k, during, SENT] += sent
            steps[k, during, SENDING] += sending
    counters[NEXT] = upcoming
    counters[WAITING] = size
    counters[RECEIVED] = received
    return heap_times, heap_keys
