"""The cheapest plan by trying everything: what each node receives and what it converts.

No set of formats is ever reasoned about: a node's rows of the plan are written out one by
one, circles are found by running the conversions, and costs are added up in the open. For a
handful of nodes and up to about four formats.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from distributary.placement.plan import NOT_MADE, Plan
from distributary.placement.problem import PlacementProblem

Formats = tuple[int, ...]
Row = tuple[Formats, Formats]


def minimum_cost(problem: PlacementProblem) -> float:
    """Return the total cost of a cheapest plan."""
    return _cheapest(problem)[0]


def cheapest_plan(problem: PlacementProblem) -> Plan:
    """Return a plan of least total cost."""
    plan = Plan.empty(problem)
    for v, (received, made_from) in _cheapest(problem)[1].items():
        plan.receives[v, list(received)] = True
        plan.made_from[v] = made_from
    return plan


def _cheapest(problem: PlacementProblem) -> tuple[float, dict[int, Row]]:
    rows_by_hand: dict[Formats, list[tuple[Formats, Formats]]] = {}
    solved: dict[tuple[int, Formats], tuple[float, dict[int, Row]]] = {}

    def rows(in_hand: Formats) -> list[tuple[Formats, Formats]]:
        if in_hand not in rows_by_hand:
            rows_by_hand[in_hand] = list(conversion_rows(problem.graph.costs, in_hand))
        return rows_by_hand[in_hand]

    def serve(v: int, received: Formats) -> tuple[float, dict[int, Row]]:
        if (v, received) in solved:
            return solved[v, received]
        in_hand = tuple(np.flatnonzero(problem.held).tolist()) if v == 0 else received
        best_cost, best_rows = np.inf, dict[int, Row]()
        for made_from, available in rows(in_hand):
            if any(problem.wants[v, k] and k not in available for k in range(len(made_from))):
                continue
            cost = problem.alpha * problem.tree.link_costs[v] * sum(
                problem.graph.sizes[k] for k in received
            ) + problem.beta * problem.tree.node_costs[v] * sum(
                problem.graph.costs[i, k] for k, i in enumerate(made_from) if i != NOT_MADE
            )
            chosen: dict[int, Row] = {v: (received, made_from)}
            for child in problem.tree.children(v).tolist():
                below_cost, below_rows = min(
                    (serve(child, sent) for sent in subsets(available)), key=lambda found: found[0]
                )
                cost += below_cost
                chosen |= below_rows
            if cost < best_cost:
                best_cost, best_rows = float(cost), chosen
        solved[v, received] = best_cost, best_rows
        return solved[v, received]

    return serve(0, ())


def subsets(formats: Formats) -> Iterator[Formats]:
    """Yield every subset."""
    for size in range(len(formats) + 1):
        yield from itertools.combinations(formats, size)


def conversion_rows(
    costs: np.ndarray[tuple[int, ...], np.dtype[np.float64]], in_hand: Formats
) -> Iterator[tuple[Formats, Formats]]:
    """Yield every way to convert at one node, with the formats that are then available."""
    count = len(costs)
    options = [
        [NOT_MADE]
        if k in in_hand
        else [NOT_MADE, *(i for i in range(count) if np.isfinite(costs[i, k]))]
        for k in range(count)
    ]
    for made_from in itertools.product(*options):
        available = set(in_hand)
        waiting = {k for k in range(count) if made_from[k] != NOT_MADE}
        while ready := {k for k in waiting if made_from[k] in available}:
            available |= ready
            waiting -= ready
        if not waiting:
            yield made_from, tuple(sorted(available))
