"""Ruin and recreate: take a part out of a plan and bring it back by other ways.

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
from distributary.kernels import inner_kernel, kernel
from distributary.placement._makespan_kernels import (
    Fields,
    Jobs,
    ListSchedule,
    fields_of,
    schedule_jobs,
)
from distributary.placement._sort_kernels import sort
from distributary.placement.plan import ABSENT

__all__ = ["PartialPlan", "Price", "connect", "critical_path", "plan_cost", "replan"]


class Price(NamedTuple):
    """What a way is judged by: its weights times arrival, time worked, and cost."""

    arrival: float
    work: float
    cost: float


class PartialPlan(NamedTuple):
    """A plan under change, (n, m); the times of new jobs hold until it is scheduled again.

    What comes from a vertex that was taken out is `hanging`, and leads nowhere. `banned`
    (2,) are the two ends of a job that must not be used.
    """

    before: IntArray
    start: FloatArray
    arrival: FloatArray
    hanging: BoolArray
    banned: IntArray


@kernel
def plan_cost(jobs: Jobs, before: IntArray) -> float:
    """Return what a plan costs."""
    n, m = before.shape
    total = 0.0
    for v in range(n):
        for k in range(m):
            if before[v, k] >= v * m:
                total += jobs.node_weights[v] * jobs.costs[before[v, k] - v * m, k]
            elif before[v, k] >= 0:
                total += jobs.link_costs[v, k]
    return total


@kernel
def critical_path(jobs: Jobs, found: ListSchedule) -> IntArray:
    """Return the jobs that the last delivery waited for, the last first."""
    n, m = found.before.shape
    path = np.empty(n * m, dtype=np.int64)
    size = 0
    for u in range(n * m):
        v, k = u // m, u % m
        if jobs.wanted[v, k] and found.arrival[v, k] == found.makespan:
            while u >= 0 and found.before[u // m, u % m] >= 0:
                path[size] = u
                size += 1
                u = found.cause[u // m, u % m]
            break
    return path[:size]


@kernel
def _followers(jobs: Jobs, before: IntArray, u: int, found: IntArray, size: int) -> int:
    """Add the vertices that come from `u` to the first `size` of `found`; return how many."""
    m = before.shape[1]
    v, k = u // m, u % m
    for j in range(m):
        if before[v, j] == u:
            found[size] = v * m + j
            size += 1
    for index in range(jobs.child_start[v], jobs.child_start[v + 1]):
        c = jobs.child[index]
        if before[c, k] == u:
            found[size] = c * m + k
            size += 1
    return size


@inner_kernel
def _take_out(jobs: Jobs, partial: PartialPlan, u: int, wishes_max: int) -> IntArray:
    """Take out the job into `u`; return what has to be connected anew.

    With `u` = `ABSENT` nothing is taken out, and all wishes are the answer. When at most
    `wishes_max` wishes come from `u`, all that comes from it is taken out, and these wishes
    are the answer; otherwise it hangs, and `u` is. What only led to `u` goes.
    """
    if u == ABSENT:
        return np.flatnonzero(jobs.wanted)
    n, m = partial.before.shape
    part = np.empty(n * m, dtype=np.int64)
    part[0] = u
    size = 1
    goals = np.empty(n * m, dtype=np.int64)
    count = 0
    at = 0
    while at < size:
        w = part[at]
        at += 1
        if jobs.wanted[w // m, w % m]:
            goals[count] = w
            count += 1
        size = _followers(jobs, partial.before, w, part, size)
    origin = partial.before[u // m, u % m]
    partial.banned[0] = origin
    partial.banned[1] = u
    if count <= wishes_max:
        for w in part[:size]:
            partial.before[w // m, w % m] = ABSENT
    else:
        for w in part[:size]:
            partial.hanging[w // m, w % m] = True
        partial.before[u // m, u % m] = ABSENT
        goals[0] = u
        count = 1
    while (
        partial.before[origin // m, origin % m] >= 0
        and not jobs.wanted[origin // m, origin % m]
        and _followers(jobs, partial.before, origin, part, size) == size
    ):
        above = partial.before[origin // m, origin % m]
        partial.before[origin // m, origin % m] = ABSENT
        origin = above
    return goals[:count]


@inner_kernel
def _busy(partial: PartialPlan, v: int, converting: bool, busy: FloatArray) -> int:
    """Write down when the link or processor of `v` is busy, in order; return how often.

    `busy` (2, m) gets the starts and the ends.
    """
    m = partial.before.shape[1]
    count = 0
    for k in range(m):
        if partial.before[v, k] < 0 or (partial.before[v, k] >= v * m) != converting:
            continue
        at = count
        while at > 0 and busy[0, at - 1] > partial.start[v, k]:
            busy[0, at] = busy[0, at - 1]
            busy[1, at] = busy[1, at - 1]
            at -= 1
        busy[0, at] = partial.start[v, k]
        busy[1, at] = partial.arrival[v, k]
        count += 1
    return count


@inner_kernel
def _first_gap(busy: FloatArray, count: int, ready: float, duration: float) -> float:
    """Return the first moment from `ready` on at which the duration fits in."""
    moment = ready
    for index in range(count):
        if busy[0, index] >= moment + duration:
            break
        moment = max(moment, busy[1, index])
    return moment


@kernel
def connect(jobs: Jobs, partial: PartialPlan, price: Price, x: int) -> bool:
    """Bring in the absent vertex `x` by the best way from what is planned; False if none.

    The label of a vertex is the price of the best way to it, `spent` that price without
    the arrival, and `via` the vertex before it. When the last job of that way runs is
    noted in the plan, where it means nothing for vertices that stay absent.
    """
    m = partial.before.shape[1]
    depth = 0
    v = x // m
    while v >= 0:
        depth += 1
        v = jobs.parents[v]
    path = np.empty(depth, dtype=np.int64)
    v = x // m
    for layer in range(depth - 1, -1, -1):
        path[layer] = v
        v = jobs.parents[v]
    label = np.full((depth, m), np.inf)
    spent = np.zeros((depth, m))
    via = np.full((depth, m), ABSENT, dtype=np.int64)
    busy = np.empty((2, m))
    for step in range(1, 2 * depth):
        # First the conversions at the root; then over each link, and the conversions below.
        converting = step % 2 == 1
        layer = step // 2
        v = path[layer]
        origin = layer if converting else layer - 1
        if converting == (layer == 0):
            for k in range(m):
                if partial.before[v, k] != ABSENT and not partial.hanging[v, k]:
                    label[layer, k] = price.arrival * partial.arrival[v, k]
        count = _busy(partial, v, converting, busy)
        settled = np.zeros(m, dtype=np.bool_)
        for _ in range(m):
            i = -1
            for k in range(m):
                if not settled[k] and (i < 0 or label[origin, k] < label[origin, i]):
                    i = k
            if label[origin, i] == np.inf or path[origin] * m + i == x:
                break
            settled[i] = True
            for j in range(0 if converting else i, m if converting else i + 1):
                u = v * m + j
                if partial.before[v, j] != ABSENT or not (jobs.allowed[v, j] or u == x):
                    continue
                if u == partial.banned[1] and path[origin] * m + i == partial.banned[0]:
                    continue
                duration, cost = jobs.sending[v, j], jobs.link_costs[v, j]
                if converting:
                    if settled[j] or jobs.costs[i, j] == np.inf:
                        continue
                    duration = jobs.node_times[v] * jobs.costs[i, j]
                    cost = jobs.node_weights[v] * jobs.costs[i, j]
                ready = partial.arrival[path[origin], i]
                so_far = spent[origin, i] + price.work * duration + price.cost * cost
                if price.arrival * (ready + duration) + so_far >= label[layer, j]:
                    continue
                start = _first_gap(busy, count, ready, duration)
                if price.arrival * (start + duration) + so_far < label[layer, j]:
                    label[layer, j] = price.arrival * (start + duration) + so_far
                    spent[layer, j] = so_far
                    via[layer, j] = path[origin] * m + i
                    partial.start[v, j] = start
                    partial.arrival[v, j] = start + duration
    layer, u = depth - 1, x
    if via[layer, x % m] == ABSENT:
        return False
    while partial.before[u // m, u % m] == ABSENT:
        before = via[layer, u % m]
        partial.before[u // m, u % m] = before
        if before // m != u // m:
            layer -= 1
        u = before
    return True


def replan(
    jobs: Jobs,
    old: ListSchedule,
    u: int,
    wishes_max: int,
    price: Price,
    order: FloatArray,
    limit: float,
    cost_max: float,
) -> ListSchedule:
    """Return the plan in which `u`, or the wishes that come from it, come by another way.

    See `_take_out` for `u` and `wishes_max`. The wishes first in `order` (n * m,) are served
    first, each by the best way around what is planned by then. The old plan is the answer
    when that cannot be, or when the new one has a makespan above `limit` or costs more than
    `cost_max`.
    """
    # See `list_schedule` for why Python builds the tuple.
    return ListSchedule(*_fields_of_plan(jobs, old, u, wishes_max, price, order, limit, cost_max))


@kernel
def _fields_of_plan(
    jobs: Jobs,
    old: ListSchedule,
    u: int,
    wishes_max: int,
    price: Price,
    order: FloatArray,
    limit: float,
    cost_max: float,
) -> Fields:
    partial = PartialPlan(
        old.before.copy(),
        old.start.copy(),
        old.arrival.copy(),
        np.zeros(old.before.shape, dtype=np.bool_),
        np.full(2, ABSENT, dtype=np.int64),
    )
    m = old.before.shape[1]
    wishes = _take_out(jobs, partial, u, wishes_max)
    sort(order, wishes)
    for x in wishes:
        if partial.before[x // m, x % m] == ABSENT and not connect(jobs, partial, price, x):
            return fields_of(old)
    if plan_cost(jobs, partial.before) > cost_max:
        return fields_of(old)
    new = schedule_jobs(jobs, partial.before, limit)
    return fields_of(new if new.makespan <= limit else old)
