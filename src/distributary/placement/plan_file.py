"""Plans in files: what every broker receives and converts, and what that costs.

A plan file is one JSON object with the costs, the proof (`lower_bound`, `gap`,
`optimal`) and one entry per node, in the order of the problem file::

    {"node": "N1", "receives": ["pdf"], "converts": [["pdf", "jpeg"]]}

The conversions of a node stand in an order in which they can be run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from distributary.arguments import checked
from distributary.content.documents import read_document
from distributary.content.fields import Record, no_such_name
from distributary.content.graph_file import FORMATS_MAX
from distributary.errors import BadInput, quoted
from distributary.placement.names import node_plan
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
    names = problem.tree.names
    position = {name: v for v, name in enumerate(names)}
    nodes: list[dict[str, object]] = []
    for name in names if node_order is None else node_order:
        here = node_plan(problem, placement.plan, position[name])
        converts = [list(pair) for pair in here.converts]
        nodes.append({"node": name, "receives": list(here.receives), "converts": converts})
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
