"""Plan files: complete, in the order of the problem's file, and readable as instructions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distributary.content import AdaptationGraph
from distributary.errors import BadInput, InvalidPlan
from distributary.placement.cost import cost
from distributary.placement.plan import Placement, Plan, check
from distributary.placement.plan_file import parse_plan, plan_document, read_plan
from distributary.placement.problem import PlacementProblem
from distributary.topology import DisseminationTree, TreeNode

# d is made from c, which is made from b: against the order of the names at the root.
GRAPH = AdaptationGraph.from_conversions(
    [("a", 1.0), ("b", 2.0), ("c", 3.0), ("z", 9.0)],
    [("z", "c", 1.0), ("c", "b", 1.0), ("b", "a", 1.0)],
)


def problem() -> PlacementProblem:
    tree = DisseminationTree.from_nodes([TreeNode("N1", None), TreeNode("N2", "N1")])
    wants = np.array([[True, False, False, False], [True, True, False, False]])
    return PlacementProblem(GRAPH, tree, wants, np.array([False, False, False, True]))


def chain() -> Plan:
    """Return the plan: z -> c -> b -> a at the root, b sent on, b -> a at the leaf."""
    plan = Plan.empty(problem())
    plan.made_from[0, [2, 1, 0]] = [3, 2, 1]
    plan.receives[1, 1] = True
    plan.made_from[1, 0] = 1
    return plan


def placed(
    plan: Plan, latest_delivery: float | None = None, latest_delivery_bound: float | None = None
) -> Placement:
    costs = cost(problem(), plan)
    return Placement(
        method="exact",
        plan=plan,
        transmission_cost=costs.transmission,
        conversion_cost=costs.conversion,
        total_cost=costs.total,
        lower_bound=3.0,
        optimal=False,
        seconds=0.25,
        latest_delivery=latest_delivery,
        latest_delivery_bound=latest_delivery_bound,
        problem=problem(),
    )


def test_a_document_has_the_fields_of_a_plan_in_their_order() -> None:
    check(problem(), chain())
    document = plan_document(problem(), placed(chain()))
    assert document == {
        "method": "exact",
        "total_cost": 6.0,
        "transmission_cost": 2.0,
        "conversion_cost": 4.0,
        "lower_bound": 3.0,
        "gap": 0.5,
        "optimal": False,
        "seconds": 0.25,
        "nodes": [
            {"node": "N1", "receives": [], "converts": [["z", "c"], ["c", "b"], ["b", "a"]]},
            {"node": "N2", "receives": ["b"], "converts": [["b", "a"]]},
        ],
    }
    assert list(document) == [
        "method",
        "total_cost",
        "transmission_cost",
        "conversion_cost",
        "lower_bound",
        "gap",
        "optimal",
        "seconds",
        "nodes",
    ]


def test_nodes_come_in_the_order_of_the_problem_file() -> None:
    document: Any = plan_document(problem(), placed(chain()), ("N2", "N1"))
    assert [entry["node"] for entry in document["nodes"]] == ["N2", "N1"]


def test_delivery_times_are_given_when_time_is_the_objective() -> None:
    document = plan_document(
        problem(), placed(chain(), latest_delivery=4.0, latest_delivery_bound=3.5)
    )
    assert document["latest_delivery"] == 4.0
    assert document["latest_delivery_bound"] == 3.5


def test_a_circular_derivation_cannot_be_written_as_instructions() -> None:
    plan = Plan.empty(problem())
    plan.made_from[0, [0, 1]] = [1, 0]
    with pytest.raises(InvalidPlan, match="node 'N1'"):
        plan_document(problem(), placed(plan))


def test_a_plan_reads_back_as_itself(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_document(problem(), placed(chain()))), encoding="utf-8")
    plan = read_plan(path, problem())
    assert np.array_equal(plan.receives, chain().receives)
    assert np.array_equal(plan.made_from, chain().made_from)


N1: dict[str, Any] = {"node": "N1", "receives": [], "converts": []}
N2: dict[str, Any] = {"node": "N2", "receives": [], "converts": []}


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([N1], "nodes: has no entry for node 'N2'"),
        ([N1, N1], "nodes[1].node: node 'N1' is given twice"),
        ([N1, N2, N2], "nodes: has 3 entries; at most 2 are read"),
        ([N1, {**N2, "node": "N3"}], "nodes[1].node: 'N3' is not a node of the problem"),
        ([N1, {**N2, "receives": ["q"]}], "nodes[1].receives[0]: 'q' is not a format of the"),
        ([N1, {**N2, "receives": ["a", "a"]}], "nodes[1].receives[1]: 'a' is given twice"),
        ([N1, {**N2, "converts": ["ab"]}], "nodes[1].converts[0]: must be a pair of formats"),
        ([N1, {**N2, "converts": [["a"]]}], "nodes[1].converts[0]: must be a pair of formats"),
        ([N1, {**N2, "converts": [["a", 1]]}], "nodes[1].converts[0]: '1' is not a format"),
        (
            [N1, {**N2, "converts": [["a", "b"], ["c", "b"]]}],
            "nodes[1].converts[1]: 'b' is made twice at node 'N2'",
        ),
        ([{"node": "N1"}], "nodes[0].receives: is missing"),
    ],
)
def test_a_fault_in_a_plan_is_named(nodes: list[Any], message: str) -> None:
    with pytest.raises(BadInput) as raised:
        parse_plan({"nodes": nodes}, problem())
    assert str(raised.value).startswith(message)
