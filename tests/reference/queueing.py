"""The queueing model, read off its description one event at a time.

Zhou, Ooi and Tan, section 3.1. Servers are objects with a queue, an update is passed on when
anybody in the child's subtree needs it, and whether a copy is outside its tolerance is worked
out afterwards from the list of what arrived when.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from distributary.arrays import FloatArray
from distributary.fidelity import FidelityProblem, Forest
from distributary.simulator.queueing import Change
from distributary.xorshift import seed_state


class Draws:
    """The generator of `distributary.xorshift`, in whole numbers."""

    def __init__(self, state: int) -> None:
        self.state = state

    def number(self) -> float:
        x = self.state
        x ^= x >> 12
        x = (x ^ (x << 25)) % 2**64
        x ^= x >> 27
        self.state = x
        return float((x * 2685821657736338717 % 2**64) >> 11) / 2**53

    def exponential(self, mean: float) -> float:
        return -mean * math.log(1.0 - self.number())


@dataclass
class Update:
    """One change of an object at the source, under the rates and trees of that time."""

    number: int
    time: float
    thing: int
    chance: float
    rates: FloatArray
    children: list[list[int]]

    def needed_by(self, server: int) -> bool:
        peak = self.rates[:, self.thing].max()
        return bool(server > 0 and self.chance < self.rates[server, self.thing] / peak)

    def wanted_below(self, node: int) -> bool:
        """Does anybody at or below the node want the object at all?"""
        return bool(self.rates[node, self.thing] > 0.0) or any(
            self.wanted_below(child) for child in self.children[node]
        )

    def needed_below(self, node: int) -> bool:
        return self.needed_by(node) or any(
            self.needed_below(child) for child in self.children[node]
        )

    def children_of(self, node: int) -> list[int]:
        return [child for child in self.children[node] if self.wanted_below(child)]


@dataclass
class Server:
    """A node: who waits, whether it works, and what it has done."""

    draws: Draws
    queue: deque[tuple[float, Update]] = field(default_factory=deque)
    working: bool = False
    waits: list[float] = field(default_factory=list)
    work: list[tuple[float, float]] = field(default_factory=list)


@dataclass
class Measured:
    """The same figures as those of `QueueingRun`."""

    received: int
    meant: FloatArray
    delays: FloatArray
    outside: FloatArray
    loss_series: FloatArray
    outside_series: FloatArray
    load_series: FloatArray
    handled: list[int]
    waits: list[float]
    services: list[float]


def run(
    problem: FidelityProblem,
    forest: Forest,
    *,
    seconds: float,
    seed: int,
    window_s: float,
    changes: Sequence[Change] = (),
) -> Measured:
    """Return what a stream loses."""
    n, objects = problem.rates.shape
    states = [int(state) for state in seed_state(seed, count=n + objects)]
    problems = [(0.0, problem)]
    forests = [(0.0, forest)]
    for change in changes:
        if change.problem is not None:
            problems.append((change.at_s, change.problem))
        if change.forest is not None:
            forests.append((change.at_s, change.forest))
    updates = _publish(problems, forests, seconds, [Draws(state) for state in states[:objects]])
    servers = [Server(Draws(state)) for state in states[objects:]]
    arrivals: dict[tuple[int, int], list[tuple[Update, float]]] = {}
    received = 0
    events: list[tuple[float, int, int, str]] = [
        (update.time, update.number, 0, "arrives") for update in updates
    ]
    heapq.heapify(events)
    while events:
        now, number, node, what = heapq.heappop(events)
        update, server = updates[number], servers[node]
        if what == "arrives":
            if node > 0:
                received += 1
                if update.needed_by(node):
                    arrivals.setdefault((node, update.thing), []).append((update, now))
            if not update.children_of(node):
                continue
            server.queue.append((now, update))
        else:
            server.working = False
        if server.working or not server.queue:
            continue
        arrived, update = server.queue.popleft()
        server.working = True
        server.waits.append(now - arrived)
        conditions = [other for at, other in problems if at <= now][-1]
        order = update.children_of(node)
        clock = now
        for place in range(len(order)):
            if place + 1 < len(order):
                other = place + int(server.draws.number() * (len(order) - place))
                order[place], order[other] = order[other], order[place]
            child = order[place]
            clock += server.draws.exponential(float(conditions.filter_times[node]))
            if update.needed_below(child):
                clock += server.draws.exponential(float(conditions.send_times[node]))
                there = clock + float(conditions.delays[node, child])
                heapq.heappush(events, (there, update.number, child, "arrives"))
        server.work.append((now, clock))
        heapq.heappush(events, (clock, update.number, node, "is done"))
    return _measure(problem, servers, arrivals, received, seconds, window_s)


def _publish(
    problems: list[tuple[float, FidelityProblem]],
    forests: list[tuple[float, Forest]],
    seconds: float,
    draws: list[Draws],
) -> list[Update]:
    """Return all updates in the order of time."""
    epochs: list[tuple[float, FloatArray]] = []
    for at, problem in problems:
        if not epochs or not np.array_equal(epochs[-1][1], problem.rates):
            epochs.append((at, problem.rates))
    trees = [
        (at, [_child_lists(parents) for parents in forest.parents.tolist()])
        for at, forest in forests
    ]
    found: list[Update] = []
    for thing, generator in enumerate(draws):
        for place, (begin, rates) in enumerate(epochs):
            end = epochs[place + 1][0] if place + 1 < len(epochs) else seconds
            peak = float(rates[:, thing].max())
            now = begin
            while peak > 0.0:
                now += generator.exponential(1.0) / peak
                if now >= end:
                    break
                lists = [lists for at, lists in trees if at <= now][-1]
                children = lists[thing if len(lists) > 1 else 0]
                found.append(Update(0, now, thing, generator.number(), rates, children))
    found.sort(key=lambda update: update.time)
    for number, update in enumerate(found):
        update.number = number
    return found


def _child_lists(parents: list[int]) -> list[list[int]]:
    return [
        [child for child, parent in enumerate(parents) if parent == node]
        for node in range(len(parents))
    ]


def _overlap(begin: float, stop: float, low: float, high: float) -> float:
    return max(min(stop, high) - max(begin, low), 0.0)


def _outside(arrived: list[tuple[Update, float]]) -> list[tuple[float, float]]:
    """Return when a copy was outside: disjoint times in order.

    It is outside from when an update that it needs is published until that one or a later
    one is there.
    """
    spans: list[tuple[float, float]] = []
    for update, _ in sorted(arrived, key=lambda item: item[0].number):
        until = min(at for other, at in arrived if other.number >= update.number)
        begin = max(update.time, spans[-1][1]) if spans else update.time
        if begin < until:
            spans.append((begin, until))
    return spans


def _measure(
    problem: FidelityProblem,
    servers: list[Server],
    arrivals: dict[tuple[int, int], list[tuple[Update, float]]],
    received: int,
    seconds: float,
    window_s: float,
) -> Measured:
    n, objects = problem.rates.shape
    windows = [
        (window * window_s, min((window + 1) * window_s, seconds))
        for window in range(math.ceil(seconds / window_s))
    ]
    meant = np.zeros((n, objects))
    delays = np.zeros((n, objects))
    outside = np.zeros((n, objects))
    loss_series = np.zeros((len(windows), n))
    outside_series = np.zeros((len(windows), n))
    load_series = np.zeros((len(windows), n))
    for (node, thing), arrived in arrivals.items():
        wishes = int((problem.rates[node] > 0.0).sum())
        spans = _outside(arrived)
        meant[node, thing] = len(arrived)
        delays[node, thing] = sum(at - update.time for update, at in arrived) / len(arrived)
        outside[node, thing] = sum(_overlap(*span, 0.0, seconds) for span in spans) / seconds
        for window, (low, high) in enumerate(windows):
            late = sum(at - update.time for update, at in arrived if low <= update.time < high)
            out = sum(_overlap(*span, low, high) for span in spans)
            loss_series[window, node] += late / (high - low) / wishes
            outside_series[window, node] += out / (high - low) / wishes
    for node, server in enumerate(servers):
        for window, (low, high) in enumerate(windows):
            worked = sum(_overlap(*span, low, high) for span in server.work)
            load_series[window, node] = worked / (high - low)
    return Measured(
        received=received,
        meant=meant,
        delays=delays,
        outside=outside,
        loss_series=loss_series,
        outside_series=outside_series,
        load_series=load_series,
        handled=[len(server.work) for server in servers],
        waits=[sum(s.waits) / len(s.waits) if s.waits else 0.0 for s in servers],
        services=[sum(e - b for b, e in s.work) / len(s.work) if s.work else 0.0 for s in servers],
    )
