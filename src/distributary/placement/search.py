"""Planning beyond the exact range: a good plan with a certificate.

Real adaptation graphs have tens or hundreds of formats, and sets of formats are out of
the question. Four parts work together on the multilayer graph:

- dual ascent gives a lower bound and the arcs that matter, and does so better the
  better the plan that guides it;
- the path heuristic connects the wishes over those arcs;
- local search improves the tree, and once stuck goes on from a kick: a few moves under
  disturbed costs;
- the exact program, restricted to the formats that the plans found so far have at each
  broker, recombines them into the best of all their mixtures, wherever these are few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import clock
from distributary.placement._ascent_kernels import ascend, connect
from distributary.placement._search_kernels import arborescence_of, improve
from distributary.placement.cost import cost
from distributary.placement.exact import estimate, exact_plan
from distributary.placement.multilayer import MultilayerGraph, multilayer_graph
from distributary.placement.plan import Plan, prune
from distributary.placement.problem import PlacementProblem

__all__ = ["SearchResult", "dual_bound", "search"]

Observer = Callable[[str, int, int], None]

# Arcs that all rounds together may look at, about; more rounds for smaller problems.
_ARCS_PER_SEARCH = 12_000_000
_ROUNDS_MIN, _ROUNDS_MAX = 4, 2_000
# Passes of local search over all vertices before it counts as stuck, and per kick.
_PASSES, _KICK_PASSES = 30, 2
# By how much a kick makes arcs dearer, in turn; and every how many rounds the search
# starts afresh instead, from an ascent under disturbed costs.
_KICKS = (0.1, 0.3, 0.6)
_AFRESH_EVERY, _AFRESH_STRENGTH = 4, 0.3
# How often plans are recombined, how many, and how long that may take.
_RECOMBINE_EVERY, _RECOMBINED_PLANS, _RECOMBINE_SECONDS = 6, 8, 0.5
_RECOMBINE_BYTES = 2**28
# Rounding in the ascent's sums; the bound gives up this share of itself.
_BOUND_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best plan of a search and what no plan can cost less than."""

    plan: Plan = field(repr=False)
    lower_bound: float


def dual_bound(problem: PlacementProblem) -> float:
    """Return a lower bound on the cost of any plan, from one dual ascent.

    Usually within a few per cent of the optimum, in time about proportional to the
    number of conversions times brokers.
    """
    if not problem.served[0]:
        return 0.0
    return _Search(problem, seed=0).ascend(None).bound


