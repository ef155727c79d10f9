"""Plans by name: what a broker wants, receives and converts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.arguments import check_type, no_such_name
from distributary.arrays import BoolArray, IntArray
from distributary.errors import InvalidPlan
from distributary.placement.plan import NOT_MADE, Plan
from distributary.placement.problem import PlacementProblem

__all__ = ["NodePlan", "node_columns", "node_plan", "plan_at"]


@dataclass(frozen=True)
class NodePlan:
    """What one broker gets and does, formats by name.

    Attributes
    ----------
    node
        The broker.
    wants
        The formats that its own clients want.
    receives
        The formats that come over its link.
    converts
        Its conversions as (from, to), in an order in which they can be run.
    """

    node: str
    wants: tuple[str, ...]
    receives: tuple[str, ...]
    converts: tuple[tuple[str, str], ...]


def plan_at(problem: PlacementProblem, plan: Plan, node: str) -> NodePlan:
    """Return what a plan says about the broker of this name."""
    check_type("node", node, str)
    if node not in problem.tree.names:
        raise no_such_name("node", node, problem.tree.names, "a node of the tree")
    return node_plan(problem, plan, problem.tree.names.index(node))


def node_plan(problem: PlacementProblem, plan: Plan, v: int) -> NodePlan:
    """Return what a plan says about the broker with this index."""
    names, formats = problem.tree.names, problem.graph.names
    in_hand = plan.receives[v] | problem.held if v == 0 else plan.receives[v]
    order = _conversion_order(in_hand, plan.made_from[v], names[v])
    return NodePlan(
        names[v],
        tuple(formats[k] for k in np.flatnonzero(problem.wants[v])),
        tuple(formats[k] for k in np.flatnonzero(plan.receives[v])),
        tuple((formats[i], formats[j]) for i, j in order),
    )


def node_columns(problem: PlacementProblem, plan: Plan) -> dict[str, list[object]]:
    """Return a row per broker, in the order of the tree; conversions as "pdf -> jpeg".

    The costs are weighted, so that they add up to the total.
    """
    graph, tree = problem.graph, problem.tree
    sent = np.where(plan.receives, graph.sizes, 0.0).sum(axis=1)
    node, made = np.nonzero(plan.made_from != NOT_MADE)
    converted = np.bincount(
        node,
        weights=graph.costs[plan.made_from[node, made], made],
        minlength=problem.node_count,
    )
    nodes = [node_plan(problem, plan, v) for v in range(problem.node_count)]
    return {
        "node": list(tree.names),
        "parent": [None if p < 0 else tree.names[p] for p in tree.parents.tolist()],
        "wants": [list(node.wants) for node in nodes],
        "receives": [list(node.receives) for node in nodes],
        "converts": [[" -> ".join(pair) for pair in node.converts] for node in nodes],
        "transmission_cost": (problem.link_weights * sent).tolist(),
        "conversion_cost": (problem.node_weights * converted).tolist(),
    }


def _conversion_order(in_hand: BoolArray, made_from: IntArray, node: str) -> list[tuple[int, int]]:
    """Return the conversions of one node as (input, output), inputs first."""
    waiting = {j: int(made_from[j]) for j in np.flatnonzero(made_from != NOT_MADE).tolist()}
    if not waiting:
        return []
    have = set(np.flatnonzero(in_hand).tolist())
    order: list[tuple[int, int]] = []
    while waiting:
        ready = [j for j, i in waiting.items() if i in have]
        if not ready:
            raise InvalidPlan(node, "makes something from what it does not have")
        order.extend((waiting.pop(j), j) for j in ready)
        have.update(ready)
    return order
