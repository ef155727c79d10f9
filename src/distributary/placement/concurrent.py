"""Planning several publications that share brokers and links.

A broker or link that others use is dearer: its factor for one publication is its own
factor times `1 + growth * load`, where the load is what the *other* publications do there:
the conversion costs they run at a broker, the sizes they send over a link. Brokers are the
same when their names are, and a link is the pair of its two brokers.

Planning begins with four profiles: the plans that each publication would have alone, and all
of them converting at the root, at the leaves, or with a single format on every link. From each,
every publication in turn takes the cheapest plan against the load of the others, until none
gains; the least total that is found this way counts. This ends, because all of them lower one
and the same sum. With `w[i, r]` the load of publication `i` on resource `r` and `base[r]` the
weighted factor of the resource, let the total be

    sum over r of base[r] * (sum over i of w[i, r] + growth * sum over i < j of w[i, r] * w[j, r])

Publication `i` pays `base[r] * (1 + growth * sum over j != i of w[j, r])` for each unit of
`w[i, r]`. When it goes from `w` to `w'` and the others stay, the total changes by the sum
over `r` of `base[r] * (w'[i, r] - w[i, r]) * (1 + growth * sum over j != i of w[j, r])`,
and that is the change of what it pays. A plan that is taken costs its publication less, so
the total falls with it; there are finitely many plans, and none can come back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.errors import BadInput, quoted
from distributary.kernels import clock
from distributary.placement.baselines import BASELINES
from distributary.placement.bounds import paper_bound
from distributary.placement.conversions import ConversionPlanner
from distributary.placement.cost import cost
from distributary.placement.plan import NOT_MADE, Placement, Plan
from distributary.placement.planner import place
from distributary.placement.problem import PlacementProblem

__all__ = ["ConcurrentPlacement", "place_concurrently", "shared_cost"]

# A plan is taken when it saves a larger share than this; less is rounding.
_SAVING_SHARE = 1e-9
# Far more rounds than any instance has needed.
_ROUNDS_MAX = 100
# What one planning may take when the time is up but a plan there must be.
_SECONDS_MIN = 0.01


@dataclass(frozen=True, eq=False)
class ConcurrentPlacement:
    """Plans for several publications that share brokers and links.

    Attributes
    ----------
    placements
        One for each publication, in the order of the problems. Costs and lower bound are
        those under the load of the other publications' plans.
    total_cost
        What all plans cost together, as the module's sum has it: what two publications
        add to each other's cost counts once. Never more than that of a start.
    separate_total_cost
        The same for plans made as if each publication were alone.
    rounds
        How often every publication had its turn on the way to these plans; in the last round
        none gained, unless there was no time left.
    """

    placements: tuple[Placement, ...]
    total_cost: float
    separate_total_cost: float
    rounds: int


def place_concurrently(
    problems: Sequence[PlacementProblem],
    *,
    growth: float,
    time_limit: float | None = None,
    seed: int = 0,
) -> ConcurrentPlacement:
    """Plan publications that share brokers, so that each is content with the others' plans.

    Best responses in turn, from the plans each would have alone and from the three simple
    profiles; no start is cheaper than the result. Where every plan is exact, no publication
    can save by changing its own plan alone. That is not the least total: two that change
    together may save.

    Where problems share a broker or a link, its factor and the weights alpha or beta must be the
    same. `growth` is by what share one unit of load makes a resource dearer for the others; with 0
    the plans are those that each publication would have alone, which are always made, whatever
    the `time_limit` for all planning together.
    """
    if not (math.isfinite(growth) and growth >= 0.0):
        raise BadInput("growth", f"is {growth:g}, and must be a finite number of at least 0")
    if not problems:
        raise BadInput("problems", "are none, and must be at least one")
    deadline = math.inf if time_limit is None else clock() + time_limit
    sharing = _Sharing(problems)
    alone = [
        place(problem, time_limit=_share_of(deadline, len(problems) - index), seed=seed)
        for index, problem in enumerate(problems)
    ]
    conversion_planners = [ConversionPlanner(problem.graph.costs) for problem in problems]
    profiles = [
        [placement.plan for placement in alone],
        *(
            [baseline(*known) for known in zip(problems, conversion_planners, strict=True)]
            for baseline in BASELINES.values()
        ),
    ]
    totals = [sharing.total(sharing.loads(plans), growth) for plans in profiles]
    # The cheapest first: where time is short, from there on it can only get better.
    order = sorted(range(len(profiles)), key=totals.__getitem__)
    responses = [
        _Responses(sharing, alone, profiles[start], growth=growth, deadline=deadline, seed=seed)
        for start in order
    ]
    best = min(responses, key=lambda found: found.total)
    return ConcurrentPlacement(
        best.placements(),
        total_cost=best.total,
        separate_total_cost=totals[0],
        rounds=best.rounds,
    )


def shared_cost(
    problems: Sequence[PlacementProblem], plans: Sequence[Plan], *, growth: float
) -> float:
    """Return what plans cost together: the sum that every accepted change lowers."""
    sharing = _Sharing(problems)
    return sharing.total(sharing.loads(plans), growth)


def _share_of(deadline: float, parts: int) -> float | None:
    """Return how many seconds one of so many parts may take; None without a deadline."""
    if deadline == math.inf:
        return None
    return max(_SECONDS_MIN, (deadline - clock()) / parts)


class _Responses:
    """Publications that take the cheapest plan in turn, from one profile, until none gains."""

    def __init__(
        self,
        sharing: _Sharing,
        alone: Sequence[Placement],
        plans: Sequence[Plan],
        *,
        growth: float,
        deadline: float,
        seed: int,
    ) -> None:
        self._sharing = sharing
        self._growth = growth
        self._loads = sharing.loads(plans)
        self._publications = [
            _Publication(problem, placement, plan)
            for problem, placement, plan in zip(sharing.problems, alone, plans, strict=True)
        ]
        self.rounds = 0
        gained = True
        while gained and self.rounds < _ROUNDS_MAX and clock() < deadline:
            self.rounds += 1
            gained = False
            for index, publication in enumerate(self._publications):
                if clock() >= deadline:
                    break
                if publication.respond(self._loaded(index), _share_of(deadline, 1), seed):
                    self._loads[index] = sharing.load(index, publication.plan)
                    gained = True
        self.total = sharing.total(self._loads, growth)

    def placements(self) -> tuple[Placement, ...]:
        """Return the plans with what they cost under each other's load."""
        return tuple(
            publication.placement(self._loaded(index))
            for index, publication in enumerate(self._publications)
        )

    def _loaded(self, index: int) -> PlacementProblem:
        return self._sharing.loaded(index, self._loads, self._growth)


