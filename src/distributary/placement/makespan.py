"""The latest delivery as the objective: how early can the last wish be served?

The formats on one link go one after another, and so do the conversions at one broker;
different links, and a broker's links and its processor, work at the same time. A format
takes its size divided by the link's bandwidth, a conversion its cost times the node's
factor, and either starts when its input is completely there. Alpha and beta say what
resources are worth and do not matter for time.

Making everything where it is cheapest keeps single links and processors busy for long;
the earliest last delivery spreads the work, and makes some formats more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from distributary.arrays import FloatArray
from distributary.kernels import clock
from distributary.placement._makespan_kernels import (
    Jobs,
    ListSchedule,
    busy_bound,
    list_schedule,
    quickest_ways,
)
from distributary.placement._makespan_search_kernels import (
    Price,
    critical_path,
    plan_cost,
    replan,
)
from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.placement.conversions import ConversionPlanner
from distributary.placement.exact import estimate, exact_plan
from distributary.placement.plan import ABSENT, Plan, check, prune
from distributary.placement.problem import PlacementProblem
from distributary.placement.useful import useful_formats

__all__ = [
    "DeliverySchedule",
    "fastest_plan",
    "jobs_of",
    "latest_delivery",
    "latest_delivery_bound",
    "schedule",
]

# The cheapest plan is a start as well when it is found about this quickly.
_EXACT_SECONDS_MAX = 1.0
_EXACT_BYTES_MAX = 2**29
# What a second of work weighs against a second of delay when a wish is served. Without
# any weight each wish takes the quickest way and the next one finds it busy.
_WORKS = (0.0, 0.1, 0.3, 1.0, 3.0)
# Rounds for each vertex (a format at a broker), and vertices that all rounds together may
# look at, about.
_ROUNDS_PER_VERTEX = 20
_VERTICES_PER_SEARCH = 50_000_000
_ROUNDS_MIN, _ROUNDS_MAX = 200, 3_000
# Parts with more wishes are moved as a whole, and not planned anew wish by wish.
_WISHES_MAX = (0, 16, 400)
# The share by which the last delivery may get later on the way.
_TOLERANCE = 0.2
# Savings go on for this many rounds, or until one saves less than this share, or until so
# many vertices have been looked at, about.
_SAVING_ROUNDS = 5
_SAVING_SHARE = 1e-3
_VERTICES_PER_SAVING = 1_000_000_000
# Sums of other terms than a schedule adds may exceed it by rounding; and a plan whose
# makespan is this close to the bound is the fastest.
_ROUNDING = 1e-12
_PROVEN = 1e-9

Observer = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class DeliverySchedule:
    """When a plan's transmissions and conversions run, in seconds from publication.

    Attributes
    ----------
    starts
        When the transmission or conversion that brings format `k` to broker `v` starts,
        infinite where `v` never has `k`, 0 for what the root holds, shape
        (nodes, formats).
    arrivals
        When it ends, and `v` has `k`; same shape.
    latest_delivery
        When the last wish is served; 0 when nothing is wanted or all of it is held.
    finish
        When the last transmission or conversion ends, wanted or not.
    """

    starts: FloatArray = field(repr=False)
    arrivals: FloatArray = field(repr=False)
    latest_delivery: float
    finish: float


def schedule(problem: PlacementProblem, plan: Plan) -> DeliverySchedule:
    """Return when everything in `plan` happens.

    List scheduling: a link or processor that is free takes, of the jobs that can start,
    the one after which the longest chain of jobs is still to come until a wish is served;
    of equals the first format. It pauses for a job that is about to become ready when, of
    these two, the last wish is served earlier that way. The best order is a hard problem
    of its own; this one is always the same. Work that serves no wish is done last. What a
    plan both receives and makes counts as received.

    Raises `InvalidPlan` when the plan uses something where it is not available.
    """
    check(problem, plan)
    found = list_schedule(jobs_of(problem), plan.arborescence(problem), np.inf)
    there = found.before != ABSENT
    return DeliverySchedule(
        found.start,
        found.arrival,
        latest_delivery=float(found.makespan),
        finish=float(found.arrival.max(initial=0.0, where=there)),
    )


def latest_delivery(problem: PlacementProblem, plan: Plan) -> float:
    """Return when the last wish is served under `schedule`."""
    return schedule(problem, plan).latest_delivery


def latest_delivery_bound(problem: PlacementProblem) -> float:
    """Return a moment before which no plan serves the last wish, in whatever order it works.

    The latest of three: the wish that is farthest by its quickest way, if nothing else
    were to be done; for each broker, how long its link and its processor together take
    for what it wants, from the first moment at which they can have something to do; and
    how long the root's processor takes for what is wanted there, where the cheapest way
    to make it is found exactly.
    """
    jobs = jobs_of(problem)
    quickest, _ = quickest_ways(jobs, problem.held.copy())
    alone = float(quickest.max(initial=0.0, where=problem.wants))
    busy = busy_bound(jobs, quickest)
    made = ConversionPlanner(problem.graph.costs).cost(problem.held, problem.wants[0])
    if made.exact:
        busy = max(busy, float(problem.tree.node_costs[0]) * made.cost)
    return max(alone, busy * (1.0 - _ROUNDING))


def fastest_plan(
    problem: PlacementProblem,
    *,
    seed: int = 0,
    rounds: int | None = None,
    time_limit: float | None = None,
    observe: Observer | None = None,
) -> Plan:
    """Return a plan whose last delivery is early, and among such plans a cheap one.

    Minimises `latest_delivery`. That is a hard scheduling problem, so this is a search by
    ruin and recreate: it starts from the best of several plans (each wish by its quickest
    way, the three baselines, the cheapest plan where that is found quickly, and wishes
    served one by one around what is already planned), plans parts anew that the last
    delivery waits for, and finally saves what it can without being later. No start is
    faster, nor equally fast and cheaper. `latest_delivery_bound` says how far from the
    optimum the plan can be.

    A part of the plan is taken out and planned anew `rounds` times, by default as often as takes
    about a second. Only if `time_limit` seconds end the search may two runs differ.
    """
    if not problem.served[0]:
        return Plan.empty(problem)
    deadline = np.inf if time_limit is None else clock() + time_limit
    if rounds is None:
        vertices = problem.node_count * problem.format_count
        rounds_max = np.clip(_VERTICES_PER_SEARCH // vertices, _ROUNDS_MIN, _ROUNDS_MAX)
        rounds = int(np.clip(_ROUNDS_PER_VERTEX * vertices, _ROUNDS_MIN, rounds_max))
    jobs = jobs_of(problem)
    bound = latest_delivery_bound(problem)
    quickest, ways_there = quickest_ways(jobs, problem.held.copy())
    farthest_first = -quickest.ravel()
    starts: list[ListSchedule] = []
    for plan in _starts(problem, jobs, farthest_first, Plan.from_arborescence(ways_there)):
        starts.append(list_schedule(jobs, prune(problem, plan).arborescence(problem), np.inf))
        if clock() > deadline:
            break

    def value(found: ListSchedule) -> tuple[float, float]:
        return found.makespan, plan_cost(jobs, found.before)

    best = now = min(starts, key=value)
    rng = np.random.default_rng(seed)
    for done in range(1, rounds + 1):
        if best.makespan <= bound * (1.0 + _PROVEN) or clock() > deadline:
            break
        # A part that is planned anew is seldom better at once. Somewhat later deliveries
        # are taken on the way, ever less so towards the end.
        limit = best.makespan * (1.0 + _TOLERANCE * (1.0 - done / rounds))
        if now.makespan > limit:
            now = best
        u = int(rng.choice(critical_path(jobs, now)))
        price = Price(1.0, float(rng.choice(_WORKS)), 0.0)
        order = farthest_first * rng.uniform(0.5, 1.5, len(farthest_first))
        wishes_max = int(rng.choice(_WISHES_MAX))
        now = replan(jobs, now, u, wishes_max, price, order, limit, np.inf)
        if now.makespan < best.makespan:
            best = now
        if observe is not None:
            observe("fastest", done, rounds)
    best = _save(jobs, best, farthest_first, deadline)
    return Plan.from_arborescence(min([best, *starts], key=value).before)


def _starts(
    problem: PlacementProblem, jobs: Jobs, farthest_first: FloatArray, quickest: Plan
) -> Iterator[Plan]:
    """Yield plans to start from, the quickest to find first."""
    yield quickest
    conversion_planner = ConversionPlanner(problem.graph.costs)
    for baseline in (single_format, all_in_root, all_in_leaves):
        yield baseline(problem, conversion_planner)
    need = estimate(problem)
    if need.seconds <= _EXACT_SECONDS_MAX and need.memory_bytes <= _EXACT_BYTES_MAX:
        yield exact_plan(problem)
    nothing = list_schedule(jobs, Plan.empty(problem).arborescence(problem), np.inf)
    for work in _WORKS:
        price = Price(1.0, work, 0.0)
        yield Plan.from_arborescence(
            replan(jobs, nothing, ABSENT, 0, price, farthest_first, np.inf, np.inf).before
        )


def _save(jobs: Jobs, found: ListSchedule, order: FloatArray, deadline: float) -> ListSchedule:
    """Return a plan that costs less and is no later."""
    total = plan_cost(jobs, found.before)
    price = Price(0.0, 0.0, 1.0)
    tries = _VERTICES_PER_SAVING // found.before.size
    for _ in range(_SAVING_ROUNDS):
        before = total
        for u in np.flatnonzero(found.before >= 0)[::-1].tolist():
            for wishes_max in _WISHES_MAX[:2]:
                if clock() > deadline or tries <= 0:
                    return found
                tries -= 1
                if found.before.flat[u] >= 0:
                    cost_max = total * (1.0 - _ROUNDING)
                    found = replan(
                        jobs, found, u, wishes_max, price, order, found.makespan, cost_max
                    )
                    total = plan_cost(jobs, found.before)
        if before - total <= _SAVING_SHARE * before:
            break
    return found


def jobs_of(problem: PlacementProblem) -> Jobs:
    """Return how long everything takes in `problem`, for the kernels."""
    graph, tree = problem.graph, problem.tree
    child_start, child = tree.child_lists
    allowed = useful_formats(problem)
    allowed[0] |= problem.held
    # Copies, because arrays that may not be written to are another type to the compiler.
    return Jobs(
        tree.parents.copy(),
        child_start.copy(),
        child.copy(),
        graph.costs.copy(),
        graph.sizes / tree.bandwidths[:, None],
        problem.link_weights[:, None] * graph.sizes,
        tree.node_costs.copy(),
        problem.node_weights.copy(),
        problem.wants.copy(),
        allowed,
    )
