"""Plans: what each broker receives and what it converts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from distributary.arguments import check_type, checked
from distributary.arrays import BoolArray, IntArray, shaped
from distributary.drawing.embedded import drawn_or_told
from distributary.errors import InvalidPlan, quoted
from distributary.frames import frame
from distributary.kernels import kernel
from distributary.placement.problem import PlacementProblem

if TYPE_CHECKING:
    from distributary.placement.names import NodePlan

__all__ = ["ABSENT", "HELD", "NOT_MADE", "Placement", "Plan", "check", "prune", "verified"]

NOT_MADE = -1
# Where a vertex of the multilayer graph comes from, if not from another vertex.
ABSENT = -1
HELD = -2


@dataclass(frozen=True, eq=False)
class Plan:
    """What travels over every link and what every broker converts.

    A format is made at most once at a broker, so the input it is made from says all
    there is to say about a conversion.

    Attributes
    ----------
    receives
        `receives[v, k]`: does format `k` travel over the link into `v`?
    made_from
        `made_from[v, k]` is the format that `v` converts into `k`, or `NOT_MADE`.
    """

    receives: BoolArray
    made_from: IntArray

    @classmethod
    @checked
    def empty(cls, problem: PlacementProblem) -> Plan:
        """Return the plan in which nothing is sent and nothing converted."""
        shape = (problem.node_count, problem.format_count)
        return cls(np.zeros(shape, dtype=np.bool_), np.full(shape, NOT_MADE, dtype=np.int64))

    @classmethod
    @checked
    def from_arborescence(cls, before: IntArray) -> Plan:
        """Return the plan of a tree in the multilayer graph; see `arborescence`."""
        n, m = before.shape
        here = before // m == np.arange(n)[:, None]
        there = before >= 0
        return cls(there & ~here, np.where(there & here, before % m, NOT_MADE).astype(np.int64))

    def arborescence(self, problem: PlacementProblem) -> IntArray:
        """Return the vertex (`broker * formats + format`) that each vertex comes from.

        `ABSENT` where a broker does not have a format, `HELD` where the root holds it. What
        is both received and made counts as received.
        """
        n, m = self.receives.shape
        own = np.arange(n)[:, None] * m
        up = problem.tree.parents[:, None] * m + np.arange(m)
        made = np.where(self.made_from == NOT_MADE, ABSENT, own + self.made_from)
        before = np.where(self.receives, up, made).astype(np.int64)
        before[0, problem.held] = HELD
        return before

    def copy(self) -> Plan:
        """Return a plan that can be changed without changing this one."""
        return Plan(self.receives.copy(), self.made_from.copy())

    def available(self, problem: PlacementProblem) -> BoolArray:
        """`available[v, k]`: is `k` received or made at `v`, or held at the root?"""
        have: BoolArray = self.receives | (self.made_from != NOT_MADE)
        have[0] |= problem.held
        return have


@dataclass(frozen=True, eq=False)
class Placement:
    """A finished plan with what it costs and how far from the optimum it can be.

    Attributes
    ----------
    method
        The method that made the plan.
    plan
        The plan itself.
    transmission_cost, conversion_cost
        Before weighting by alpha and beta.
    total_cost
        After weighting.
    lower_bound
        No valid plan costs less.
    optimal
        Whether the plan is proven to be the cheapest.
    seconds
        From the parsed problem to the finished plan.
    chosen
        How "auto" planned: "exact" or "search"; None for the other methods.
    latest_delivery, latest_delivery_bound
        With time as the objective: when the last wish is served, and a moment before
        which no plan serves it.
    problem
        What was planned: it has the names.
    """

    method: str
    plan: Plan = field(repr=False)
    transmission_cost: float
    conversion_cost: float
    total_cost: float
    lower_bound: float
    optimal: bool
    seconds: float
    chosen: str | None = None
    latest_delivery: float | None = None
    latest_delivery_bound: float | None = None
    problem: PlacementProblem = field(repr=False, kw_only=True)

    @property
    def gap(self) -> float:
        """The share of the total cost that is not proven to be necessary."""
        if self.total_cost == 0.0:
            return 0.0
        return max(0.0, (self.total_cost - self.lower_bound) / self.total_cost)

    def at(self, node: str) -> NodePlan:
        """Return what one broker gets and does, by names."""
        from distributary.placement.names import plan_at

        return plan_at(self.problem, self.plan, node)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan with names, as `distributary place` writes it."""
        from distributary.placement.plan_file import plan_document

        return plan_document(self.problem, self)

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a row per broker: what it wants, receives and converts, and what that costs.

        `library` is "pandas", "polars" or "arrow".
        """
        from distributary.placement.names import node_columns

        return frame(node_columns(self.problem, self.plan), library)

    def _repr_html_(self) -> str:
        from distributary.placement.draw import plan_picture

        count = self.problem.node_count
        return drawn_or_told(self, count, lambda: plan_picture(self.problem, self).svg())


@checked
def check(problem: PlacementProblem, plan: Plan) -> None:
    """Raise `InvalidPlan` unless every format is available wherever it is used.

    The inputs of all conversions at a node must be received there or made there
    without going round in a circle.
    """
    names, formats = problem.tree.names, problem.graph.names
    costs = problem.graph.costs
    available = plan.available(problem)
    if plan.receives[0].any():
        raise InvalidPlan(names[0], "is the root, and receives something")
    for v in range(problem.node_count):
        made = np.flatnonzero(plan.made_from[v] != NOT_MADE)
        in_hand = plan.receives[v].copy()
        if v == 0:
            in_hand |= problem.held
        else:
            missing = np.flatnonzero(plan.receives[v] & ~available[problem.tree.parents[v]])
            if len(missing):
                raise InvalidPlan(
                    names[v],
                    f"receives {quoted(formats[missing[0]])}, which its parent does not have",
                )
        waiting = [int(k) for k in made]
        while waiting:
            ready = [k for k in waiting if in_hand[plan.made_from[v, k]]]
            if not ready:
                k = waiting[0]
                raise InvalidPlan(
                    names[v],
                    f"makes {quoted(formats[k])} from {quoted(formats[plan.made_from[v, k]])}, "
                    "which it does not have",
                )
            for k in ready:
                if not np.isfinite(costs[plan.made_from[v, k], k]):
                    raise InvalidPlan(
                        names[v],
                        f"converts {quoted(formats[plan.made_from[v, k]])} into "
                        f"{quoted(formats[k])}, which is impossible",
                    )
                in_hand[k] = True
            waiting = [k for k in waiting if k not in set(ready)]
        denied = np.flatnonzero(problem.wants[v] & ~in_hand)
        if len(denied):
            raise InvalidPlan(names[v], f"wants {quoted(formats[denied[0]])} and does not get it")


def verified(problem: PlacementProblem, plan: object) -> Plan:
    """Return a plan that a stranger made, or raise unless it is one, and a valid one."""
    check_type("plan", plan, Plan)
    assert isinstance(plan, Plan)
    shape = (problem.node_count, problem.format_count)
    copy = Plan(
        shaped("receives", plan.receives, shape, np.bool_).copy(),
        shaped("made_from", plan.made_from, shape, np.int64).copy(),
    )
    odd = (copy.made_from < NOT_MADE) | (copy.made_from >= problem.format_count)
    if odd.any():
        v, k = (int(index) for index in np.argwhere(odd)[0])
        made = quoted(problem.graph.names[k])
        raise InvalidPlan(problem.tree.names[v], f"makes {made} from a format that there is not")
    check(problem, copy)
    return copy


@checked
def prune(problem: PlacementProblem, plan: Plan) -> Plan:
    """Return the plan without what nobody uses.

    A format stays at a node when it is wanted there, sent on, or the input of a
    conversion that stays. What is both received and made is only received.
    """
    receives = plan.receives.copy()
    made_from = np.where(receives, NOT_MADE, plan.made_from)
    made_from[0, problem.held] = NOT_MADE
    _drop_unused(receives, made_from, problem.wants.copy(), problem.tree.parents)
    return Plan(receives, made_from)


@kernel
def _drop_unused(
    receives: BoolArray, made_from: IntArray, used: BoolArray, parents: IntArray
) -> None:
    """Remove what nobody uses; `used` (n, m) says what is wanted, and then what is used."""
    n, m = used.shape
    for v in range(n - 1, -1, -1):
        growing = True
        while growing:
            growing = False
            for k in range(m):
                origin = made_from[v, k]
                if used[v, k] and origin >= 0 and not used[v, origin]:
                    used[v, origin] = True
                    growing = True
        for k in range(m):
            if not used[v, k]:
                made_from[v, k] = -1
                receives[v, k] = False
            elif v > 0 and receives[v, k]:
                used[parents[v], k] = True