class _Publication:
    """One publication with its current plan, and what is known about its last planning."""

    def __init__(self, problem: PlacementProblem, alone: Placement, plan: Plan) -> None:
        self.planned = alone
        self.planned_for = problem
        self.plan = plan
        self.seconds = alone.seconds

    def respond(self, loaded: PlacementProblem, time_limit: float | None, seed: int) -> bool:
        """Plan against the load of the others; return whether that gave a cheaper plan.

        When the factors are those it was last planned for, that plan is known.
        """
        if not self._is_planned_for(loaded):
            self.planned = place(loaded, method="auto", time_limit=time_limit, seed=seed)
            self.planned_for = loaded
            self.seconds += self.planned.seconds
        now = cost(loaded, self.plan).total
        if self.planned.total_cost >= now - _SAVING_SHARE * now:
            return False
        self.plan = self.planned.plan
        return True

    def placement(self, loaded: PlacementProblem) -> Placement:
        """Return the plan with what it costs under the final load."""
        price = cost(loaded, self.plan)
        current = self._is_planned_for(loaded)
        # Without time to plan for the final load its bound is not known; the papers' is.
        bound = self.planned.lower_bound if current else paper_bound(loaded)
        bound = min(bound, price.total)
        return replace(
            self.planned,
            plan=self.plan,
            transmission_cost=price.transmission,
            conversion_cost=price.conversion,
            total_cost=price.total,
            lower_bound=bound,
            optimal=price.total - bound <= _SAVING_SHARE * price.total,
            seconds=self.seconds,
        )

    def _is_planned_for(self, loaded: PlacementProblem) -> bool:
        return bool(
            np.array_equal(loaded.tree.link_costs, self.planned_for.tree.link_costs)
            and np.array_equal(loaded.tree.node_costs, self.planned_for.tree.node_costs)
        )


