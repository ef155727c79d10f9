"""When brokers have what they want, told slowly: one event after another.

Every broker is an object that gets portions, converts first come first served, and passes on
what is complete. Nothing is worked out ahead.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence

import numpy as np

from distributary.placement.plan import NOT_MADE, Plan
from distributary.placement.problem import PlacementProblem


class _Broker:
    """What one broker has in hand, still waits to make, and still has to pass on."""

    def __init__(self, problem: PlacementProblem, plan: Plan, v: int) -> None:
        row = plan.made_from[v].tolist()
        self.in_hand: set[int] = set()
        self.waiting = [(origin, k) for k, origin in enumerate(row) if origin != NOT_MADE]
        self.queue: list[tuple[int, int]] = []
        self.busy = False
        self.wants = set(np.flatnonzero(problem.wants[v]).tolist())
        self.children = [c for c, parent in enumerate(problem.tree.parents.tolist()) if parent == v]


def serving_times(
    problem: PlacementProblem, plan: Plan, *, waits_s: Sequence[float], link_s: float
) -> list[float]:
    """Return when each broker has all that it wants, 0 where that is nothing."""
    tree, graph = problem.tree, problem.graph
    brokers = [_Broker(problem, plan, v) for v in range(problem.node_count)]
    served = [0.0] * problem.node_count
    unserved = {v for v, broker in enumerate(brokers) if broker.wants}
    number = itertools.count()
    events: list[tuple[float, int, int, str, tuple[int, ...]]] = []

    def later(at: float, v: int, what: str, formats: tuple[int, ...] = ()) -> None:
        heapq.heappush(events, (at, next(number), v, what, formats))

    def convert(v: int, now: float) -> None:
        broker = brokers[v]
        if broker.busy or not broker.queue:
            return
        broker.busy = True
        origin, k = broker.queue.pop(0)
        takes = float(tree.node_costs[v] * graph.costs[origin, k])
        later(max(now, waits_s[v]) + takes, v, "made", (k,))

    later(0.0, 0, "arrived", tuple(np.flatnonzero(problem.held).tolist()))
    while events:
        now, _, v, what, formats = heapq.heappop(events)
        broker = brokers[v]
        broker.in_hand.update(formats)
        if what == "made":
            broker.busy = False
        ready = [pair for pair in broker.waiting if pair[0] in broker.in_hand]
        broker.waiting = [pair for pair in broker.waiting if pair not in ready]
        broker.queue += ready
        convert(v, now)
        if v in unserved and broker.wants <= broker.in_hand:
            unserved.remove(v)
            served[v] = now
        for c in list(broker.children):
            needs = np.flatnonzero(plan.receives[c]).tolist()
            if broker.in_hand.issuperset(needs):
                broker.children.remove(c)
                size = sum(float(graph.sizes[k]) for k in needs)
                later(now + link_s * float(tree.link_costs[c]) * size, c, "arrived", tuple(needs))
    assert not unserved
    return served
