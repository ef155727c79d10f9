"""Plans in files: what every broker receives and converts, and what that costs.

A plan file is one JSON object with the costs, the proof (`lower_bound`, `gap`,
`optimal`) and one entry per node, in the order of the problem file::

    {"node": "N1", "receives": ["pdf"], "converts": [["pdf", "jpeg"]]}

The conversions of a node stand in an order in which they can be run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from distributary.arguments import checked
from distributary.arrays import BoolArray, IntArray
from distributary.content.documents import read_document
from distributary.content.fields import Record, no_such_name
from distributary.content.graph_file import FORMATS_MAX
from distributary.errors import BadInput, InvalidPlan, quoted
from distributary.placement.plan import NOT_MADE, Placement, Plan
from distributary.placement.problem import PlacementProblem

__all__ = ["parse_plan", "plan_document", "read_plan"]


@checked
def plan_document(
    problem: PlacementProblem, placement: Placement, node_order: Sequence[str] | None = None
) -> dict[str, object]:
    """Return `placement` as a JSON document.

    Nodes are written in `node_order`, usually that of the problem's file; in the problem's
    own unless given.
    """
    document: dict[str, object] = {
        "method": placement.method,
        "total_cost": float(placement.total_cost),
        "transmission_cost": float(placement.transmission_cost),
        "conversion_cost": float(placement.conversion_cost),
        "lower_bound": float(placement.lower_bound),
        "gap": float(placement.gap),
        "optimal": bool(placement.optimal),
        "seconds": float(placement.seconds),
    }
    if placement.latest_delivery is not None:
        bound = placement.latest_delivery_bound
        document["latest_delivery"] = float(placement.latest_delivery)
        document["latest_delivery_bound"] = None if bound is None else float(bound)
    names, formats = problem.tree.names, problem.graph.names
    position = {name: v for v, name in enumerate(names)}
    receives, made_from = placement.plan.receives, placement.plan.made_from
    converts = (made_from != NOT_MADE).any(axis=1)
    nodes: list[dict[str, object]] = []
    for name in names if node_order is None else node_order:
        v = position[name]
        in_hand = receives[v] | problem.held if v == 0 else receives[v]
        order = _conversion_order(in_hand, made_from[v], name) if converts[v] else []
        nodes.append(
            {
                "node": name,
                "receives": [formats[k] for k in np.flatnonzero(receives[v])],
                "converts": [[formats[i], formats[j]] for i, j in order],
            }
        )
    document["nodes"] = nodes
    return document


def read_plan(path: Path | str, problem: PlacementProblem) -> Plan:
    """Return the plan in a file; see `parse_plan`."""
    return read_document(path, lambda document: parse_plan(document, problem))


@checked
def parse_plan(document: object, problem: PlacementProblem) -> Plan:
    """Return the plan for `problem` in a JSON document, or raise `BadInput`.

    The costs in the document are not read: `cost` works them out from the plan. Nor is
    the plan checked against the model; `check` does that.
    """
    plan = Plan.empty(problem)
    formats = {name: k for k, name in enumerate(problem.graph.names)}
    position = {name: v for v, name in enumerate(problem.tree.names)}
    missing = dict.fromkeys(problem.tree.names)
    for entry in Record(document).records("nodes", count_max=problem.node_count):
        name = entry.name("node")
        if name not in position:
            raise no_such_name(entry.place("node"), name, position, "a node of the problem")
        if name not in missing:
            raise BadInput(entry.place("node"), f"node {quoted(name)} is given twice")
        del missing[name]
        v = position[name]
        for index, received in enumerate(entry.names("receives", count_max=FORMATS_MAX)):
            if received not in formats:
                place = f"{entry.place('receives')}[{index}]"
                raise no_such_name(place, received, formats, "a format of the problem")
            plan.receives[v, formats[received]] = True
        for index, pair in enumerate(entry.entries("converts", count_max=FORMATS_MAX)):
            place = f"{entry.place('converts')}[{index}]"
            origin, target = _conversion(pair, place, formats)
            if plan.made_from[v, target] != NOT_MADE:
                made = quoted(problem.graph.names[target])
                raise BadInput(place, f"{made} is made twice at node {quoted(name)}")
            plan.made_from[v, target] = origin
    for name in missing:
        raise BadInput("nodes", f"has no entry for node {quoted(name)}")
    return plan


def _conversion(pair: object, place: str, formats: dict[str, int]) -> tuple[int, int]:
    """Return one entry of `converts` as the indices of its input and its output."""
    if not isinstance(pair, list) or len(pair) != 2:
        raise BadInput(place, "must be a pair of formats: what is converted, and into what")
    for name in pair:
        if not isinstance(name, str) or name not in formats:
            raise no_such_name(place, str(name), formats, "a format of the problem")
    return formats[pair[0]], formats[pair[1]]


def _conversion_order(in_hand: BoolArray, made_from: IntArray, node: str) -> list[tuple[int, int]]:
    """Return the conversions of one node as (input, output), inputs first."""
    have = set(np.flatnonzero(in_hand).tolist())
    waiting = {j: int(made_from[j]) for j in np.flatnonzero(made_from != NOT_MADE).tolist()}
    order: list[tuple[int, int]] = []
    while waiting:
        ready = [j for j, i in waiting.items() if i in have]
        if not ready:
            raise InvalidPlan(node, "makes something from what it does not have")
        order.extend((waiting.pop(j), j) for j in ready)
        have.update(ready)
    return order
