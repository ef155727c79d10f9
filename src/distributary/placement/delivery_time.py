"""The latest delivery as the objective: how early can every wish be served?

Making everything where it is cheapest keeps single links and processors busy for long;
the earliest last delivery spreads the work, and makes some formats more than once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.placement._haste_kernels import cheapen, hasten, replant, serve
from distributary.placement._quickest_kernels import busy_bound, quickest_ways, used_by_wishes
from distributary.placement._rerouting_kernels import Price, empty_ways
from distributary.placement._schedule_kernels import timetable_of
from distributary.placement._timetable_kernels import ABSENT, HELD, Network, Timetable
from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.placement.conversions import Converter
from distributary.placement.cost import cost
from distributary.placement.exact import estimate, exact_plan
from distributary.placement.plan import Plan
from distributary.placement.problem import PlacementProblem
from distributary.placement.schedule import (
    Schedule,
    entered_by,
    latest_delivery,
    network_of,
    plan_of,
    schedule,
)

__all__ = [
    "Schedule",
    "fastest_plan",
    "latest_delivery",
    "latest_delivery_bound",
    "schedule",
]

# The cheapest plan is a start as well when it is found about this quickly.
_EXACT_SECONDS_MAX = 1.0
_EXACT_BYTES_MAX = 2**29
# What a second of work weighs against a second of delay when a wish is served. Without
# any weight each wish takes the quickest way and the next one finds it busy.
_WORKS = np.array([0.0, 0.1, 0.3, 1.0, 3.0])
# Steps, counted as in `Ways`, after which the search ends whatever is left to do, as does
# saving after that; and those that planning one part anew may take, but a part may always
# have so many wishes.
_STEPS_MAX = 1_000_000_000
_PART_STEPS_MAX = 4_000_000
_WISHES_MIN = 16
# The share by which the last delivery may get later on the way.
_TOLERANCE = 0.05
# Savings go on for this many rounds, or until one saves less than this share.
_CHEAPER_ROUNDS = 5
_SAVING_SHARE = 1e-3
# Brokers between two looks at the clock while saving.
_CHEAPER_BROKERS = 32
# Sums of other terms than a schedule adds may exceed it by rounding.
_ROUNDING = 1e-12

Observer = Callable[[str, int, int], None]


def latest_delivery_bound(problem: PlacementProblem) -> float:
    """Return a moment before which no plan serves the last wish, in whatever order it works.

    The latest of three: the wish that is farthest by its quickest way, if nothing else
    were to be done; for each broker, how long its link and its processor together take
    for what it wants, from the first moment at which they can have something to do; and
    how long the root's processor takes for what is wanted there, where the cheapest way
    to make it is found exactly.
    """
    network = network_of(problem)
    quickest, _ = quickest_ways(network, problem.held.copy())
    return _bound(problem, network, quickest, Converter(problem.graph.costs))


def _bound(
    problem: PlacementProblem, network: Network, quickest: FloatArray, converter: Converter
) -> float:
    alone = float(quickest.max(initial=0.0, where=problem.wants))
    busy = busy_bound(network, quickest)
    made = converter.cost(problem.held, problem.wants[0])
    if made.exact:
        busy = max(busy, float(problem.tree.node_costs[0]) * made.cost)
    return max(alone, busy * (1.0 - _ROUNDING))


def fastest_plan(
    problem: PlacementProblem,
    *,
    seed: int = 0,
    rounds: int = 300,
    time_limit: float | None = None,
    observe: Observer | None = None,
) -> Plan:
    """Return a plan whose last delivery is early, and among such plans a cheap one.

    Minimises `latest_delivery`. That is a hard scheduling problem, so this is a search: it
    starts from the best of several plans (each wish by its quickest way, the three
    baselines, the cheapest plan where that is found quickly, and wishes served one by one
    around what is already planned), moves work off the links and processors that the last
    delivery waits for, and finally saves what it can without being later. No start is
    faster, nor equally fast and cheaper. `latest_delivery_bound` says how far from the
    optimum the plan can be.

    Parameters
    ----------
    problem
        What to plan.
    seed
        Seed of every random choice.
    rounds
        How often a part of the plan is taken out and planned anew.
    time_limit
        Stop the search after this many seconds; then, and only then, two runs may differ.
    observe
        Called with a stage, what is done of it and how much there is.
    """
    if not problem.served[0]:
        return Plan.empty(problem)
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    haste = _Haste(problem)
    starts = haste.starts(deadline)
    table = haste.copy(min(starts, key=haste.value))
    haste.hasten(table)
    best, record = table.before.copy(), float(table.late.max())
    rng = np.random.default_rng(seed)
    for done in range(rounds):
        if record <= haste.bound or haste.weariness() >= 1.0 or time.monotonic() > deadline:
            break
        # A part that is planned anew is seldom better at once. Somewhat later deliveries
        # are taken on the way, ever less so towards the end.
        left = 1.0 - max((done + 1) / rounds, haste.weariness())
        limit = record * (1.0 + _TOLERANCE * left)
        if haste.replant(table, limit, rng):
            haste.hasten(table)
            now = float(table.late.max())
            if now < record:
                best, record = table.before.copy(), now
            elif now > limit:
                table = timetable_of(haste.network, best)
        if observe is not None:
            observe("fastest", done + 1, rounds)
    table = timetable_of(haste.network, best)
    haste.cheapen(table, deadline)
    return plan_of(min([table, *starts], key=haste.value).before)


class _Haste:
    """One problem, in the form and with the room that the kernels need."""

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        self.network = network_of(problem)
        self.quickest, self.ways_there = quickest_ways(self.network, problem.held.copy())
        depths = problem.tree.depths + 1
        self.ways = empty_ways(int(depths.max()), problem.format_count)
        self.converter = Converter(problem.graph.costs)
        self.bound = _bound(problem, self.network, self.quickest, self.converter)
        steps = float(depths.mean()) * problem.format_count**2
        wishes = int(problem.wants.sum())
        self.wishes_max = min(wishes, max(_WISHES_MIN, int(_PART_STEPS_MAX / steps)))

    def value(self, table: Timetable) -> tuple[float, float]:
        """Return what is minimised: the latest delivery, and then the cost."""
        plan = plan_of(table.before)
        return float(table.late.max()), cost(self.problem, plan).total

    def copy(self, table: Timetable) -> Timetable:
        """Return a timetable that can be changed without changing this one."""
        return timetable_of(self.network, table.before)

    def starts(self, deadline: float) -> list[Timetable]:
        """Return the plans to start from; the first always, the others in time."""
        found: list[Timetable] = []
        for before in self.candidates():
            found.append(timetable_of(self.network, used_by_wishes(self.network, before)))
            if time.monotonic() > deadline:
                break
        return found

    def candidates(self) -> Iterator[IntArray]:
        """Yield plans to start from, as the vertex before each vertex."""
        problem = self.problem
        yield self.ways_there
        for baseline in (single_format, all_in_root, all_in_leaves):
            yield entered_by(problem, baseline(problem, self.converter))
        need = estimate(problem)
        if need.seconds <= _EXACT_SECONDS_MAX and need.memory_bytes <= _EXACT_BYTES_MAX:
            yield entered_by(problem, exact_plan(problem))
        for work in _WORKS:
            if self.weariness() < 1.0:
                yield self.built(work)

    def built(self, work: float) -> IntArray:
        """Serve the wishes one by one, the farthest first, around what is planned by then."""
        nothing = np.full(self.quickest.shape, ABSENT, dtype=np.int64)
        nothing[0, self.problem.held] = HELD
        table = timetable_of(self.network, nothing)
        wishes = np.flatnonzero(self.problem.wants).astype(np.int64)
        farthest_first = np.argsort(-self.quickest.ravel()[wishes], kind="stable")
        serve(self.network, table, self.ways, Price(1.0, float(work), 0.0), wishes[farthest_first])
        return table.before

    def weariness(self) -> float:
        """Return the share of the steps that the search may take and has taken."""
        return float(self.ways.steps[0]) / _STEPS_MAX

    def hasten(self, table: Timetable) -> None:
        """Move single jobs off the critical path until that does not help any more."""
        hasten(self.network, table, self.ways, _WORKS, _STEPS_MAX)

    def replant(self, table: Timetable, limit: float, rng: np.random.Generator) -> bool:
        """Plan a random part of the critical path anew; keep it if it is not after `limit`."""
        chance = rng.random(4 + self.wishes_max)
        work = float(rng.choice(_WORKS))
        return replant(self.network, table, self.ways, self.quickest, work, limit, chance)

    def cheapen(self, table: Timetable, deadline: float) -> None:
        """Save cost where nobody has to wait for it; what is freed can speed up the rest."""
        total = self.value(table)[1]
        there = table.before >= 0
        work = float((table.arrival[there] - table.start[there]).sum())
        patience = total / work if work > 0.0 else 0.0
        steps_max = int(self.ways.steps[0]) + _STEPS_MAX
        for _ in range(_CHEAPER_ROUNDS):
            saved = 0.0
            for weight in (0.0, patience):
                for last in range(self.problem.node_count, 0, -_CHEAPER_BROKERS):
                    if time.monotonic() > deadline or self.ways.steps[0] > steps_max:
                        return
                    first = max(0, last - _CHEAPER_BROKERS)
                    saved += cheapen(
                        self.network, table, self.ways, weight, _ROUNDING * total, first, last
                    )
            if saved <= _SAVING_SHARE * total:
                return
            self.hasten(table)
