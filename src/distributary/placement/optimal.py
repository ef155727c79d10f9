"""The papers' optimal algorithm (CCD, section 4, Algorithm 1), kept as a reference.

It reads like the paper: for every set of formats a broker may receive, try every set it
may have in hand afterwards, and give each child the cheapest subset of that. `exact` finds
the same plans with far fewer steps.

Two slips of the paper are put right. Algorithm 1 weighs conversions with alpha and
transmissions with 1 - alpha; section 2.2 has alpha on transmissions and beta on
conversions. And it lets a broker receive nothing although something is wanted below it, or
something although nothing is: here the received set is empty exactly when nothing is wanted.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray
from distributary.errors import TooLarge
from distributary.placement.conversions import ConversionPlanner
from distributary.placement.plan import Plan, prune
from distributary.placement.problem import PlacementProblem

__all__ = ["optimal", "seconds_estimate"]

_SECONDS_MAX = 60.0
# Seconds per pair of sets for one Steiner tree, and per pair of sets and broker for the
# rest; measured once, and only meant to tell seconds from hours.
_SECONDS_PER_TREE = 2e-5
_SECONDS_PER_PAIR = 2.5e-6
_EMPTY = 0


class _Subplan(NamedTuple):
    """The cheapest way to serve a broker and all below it from one received set.

    Sets of formats are written as bits. `inputs` holds what each child receives.
    """

    cost: float
    in_hand: int
    inputs: tuple[int, ...]


def optimal(problem: PlacementProblem) -> Plan:
    """Return a plan of least total cost, found by the papers' Algorithm 1.

    Takes about (brokers x 4^formats) steps of interpreted code: seconds up to 6 formats.

    Raises `TooLarge` when it would take more than about a minute, before anything is computed.
    """
    seconds = seconds_estimate(problem)
    if seconds > _SECONDS_MAX:
        raise TooLarge(
            f"method 'optimal' would take about {seconds:.2g} s for {problem.format_count} formats "
            f"and {problem.node_count} nodes; it may take {_SECONDS_MAX:.0f} s; "
            "hint: method 'exact' finds the same plan with far fewer steps",
            seconds=seconds,
            memory_bytes=problem.node_count * 2.0**problem.format_count * 200.0,
        )
    plan = Plan.empty(problem)
    if not problem.served[0]:
        return plan
    all_sets = range(1 << problem.format_count)
    masks = [_mask(chosen, problem.format_count) for chosen in all_sets]
    conversion_planner = ConversionPlanner(problem.graph.costs)
    makeable = [_bits(conversion_planner.chains.makeable_from(masks[have])) for have in all_sets]
    wants = [_bits(row) for row in problem.wants]
    children = [
        [int(c) for c in problem.tree.children(v) if problem.served[c]]
        for v in range(problem.node_count)
    ]

    @cache
    def conversion_cost(received: int, missing: int) -> float:
        """Return the paper's S(F_in -> F_out): the cheapest directed Steiner tree."""
        return conversion_planner.cost(masks[received], masks[missing]).cost

    @cache
    def best_input(child: int, in_hand: int) -> int:
        """Return the subset of `in_hand` with which the child's subtree is cheapest (line 10)."""
        best, best_cost = _EMPTY, np.inf
        received = in_hand
        while received != _EMPTY:
            cost = subplan(child, received).cost
            if cost < best_cost:
                best, best_cost = received, cost
            received = (received - 1) & in_hand
        return best

    @cache
    def subplan(v: int, received: int) -> _Subplan:
        """Return the cheapest plan for the subtree of `v` (Algorithm 1, lines 4 to 20)."""
        best = _Subplan(np.inf, _EMPTY, ())
        for in_hand in all_sets:
            # Only sets that hold what is wanted here, and that can be made at all.
            if wants[v] & ~in_hand or in_hand & ~makeable[received]:
                continue
            cost = problem.node_weights[v] * conversion_cost(received, in_hand & ~received)
            inputs = tuple(best_input(child, in_hand) for child in children[v])
            cost += sum(
                subplan(child, child_input).cost if child_input else np.inf
                for child, child_input in zip(children[v], inputs, strict=True)
            )
            if cost < best.cost:
                best = _Subplan(float(cost), in_hand, inputs)
        if v == 0:
            return best
        sending = float(problem.link_weights[v] * problem.graph.sizes[masks[received]].sum())
        return best._replace(cost=best.cost + sending)

    # Children first, so that the recursion in `subplan` never goes deeper than one level.
    for v in range(problem.node_count - 1, 0, -1):
        if problem.served[v]:
            for received in all_sets:
                if received != _EMPTY:
                    subplan(v, received)
    waiting = [(0, _bits(problem.held))]
    while waiting:
        v, received = waiting.pop()
        best = subplan(v, received)
        if v > 0:
            plan.receives[v] = masks[received]
        plan.made_from[v] = conversion_planner.conversions(masks[received], masks[best.in_hand])
        waiting += zip(children[v], best.inputs, strict=True)
    return prune(problem, plan)


def seconds_estimate(problem: PlacementProblem) -> float:
    """Return about how many seconds `optimal` would take."""
    pairs = 4.0 ** min(problem.format_count, 500)
    return pairs * (_SECONDS_PER_TREE + int(problem.served.sum()) * _SECONDS_PER_PAIR)


def _bits(chosen: BoolArray) -> int:
    return sum(1 << int(k) for k in np.flatnonzero(chosen))


def _mask(chosen: int, format_count: int) -> BoolArray:
    return np.asarray(chosen >> np.arange(format_count) & 1, dtype=np.bool_)
