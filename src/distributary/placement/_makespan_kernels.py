"""When a plan's last wish is served: list scheduling, and bounds on any schedule.

A plan is given as its arborescence: `before[v, k]` is the vertex (`broker * m + format`)
that format `k` at broker `v` comes from, `ABSENT`, or `HELD`. What comes from the parent is
sent over the link into `v`, what comes from another format at `v` is converted there. These
are the jobs; links and processors are the machines.

Shapes: `n` brokers, `m` formats.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel
from distributary.placement._sort_kernels import sort
from distributary.placement.plan import ABSENT, HELD

__all__ = [
    "Fields",
    "Jobs",
    "ListSchedule",
    "busy_bound",
    "fields_of",
    "list_schedule",
    "quickest_ways",
    "schedule_jobs",
]


class Jobs(NamedTuple):
    """How long every possible job takes, and what it costs.

    `sending` (n, m) is how long each format takes on the link into each broker, and
    `link_costs` (n, m) what that costs; the conversion `i` to `j` takes
    `node_times[v] * costs[i, j]`, and costs `node_weights[v] * costs[i, j]`. `allowed`
    (n, m) are the vertices that can help. `child[child_start[v]:child_start[v + 1]]` are
    the children of `v`. Parents come first: a vertex comes from one at the same broker if
    its number is at least `v * m`, and otherwise over the link.
    """

    parents: IntArray
    child_start: IntArray
    child: IntArray
    costs: FloatArray
    sending: FloatArray
    link_costs: FloatArray
    node_times: FloatArray
    node_weights: FloatArray
    wanted: BoolArray
    allowed: BoolArray


class ListSchedule(NamedTuple):
    """A plan with its times; arrays are (n, m).

    `start` and `arrival` are the times of the job into a vertex, `cause` the vertex it
    waited for: its input, or the job before it on the same machine. `makespan` is when
    the last wish is served.
    """

    before: IntArray
    start: FloatArray
    arrival: FloatArray
    cause: IntArray
    makespan: float


Fields: TypeAlias = tuple[IntArray, FloatArray, FloatArray, IntArray, float]
"""Those of a `ListSchedule`."""


def list_schedule(jobs: Jobs, before: IntArray, limit: float) -> ListSchedule:
    """Return `schedule_jobs` to Python.

    Building a named tuple runs Python code, and Numba crashes when an interrupt comes just
    then. It hands over a plain one instead, which needs no code to be built.
    """
    return ListSchedule(*_fields_of_schedule(jobs, before, limit))


@kernel
def _fields_of_schedule(jobs: Jobs, before: IntArray, limit: float) -> Fields:
    return fields_of(schedule_jobs(jobs, before, limit))


@inner_kernel
def fields_of(found: ListSchedule) -> Fields:
    """Return the same as a plain tuple."""
    return found.before, found.start, found.arrival, found.cause, found.makespan


@inner_kernel
def schedule_jobs(jobs: Jobs, before: IntArray, limit: float) -> ListSchedule:
    """Return when everything in a plan happens; see `schedule` for the rule.

    As soon as a wish is served after `limit` the makespan is infinite, and the rest is
    unfinished.
    """
    n, m = before.shape
    tail = _tails(jobs, before)
    start = np.full((n, m), np.inf)
    arrival = np.full((n, m), np.inf)
    cause = np.full((n, m), ABSENT, dtype=np.int64)
    makespan = 0.0
    for v in range(n):
        for k in range(m):
            if before[v, k] == HELD:
                start[v, k] = 0.0
                arrival[v, k] = 0.0
        for machine in range(2):
            _run(jobs, before, tail[v], v, machine == 1, start, arrival, cause)
        for k in range(m):
            if jobs.wanted[v, k]:
                makespan = max(makespan, arrival[v, k])
        if makespan > limit:
            makespan = np.inf
            break
    return ListSchedule(before, start, arrival, cause, makespan)


@inner_kernel
def _tails(jobs: Jobs, before: IntArray) -> FloatArray:
    """Return the longest chain of jobs from each vertex to a wish, (n, m).

    Waiting is left out. Minus infinity where no wish comes from a vertex.
    """
    n, m = before.shape
    tail = np.where(jobs.wanted, 0.0, -np.inf)
    for v in range(n - 1, -1, -1):
        for k in range(m):
            # Each tail climbs the chain of conversions as long as it is the longest there.
            at = k
            while tail[v, at] > -np.inf and before[v, at] >= v * m:
                origin = before[v, at] - v * m
                through = jobs.node_times[v] * jobs.costs[origin, at] + tail[v, at]
                if through <= tail[v, origin]:
                    break
                tail[v, origin] = through
                at = origin
        for k in range(m):
            if 0 <= before[v, k] < v * m:
                through = jobs.sending[v, k] + tail[v, k]
                tail[jobs.parents[v], k] = max(tail[jobs.parents[v], k], through)
    return tail


@kernel
def _run(
    jobs: Jobs,
    before: IntArray,
    tail: FloatArray,
    v: int,
    converting: bool,
    start: FloatArray,
    arrival: FloatArray,
    cause: IntArray,
) -> None:
    """Run the jobs of one link or processor, of those that can start the longest tail first.

    `tail` (m,) is that of the broker; `start`, `arrival` and `cause` (n, m) are filled in.
    """
    m = before.shape[1]
    above = jobs.parents[v]
    waiting = np.empty(m, dtype=np.int64)
    ready = np.empty(m)
    takes = np.empty(m)
    count = 0
    for k in range(m):
        if before[v, k] >= 0 and (before[v, k] >= v * m) == converting:
            waiting[count] = k
            count += 1
            takes[k] = jobs.sending[v, k]
            if converting:
                takes[k] = jobs.node_times[v] * jobs.costs[before[v, k] - v * m, k]
    free = 0.0
    last = ABSENT
    while count > 0:
        now = np.inf
        for index in range(count):
            k = waiting[index]
            ready[k] = arrival[v, before[v, k] - v * m] if converting else arrival[above, k]
            now = min(now, ready[k])
        now = max(now, free)
        pause = now
        chosen = 0
        while pause < np.inf:
            now = pause
            chosen = -1
            for index in range(count):
                k = waiting[index]
                if ready[k] <= now and (chosen < 0 or tail[k] > tail[waiting[chosen]]):
                    chosen = index
            pause = _pause(waiting[:count], ready, takes, tail, now, waiting[chosen])
        k = waiting[chosen]
        cause[v, k] = last if now > ready[k] else before[v, k]
        start[v, k] = now
        free = now + takes[k]
        arrival[v, k] = free
        last = v * m + k
        # Jobs stay in the order of their formats, which settles ties.
        count -= 1
        for index in range(chosen, count):
            waiting[index] = waiting[index + 1]


@inner_kernel
def _pause(
    waiting: IntArray, ready: FloatArray, takes: FloatArray, tail: FloatArray, now: float, k: int
) -> float:
    """Return until when to wait for a job instead of starting `k`; infinity if not at all.

    Waiting pays when, of the two, the last wish is served earlier. Without pauses a long
    job that nobody is in a hurry for goes first whenever it is ready a moment earlier.
    """
    pause = np.inf
    for j in waiting:
        if not now < ready[j] < min(pause, now + takes[k]):
            continue
        k_first = now + takes[k] + max(tail[k], takes[j] + tail[j])
        j_first = ready[j] + takes[j] + max(tail[j], takes[k] + tail[k])
        if j_first < k_first:
            pause = ready[j]
    return pause


@kernel
def quickest_ways(jobs: Jobs, held: BoolArray) -> tuple[FloatArray, IntArray]:
    """Return when each vertex can be there if nothing is waited for, and the vertex before it.

    Both (n, m); infinite and `ABSENT` for what cannot be made. A label-setting search at
    each broker, parents first: what its parent has is known by then.
    """
    n, m = jobs.wanted.shape
    time = np.full((n, m), np.inf)
    before = np.full((n, m), ABSENT, dtype=np.int64)
    for v in range(n):
        for k in range(m):
            if v == 0:
                if held[k]:
                    time[v, k] = 0.0
                    before[v, k] = HELD
            elif time[jobs.parents[v], k] < np.inf:
                time[v, k] = time[jobs.parents[v], k] + jobs.sending[v, k]
                before[v, k] = jobs.parents[v] * m + k
        settled = np.zeros(m, dtype=np.bool_)
        for _ in range(m):
            i = -1
            for k in range(m):
                if not settled[k] and (i < 0 or time[v, k] < time[v, i]):
                    i = k
            settled[i] = True
            for j in range(m):
                if jobs.costs[i, j] == np.inf:
                    continue
                reached = time[v, i] + jobs.node_times[v] * jobs.costs[i, j]
                if not settled[j] and reached < time[v, j]:
                    time[v, j] = reached
                    before[v, j] = v * m + i
    return time, before


@kernel
def busy_bound(jobs: Jobs, time: FloatArray) -> float:
    """Return a moment by which some broker cannot have all it wants.

    Each format a broker wants is the result of a job on its link or on its processor. No
    job starts before its input can be there, and the jobs of either go one after another.
    Whichever way the jobs are divided, even if one could be done in part by each, the
    link or the processor is busy until then. `time` (n, m) is from `quickest_ways`.
    """
    n, m = time.shape
    bound = 0.0
    linked = np.empty(m)
    made = np.empty(m)
    for v in range(n):
        wishes = np.flatnonzero(jobs.wanted[v] & (time[v] > 0.0))
        # The wishes that can be there late anyway make the strongest sets.
        sort(-time[v], wishes)
        link_free = np.inf
        input_there = np.inf
        for count in range(wishes.shape[0]):
            k = wishes[count]
            linked[count] = np.inf
            if v > 0 and time[jobs.parents[v], k] < np.inf:
                linked[count] = jobs.sending[v, k]
                link_free = min(link_free, time[jobs.parents[v], k])
            made[count] = np.inf
            for i in range(m):
                if time[v, i] < np.inf and jobs.costs[i, k] < np.inf:
                    made[count] = min(made[count], jobs.node_times[v] * jobs.costs[i, k])
                    input_there = min(input_there, time[v, i])
            divided = _divide(linked[: count + 1], made[: count + 1], link_free, input_there)
            bound = max(bound, divided)
    return bound


@inner_kernel
def _divide(linked: FloatArray, made: FloatArray, link_free: float, input_there: float) -> float:
    """Return how soon jobs can be over that take `linked` on one machine or `made` on another.

    The machines start at `link_free` and `input_there`; jobs may be divided between them.
    """
    best = min(link_free + linked.sum(), input_there + made.sum())
    share = np.empty(linked.shape[0])
    on_link = 0.0
    on_processor = 0.0
    for index in range(linked.shape[0]):
        # What only one machine can do is not divided; what takes no time need not be.
        share[index] = np.inf
        if made[index] == np.inf:
            on_link += linked[index]
        elif linked[index] == np.inf:
            on_processor += made[index]
        elif linked[index] > 0.0 and made[index] > 0.0:
            share[index] = linked[index] / made[index]
            on_processor += made[index]
    # Move to the link first what gains most by it, until both end at the same moment.
    order = np.arange(share.shape[0])
    sort(share, order)
    for job in order:
        ahead = (input_there + on_processor) - (link_free + on_link)
        if share[job] == np.inf or ahead <= 0.0:
            break
        part = min(1.0, ahead / (linked[job] + made[job]))
        on_link += part * linked[job]
        on_processor -= part * made[job]
    return float(min(best, max(link_free + on_link, input_there + on_processor)))
