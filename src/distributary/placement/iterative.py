"""The papers' iterative method (CCD, section 5, Algorithms 2 and 3).

It starts from the best of the three simple plans and refines one broker after another with
the brokers just below it. Every plan on the way is valid and none costs more than the one
before; where it ends can be any distance from the optimum, though in practice it is a few
per cent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from distributary.arguments import check_choice, check_count
from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import clock
from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.placement.bounds import transmission_bounds
from distributary.placement.conversions import ConversionPlanner
from distributary.placement.cost import cost
from distributary.placement.plan import NOT_MADE, Plan
from distributary.placement.problem import PlacementProblem
from distributary.placement.stump import (
    cut_stump,
    replan_approximately,
    replan_exactly,
    require_small_stumps,
)

__all__ = ["SELECTIONS", "STEINER_STEPS", "IterativeRun", "iterative"]

SELECTIONS = ("slack", "random")
STEINER_STEPS = ("charikar", "exact")

# A stump is replaced only when the new plan saves more than rounding can.
_SAVING_MIN = 1e-9

Observer = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class IterativeRun:
    """What the iterative method found, and how it got there.

    `costs[i]` is the total cost after `i` iterations, of which there are fewer than asked when
    nothing was left to refine.
    """

    plan: Plan = field(repr=False)
    costs: FloatArray = field(repr=False)
    iterations: int


def iterative(
    problem: PlacementProblem,
    *,
    iterations: int = 1000,
    select: str = "slack",
    steiner: str = "charikar",
    depth: int = 1,
    seed: int = 0,
    observe: Observer | None = None,
    time_limit: float | None = None,
) -> IterativeRun:
    """Refine the best simple plan, one broker and the levels below it at a time.

    Parameters
    ----------
    iterations
        At most this many refinements.
    select
        Which broker is next: "slack" takes the one whose surroundings cost most above
        their lower bound, "random" draws from all brokers. A broker whose surroundings
        are as they were after its last refinement is not refined again: taken literally,
        "slack" would pick the same one for ever. When no other is left, the run ends.
    steiner
        How a stump is planned: "charikar", the approximation the papers cite, or "exact".
    depth
        How many levels below the broker are planned with it; the papers take 1.
    seed
        For "random".
    observe
        Called after each iteration with a stage, how many were made and how many there may be.
    time_limit
        Stop after this many seconds; then, and only then, two runs may differ.
    """
    check_choice("select", select, SELECTIONS)
    check_choice("steiner", steiner, STEINER_STEPS)
    check_count("depth", depth, least=1)
    if steiner == "exact":
        require_small_stumps(problem)
    started = clock()
    rng = np.random.default_rng(seed)
    conversion_planner = ConversionPlanner(problem.graph.costs)
    refinement = _Refinement(
        problem, _best_start(problem, conversion_planner), conversion_planner, depth, steiner
    )
    costs = [refinement.total()]
    while len(costs) <= iterations and refinement.open_nodes.any():
        if time_limit is not None and clock() - started > time_limit:
            break
        drawn = int(rng.integers(problem.node_count)) if select == "random" else None
        node = refinement.slackest() if drawn is None else drawn
        if refinement.open_nodes[node]:
            refinement.refine(node)
        costs.append(refinement.total())
        if observe is not None:
            observe("iterative", len(costs) - 1, iterations)
    return IterativeRun(refinement.plan, np.array(costs), len(costs) - 1)


def _best_start(problem: PlacementProblem, conversion_planner: ConversionPlanner) -> Plan:
    starts = [
        start(problem, conversion_planner) for start in (all_in_root, all_in_leaves, single_format)
    ]
    return min(starts, key=lambda plan: cost(problem, plan).total)


class _Refinement:
    """A plan under refinement, with what it costs node by node.

    Attributes
    ----------
    plan
        The current plan; valid at all times.
    sending, converting
        What the link into each node and the conversions at it cost, after weighting.
    slack
        For each node what its stump costs above its lower bound. Conversions have none
        there: some valid plan makes everything elsewhere.
    open_nodes
        The nodes that are worth refining. A leaf is refined with its parent, since its
        stump is a part of its parent's; only a lone root is refined by itself.
    """

    def __init__(
        self,
        problem: PlacementProblem,
        plan: Plan,
        conversion_planner: ConversionPlanner,
        depth: int,
        steiner: str,
    ) -> None:
        self.problem = problem
        self.plan = plan
        self.conversion_planner = conversion_planner
        self.depth = depth
        self.exactly = steiner == "exact"
        children = (problem.tree.children(v) for v in range(problem.node_count))
        self.children = [below[problem.served[below]] for below in children]
        self.sending = np.zeros(problem.node_count)
        self.converting = np.zeros(problem.node_count)
        # The links' bounds never change, so they are taken off once, here.
        self.slack = np.zeros(problem.node_count)
        for v, bound in enumerate(transmission_bounds(problem)):
            self._add_slack(v, sending=-bound, converting=0.0)
        for v in range(problem.node_count):
            self._recount(v)
        self.open_nodes: BoolArray = np.array([len(below) > 0 for below in self.children])
        self.open_nodes[0] = problem.served[0]

    def total(self) -> float:
        """Return what the plan costs."""
        return float(self.sending.sum() + self.converting.sum())

    def slackest(self) -> int:
        """Return the open node of largest slack, the first of equals."""
        return int(np.argmax(np.where(self.open_nodes, self.slack, -np.inf)))

    def refine(self, node: int) -> None:
        """Plan the stump of `node` anew, and adopt the new plan if it costs less."""
        problem, plan = self.problem, self.plan
        stump = cut_stump(problem, plan, self.children, node, self.depth)
        if self.exactly:
            better = replan_exactly(problem, stump)
        else:
            better = replan_approximately(problem, self.conversion_planner.chains, stump)
        self.open_nodes[node] = False
        below = stump.nodes[1:]
        before = self.sending[below].sum() + self.converting[stump.nodes].sum()
        after = sum(
            self._conversion_cost(v, made_from)
            for v, made_from in zip(stump.nodes, better.made_from, strict=True)
        ) + sum(
            self._transmission_cost(v, receives)
            for v, receives in zip(below, better.receives[1:], strict=True)
        )
        if after >= before - _SAVING_MIN * before:
            return
        for position, v in enumerate(stump.nodes):
            receives = better.receives[position] if position > 0 else plan.receives[v]
            self._replace(int(v), receives, better.made_from[position], refined=node)
        self._drop_unused(node)

    def _drop_unused(self, node: int) -> None:
        """Stop sending `node` what its new plan does not use, and so on up the tree."""
        plan, wants = self.plan, self.problem.wants
        while True:
            used = wants[node] | plan.receives[self.children[node]].any(axis=0)
            waiting = np.flatnonzero(used).tolist()
            while waiting:
                origin = plan.made_from[node, waiting.pop()]
                if origin != NOT_MADE and not used[origin]:
                    used[origin] = True
                    waiting.append(origin)
            receives = plan.receives[node] & used
            fewer = bool((receives != plan.receives[node]).any())
            made_from = np.where(used, plan.made_from[node], NOT_MADE)
            self._replace(node, receives, made_from, refined=None)
            if not fewer or node == 0:
                return
            node = int(self.problem.tree.parents[node])

    def _replace(
        self, v: int, receives: BoolArray, made_from: IntArray, refined: int | None
    ) -> None:
        """Give `v` a new row of the plan, and reopen the nodes that see a difference.

        A stump sees the rows of its nodes and what its lowest level sends on. The refined
        node itself stays closed: its input is as it was, so it would find the same again.
        """
        plan = self.plan
        resent = bool((receives != plan.receives[v]).any())
        if not resent and bool((made_from == plan.made_from[v]).all()):
            return
        plan.receives[v] = receives
        plan.made_from[v] = made_from
        self._recount(v)
        u = v
        for _ in range(self.depth + 1 + resent):
            if u < 0:
                break
            if u != refined and (u == 0 or len(self.children[u]) > 0):
                self.open_nodes[u] = True
            u = int(self.problem.tree.parents[u])

    def _recount(self, v: int) -> None:
        """Bring the cost of `v`, and the slack of the stumps it is in, up to date."""
        sending = self._transmission_cost(v, self.plan.receives[v])
        converting = self._conversion_cost(v, self.plan.made_from[v])
        self._add_slack(
            v, sending=sending - self.sending[v], converting=converting - self.converting[v]
        )
        self.sending[v] = sending
        self.converting[v] = converting

    def _add_slack(self, v: int, *, sending: float, converting: float) -> None:
        """Add to the slack of the stumps that `v` and the link into it belong to."""
        self.slack[v] += converting
        u = int(self.problem.tree.parents[v])
        for _ in range(self.depth):
            if u < 0:
                break
            self.slack[u] += sending + converting
            u = int(self.problem.tree.parents[u])

    def _transmission_cost(self, v: int, receives: BoolArray) -> float:
        return float(self.problem.link_weights[v] * self.problem.graph.sizes[receives].sum())

    def _conversion_cost(self, v: int, made_from: IntArray) -> float:
        made = np.flatnonzero(made_from != NOT_MADE)
        converted = self.problem.graph.costs[made_from[made], made].sum()
        return float(self.problem.node_weights[v] * converted)