def search(
    problem: PlacementProblem,
    *,
    seed: int = 0,
    rounds: int | None = None,
    seconds_max: float | None = None,
    observe: Observer | None = None,
) -> SearchResult:
    """Return a good plan and a lower bound.

    Minimises `cost(problem, plan).total` without a guarantee on the distance to the
    optimum, but with a bound that says how far it can be at most. The result depends on
    the seed only, unless the time runs out.

    It visits so many `rounds` of local optima, by default as many as take some seconds, and stops
    after the round in which `seconds_max` have passed.
    """
    if not problem.served[0]:
        return SearchResult(Plan.empty(problem), 0.0)
    run = _Search(problem, seed=seed)
    if rounds is None:
        arcs = len(run.graph.conversion_costs) + len(run.graph.transmission_costs)
        rounds = int(np.clip(_ARCS_PER_SEARCH // arcs, _ROUNDS_MIN, _ROUNDS_MAX))
    deadline = None if seconds_max is None else clock() + seconds_max
    for done in range(1, rounds + 1):
        run.visit(done)
        if observe is not None:
            observe("search", done, rounds)
        if run.proven or (deadline is not None and clock() >= deadline):
            break
    if not run.proven:
        run.recombine()
        run.raise_bound()
    return SearchResult(prune(problem, run.plan(run.best)), run.bound)


@dataclass(frozen=True, eq=False)
class _DualAscent:
    """A lower bound with the reduced costs that come with it."""

    bound: float
    conversion_left: FloatArray
    transmission_left: FloatArray


class _Search:
    """One search: the graph, the best tree so far, and the bound."""

    def __init__(self, problem: PlacementProblem, *, seed: int) -> None:
        self.problem = problem
        self.graph = multilayer_graph(problem)
        self.rng = np.random.default_rng(seed)
        self.best = np.full(len(self.graph.allowed), -1, dtype=np.int64)
        self.best_cost = np.inf
        self.bound = 0.0
        self.found: list[tuple[float, IntArray]] = []
        # Whole-number costs make every plan's cost a whole number, and the bound with it.
        finite = np.concatenate(
            [self.graph.conversion_costs, self.graph.transmission_costs[problem.format_count :]]
        )
        self.whole = bool(np.all(finite == np.round(finite)) and finite.sum() < 2.0**52)

    @property
    def proven(self) -> bool:
        """Is the best tree known to be optimal?"""
        return self.best_cost <= self.bound * (1.0 + 2.0 * _BOUND_ROUNDING)

    def plan(self, tree: IntArray) -> Plan:
        """Return the plan of a tree, given by the vertex before each vertex."""
        return Plan.from_arborescence(tree.reshape(self.problem.wants.shape))

    def visit(self, number: int) -> None:
        """Find one more local optimum: two from ascents, most others from kicks."""
        if number <= 2:
            tree = self._connect(self.raise_bound())
        elif number % _AFRESH_EVERY == 0:
            tree = self._connect(self.ascend(self.best, self._disturbed(_AFRESH_STRENGTH)))
        else:
            strength = _KICKS[number % len(_KICKS)]
            tree = self._improve(self._disturbed(strength), self.best, _KICK_PASSES)
        self._keep(self._improve(self.graph, tree, _PASSES))
        if number % _RECOMBINE_EVERY == 0:
            self.recombine()
            self.raise_bound()

    def raise_bound(self) -> _DualAscent:
        """Ascend with the best tree as the guide; return the ascent."""
        result = self.ascend(self.best if np.isfinite(self.best_cost) else None)
        self.bound = max(self.bound, result.bound)
        return result

    def ascend(self, guide: IntArray | None, graph: MultilayerGraph | None = None) -> _DualAscent:
        """Return a dual ascent, guided by a tree if there is one.

        Under the costs of another graph its bound says nothing about this problem.
        """
        graph = graph or self.graph
        conversion_left = graph.conversion_costs.copy()
        transmission_left = graph.transmission_costs.copy()
        if guide is None:
            guide = np.full(len(graph.allowed), -1, dtype=np.int64)
        bound = ascend(graph, guide, conversion_left, transmission_left)
        bound *= 1.0 - _BOUND_ROUNDING
        if self.whole:
            bound = float(np.ceil(bound - 1e-6))
        return _DualAscent(bound, conversion_left, transmission_left)

    def recombine(self) -> None:
        """Find the best mixture of the plans found so far, if that is quick."""
        problem = self.problem
        usable = problem.wants.copy()
        usable[0] |= problem.held
        for _, tree in sorted(self.found, key=lambda item: item[0])[:_RECOMBINED_PLANS]:
            usable |= self.plan(tree).available(problem)
        need = estimate(problem, usable=usable)
        if need.seconds > _RECOMBINE_SECONDS or need.memory_bytes > _RECOMBINE_BYTES:
            return
        plan = exact_plan(problem, usable=usable)
        self._keep(self._improve(self.graph, plan.arborescence(problem).ravel(), _PASSES))

    def _connect(self, result: _DualAscent) -> IntArray:
        """Return a tree over the arcs that the ascent has made free."""
        return connect(self.graph, result.conversion_left, result.transmission_left)

    def _improve(self, graph: MultilayerGraph, tree: IntArray, passes: int) -> IntArray:
        """Return the tree after local search, vertices tried in a random order."""
        order = self.rng.permutation(len(tree))
        changed = arborescence_of(graph, tree)
        improve(graph, changed, order, passes)
        return changed.before

    def _disturbed(self, strength: float) -> MultilayerGraph:
        """Return the graph with every arc dearer by a random share of up to `strength`."""
        graph = self.graph
        return graph._replace(
            conversion_costs=graph.conversion_costs
            * self.rng.uniform(1.0, 1.0 + strength, len(graph.conversion_costs)),
            transmission_costs=graph.transmission_costs
            * self.rng.uniform(1.0, 1.0 + strength, len(graph.transmission_costs)),
        )

    def _keep(self, tree: IntArray) -> None:
        """Remember a tree among those found, and as the best if it is."""
        price = cost(self.problem, self.plan(tree)).total
        self.found.append((price, tree))
        self.found.sort(key=lambda item: item[0])
        del self.found[_RECOMBINED_PLANS:]
        if price < self.best_cost:
            self.best, self.best_cost = tree, price
