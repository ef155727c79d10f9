"""When things happen, told slowly: one job after another, and every order of every plan.

Nothing is updated in place and nothing is skipped. For a handful of brokers and up to three
formats; the schedule itself for any size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from tests.reference.placement_brute_force import conversion_rows, subsets

from distributary.placement.plan import NOT_MADE, Plan, prune
from distributary.placement.problem import PlacementProblem

Vertex = tuple[int, int]
Resource = tuple[str, int]


@dataclass(frozen=True)
class Job:
    """What brings one format to one broker."""

    output: Vertex
    input: Vertex
    seconds: float
    resource: Resource


def jobs_of(problem: PlacementProblem, plan: Plan) -> list[Job]:
    """Return the transmissions and conversions of a plan."""
    tree, graph = problem.tree, problem.graph
    jobs = []
    for v, k in itertools.product(range(problem.node_count), range(problem.format_count)):
        if plan.receives[v, k]:
            seconds = float(graph.sizes[k] / tree.bandwidths[v])
            jobs.append(Job((v, k), (int(tree.parents[v]), k), seconds, ("link", v)))
        elif plan.made_from[v, k] != NOT_MADE and not (v == 0 and problem.held[k]):
            i = int(plan.made_from[v, k])
            seconds = float(tree.node_costs[v] * graph.costs[i, k])
            jobs.append(Job((v, k), (v, i), seconds, ("processor", v)))
    return jobs


def held_times(problem: PlacementProblem) -> dict[Vertex, float]:
    """Return what is there from the beginning."""
    return {(0, int(k)): 0.0 for k in np.flatnonzero(problem.held)}


def tails(problem: PlacementProblem, jobs: list[Job]) -> dict[Vertex, float]:
    """Return how long it takes from each vertex to the last wish that comes from it."""

    def tail(vertex: Vertex) -> float:
        after = [job.seconds + tail(job.output) for job in jobs if job.input == vertex]
        return max([0.0 if problem.wants[vertex] else -math.inf, *after])

    return {job.output: tail(job.output) for job in jobs}


def scheduled(problem: PlacementProblem, plan: Plan) -> dict[Vertex, tuple[float, float]]:
    """Return start and end of every job, by the rule of the real schedule.

    Links before processors and parents before children, so that whenever a job is chosen
    the inputs of all that could compete with it are known.
    """
    jobs = jobs_of(problem, plan)
    tail = tails(problem, jobs)
    there = held_times(problem)
    times: dict[Vertex, tuple[float, float]] = {}
    for v in range(problem.node_count):
        for kind in ("link", "processor"):
            waiting = [job for job in jobs if job.resource == (kind, v)]
            free = 0.0
            while waiting:
                known = [job for job in waiting if job.input in there]
                now = max(free, min(there[job.input] for job in known))
                job, now = _next_job(known, there, tail, now)
                free = now + job.seconds
                times[job.output] = (now, free)
                there[job.output] = free
                waiting.remove(job)
    return times


def _next_job(
    jobs: list[Job], there: dict[Vertex, float], tail: dict[Vertex, float], now: float
) -> tuple[Job, float]:
    """Return the job to run next, and when; a pause is made where it pays for the two."""
    ready = [job for job in jobs if there[job.input] <= now]
    best = max(ready, key=lambda job: (tail[job.output], -job.output[1]))
    pauses = []
    for other in jobs:
        come = there[other.input]
        if not now < come < now + best.seconds:
            continue
        best_first = now + best.seconds + max(tail[best.output], other.seconds + tail[other.output])
        other_first = (
            come + other.seconds + max(tail[other.output], best.seconds + tail[best.output])
        )
        if other_first < best_first:
            pauses.append(come)
    return _next_job(jobs, there, tail, min(pauses)) if pauses else (best, now)


def last_wish(problem: PlacementProblem, ends: dict[Vertex, float]) -> float:
    """Return when the last wish is served."""
    wishes = [(int(v), int(k)) for v, k in np.argwhere(problem.wants)]
    return max([ends[wish] for wish in wishes], default=0.0)


def lean_plans(problem: PlacementProblem) -> Iterator[Plan]:
    """Yield every plan in which everything is used."""
    count = problem.format_count

    def rows(v: int, available: dict[int, tuple[int, ...]], plan: Plan) -> Iterator[Plan]:
        if v == problem.node_count:
            if np.array_equal(prune(problem, plan).receives, plan.receives) and np.array_equal(
                prune(problem, plan).made_from, plan.made_from
            ):
                yield plan
            return
        if v == 0:
            choices = [tuple(np.flatnonzero(problem.held).tolist())]
        else:
            choices = list(subsets(available[int(problem.tree.parents[v])]))
        for in_hand in choices:
            for made_from, there in conversion_rows(problem.graph.costs, in_hand):
                if any(problem.wants[v, k] and k not in there for k in range(count)):
                    continue
                wider = plan.copy()
                wider.receives[v, list(in_hand)] = v > 0
                wider.made_from[v] = made_from
                yield from rows(v + 1, {**available, v: there}, wider)

    yield from rows(0, {}, Plan.empty(problem))


def earliest_in_any_order(problem: PlacementProblem, plan: Plan) -> float:
    """Return the earliest last delivery of a plan over all orders of its jobs."""
    jobs = jobs_of(problem, plan)
    resources = sorted({job.resource for job in jobs})
    queues = [[job for job in jobs if job.resource == resource] for resource in resources]
    best = math.inf
    for orders in itertools.product(*(itertools.permutations(queue) for queue in queues)):
        ends = _ends(problem, [list(order) for order in orders])
        if ends is not None:
            best = min(best, last_wish(problem, ends))
    return best


def _ends(problem: PlacementProblem, orders: list[list[Job]]) -> dict[Vertex, float] | None:
    """Return when each job ends if every resource keeps to its order; None if they block."""
    ends = held_times(problem)
    free = [0.0] * len(orders)
    while any(orders):
        index = next((i for i, order in enumerate(orders) if order and order[0].input in ends), -1)
        if index < 0:
            return None
        job = orders[index].pop(0)
        free[index] = max(free[index], ends[job.input]) + job.seconds
        ends[job.output] = free[index]
    return ends


def earliest_possible(problem: PlacementProblem) -> float:
    """Return the earliest last delivery of any plan in any order."""
    return min(earliest_in_any_order(problem, plan) for plan in lean_plans(problem))


def quickest_times(problem: PlacementProblem) -> dict[Vertex, float]:
    """Return when each vertex can be there if nothing is waited for, by trying again and again."""
    times = held_times(problem)
    tree, graph = problem.tree, problem.graph
    changed = True
    while changed:
        changed = False
        for v, k in itertools.product(range(problem.node_count), range(problem.format_count)):
            ways = [
                times[v, i] + float(tree.node_costs[v] * graph.costs[i, k])
                for i in range(problem.format_count)
                if (v, i) in times and np.isfinite(graph.costs[i, k])
            ]
            if v > 0 and (int(tree.parents[v]), k) in times:
                sent = float(graph.sizes[k] / tree.bandwidths[v])
                ways.append(times[int(tree.parents[v]), k] + sent)
            if ways and min(ways) < times.get((v, k), math.inf):
                times[v, k] = min(ways)
                changed = True
    return times


def times_in(
    problem: PlacementProblem,
    plan: Plan,
    starts: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    arrivals: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> dict[Vertex, tuple[float, float]]:
    """Return start and end of every job of a plan, read from two tables."""
    return {
        job.output: (float(starts[job.output]), float(arrivals[job.output]))
        for job in jobs_of(problem, plan)
    }


def best_way_in(
    problem: PlacementProblem,
    times: dict[Vertex, tuple[float, float]],
    plan: Plan,
    goal: Vertex,
    *,
    by_arrival: bool,
) -> float:
    """Return the earliest arrival, or the least added cost, with which `goal` can be brought in.

    New jobs go into gaps between those of the plan. Labels are lowered until none changes.
    """
    tree, graph = problem.tree, problem.graph
    there = held_times(problem) | {vertex: end for vertex, (_, end) in times.items()}
    busy: dict[Resource, list[tuple[float, float]]] = {}
    for job in jobs_of(problem, plan):
        busy.setdefault(job.resource, []).append(times[job.output])
    labels = {vertex: end if by_arrival else 0.0 for vertex, end in there.items()}

    def label(origin: Vertex, seconds: float, cost: float, resource: Resource) -> float:
        if not by_arrival:
            return labels[origin] + cost
        moment = labels[origin]
        for start, end in sorted(busy.get(resource, [])):
            if start >= moment + seconds:
                break
            moment = max(moment, end)
        return moment + seconds

    changed = True
    while changed:
        changed = False
        for v, k in itertools.product(range(problem.node_count), range(problem.format_count)):
            if (v, k) in there:
                continue
            ways = []
            if v > 0 and (int(tree.parents[v]), k) in labels:
                seconds = float(graph.sizes[k] / tree.bandwidths[v])
                cost = float(problem.link_weights[v] * graph.sizes[k])
                ways.append(label((int(tree.parents[v]), k), seconds, cost, ("link", v)))
            for i in range(problem.format_count):
                if (v, i) in labels and np.isfinite(graph.costs[i, k]):
                    seconds = float(tree.node_costs[v] * graph.costs[i, k])
                    cost = float(problem.node_weights[v] * graph.costs[i, k])
                    ways.append(label((v, i), seconds, cost, ("processor", v)))
            if ways and min(ways) < labels.get((v, k), math.inf):
                labels[v, k] = min(ways)
                changed = True
    return labels[goal]