class _Sharing:
    """The resources of several problems: which they share, and how loaded these are.

    A resource is a broker's processor or a link. `factors` are the resources' weighted
    factors, shape (resources,); `processors[i]` and `links[i]` say which resources the
    nodes of problem `i` and the links into them are, -1 at the root, shape (nodes,).
    """

    def __init__(self, problems: Sequence[PlacementProblem]) -> None:
        self.problems = problems
        self._positions: dict[tuple[str, ...], int] = {}
        # For each resource the first problem's factor and weight; the others must agree.
        self._first: list[tuple[float, float]] = []
        self.processors: list[IntArray] = []
        self.links: list[IntArray] = []
        for problem in problems:
            names, parents = problem.tree.names, problem.tree.parents
            processors = np.empty(len(names), dtype=np.int64)
            links = np.full(len(names), -1, dtype=np.int64)
            for v, name in enumerate(names):
                factor = float(problem.tree.node_costs[v])
                processors[v] = self._resource((name,), factor, problem.beta)
                if v > 0:
                    factor = float(problem.tree.link_costs[v])
                    links[v] = self._resource((names[parents[v]], name), factor, problem.alpha)
            self.processors.append(processors)
            self.links.append(links)
        self.factors = np.array([factor * weight for factor, weight in self._first])

    def _resource(self, key: tuple[str, ...], factor: float, weight: float) -> int:
        """Return the position of a resource, which all problems must see alike."""
        position = self._positions.setdefault(key, len(self._first))
        if position == len(self._first):
            self._first.append((factor, weight))
        known_factor, known_weight = self._first[position]
        link = len(key) > 1
        for what, known, given in (
            ("link_cost" if link else "node_cost", known_factor, factor),
            ("alpha" if link else "beta", known_weight, weight),
        ):
            if known != given:
                shared = f"its link from {quoted(key[0])}" if link else "it"
                raise BadInput(
                    f"tree: node {quoted(key[-1])}",
                    f"{what} is {known:g} in one problem and {given:g} in another, and {shared} "
                    "is shared",
                )
        return position

    def load(self, index: int, plan: Plan) -> FloatArray:
        """Return how much of each resource a plan for problem `index` uses, before factors."""
        graph = self.problems[index].graph
        load = np.zeros(len(self.factors))
        node, made = np.nonzero(plan.made_from != NOT_MADE)
        converted = graph.costs[plan.made_from[node, made], made]
        np.add.at(load, self.processors[index][node], converted)
        node, sent = np.nonzero(plan.receives)
        np.add.at(load, self.links[index][node], graph.sizes[sent])
        return load

    def loads(self, plans: Sequence[Plan]) -> FloatArray:
        """Return the loads of all plans, shape (problems, resources)."""
        return np.array([self.load(index, plan) for index, plan in enumerate(plans)])

    def total(self, loads: FloatArray, growth: float) -> float:
        """Return what all plans cost together; see the module's first words."""
        before = np.cumsum(loads, axis=0) - loads
        pairs = (loads * before).sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.dot(self.factors, loads.sum(axis=0) + growth * pairs))
        if not math.isfinite(total):
            raise BadInput("growth", f"is {growth:g}, which makes costs too large for a number")
        return total

    def loaded(self, index: int, loads: FloatArray, growth: float) -> PlacementProblem:
        """Return problem `index` with the factors it sees under the load of the others."""
        problem = self.problems[index]
        tree = problem.tree
        others = loads[:index].sum(axis=0) + loads[index + 1 :].sum(axis=0)
        dearer = 1.0 + growth * others
        node_costs = tree.node_costs * dearer[self.processors[index]]
        # The root has no link; whatever stands in its place is never paid.
        link_costs = tree.link_costs * np.where(
            self.links[index] >= 0, dearer[self.links[index]], 1.0
        )
        return replace(problem, tree=replace(tree, node_costs=node_costs, link_costs=link_costs))
