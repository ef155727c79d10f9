"""Problem files: what they say is what is planned, and what they do not say is ignored aloud."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distributary.content import AdaptationGraph
from distributary.errors import BadInput
from distributary.placement import problem_file
from distributary.placement.problem import PlacementProblem
from distributary.placement.problem_file import parse_problem, problem_document, read_problem
from distributary.topology import DisseminationTree, TreeNode


def sample() -> dict[str, Any]:
    return {
        "formats": [{"name": "pdf", "size": 5.0}, {"name": "jpeg", "size": 2}],
        "conversions": [{"from": "pdf", "to": "jpeg", "cost": 3.0}],
        "source_format": "pdf",
        "alpha": 2.0,
        "tree": [
            {"node": "N2", "parent": "N1", "wants": ["jpeg"], "link_cost": 4.0},
            {"node": "N3", "parent": "N2", "wants": ["pdf", "jpeg"], "bandwidth": 8},
            {"node": "N1", "parent": None, "wants": [], "node_cost": 0.5},
        ],
    }


def test_a_problem_is_what_its_file_says() -> None:
    problem = parse_problem(sample()).problem
    assert problem.graph.names == ("jpeg", "pdf")
    assert problem.graph.sizes.tolist() == [2.0, 5.0]
    assert problem.graph.costs[1, 0] == 3.0
    assert problem.graph.conversion_count == 1
    assert problem.held.tolist() == [False, True]
    assert problem.tree.names == ("N1", "N2", "N3")
    assert problem.tree.parents.tolist() == [-1, 0, 1]
    assert problem.wants.tolist() == [[False, False], [True, False], [True, True]]
    assert problem.alpha == 2.0


def test_what_a_file_leaves_out_is_one() -> None:
    problem = parse_problem(sample()).problem
    assert problem.beta == 1.0
    assert problem.tree.link_costs.tolist() == [1.0, 4.0, 1.0]
    assert problem.tree.node_costs.tolist() == [0.5, 1.0, 1.0]
    assert problem.tree.bandwidths.tolist() == [1.0, 0.25, 8.0]


def test_the_order_of_the_file_is_kept_for_the_plan() -> None:
    assert parse_problem(sample()).node_order == ("N2", "N3", "N1")


def test_stray_keys_are_ignored_and_reported() -> None:
    document = sample()
    document["comment"] = "draft"
    document["tree"][1]["linkcost"] = 7
    document["formats"][0]["colour"] = "red"
    file = parse_problem(document)
    assert file.problem.tree.link_costs.tolist() == [1.0, 4.0, 1.0]
    assert file.warnings == (
        "comment: is not a known key, and is ignored",
        "formats[0].colour: is not a known key, and is ignored",
        "tree[1].linkcost: is not a known key, and is ignored",
    )
    assert parse_problem(sample()).warnings == ()


def test_one_node_is_a_tree() -> None:
    document = sample()
    document["tree"] = [{"node": "N1", "parent": None, "wants": ["jpeg"]}]
    assert parse_problem(document).problem.node_count == 1


def test_a_deep_tree_is_read_without_recursion() -> None:
    document = sample()
    document["tree"] = [
        {"node": f"N{v}", "parent": f"N{v - 1}" if v else None, "wants": []} for v in range(5000)
    ]
    assert parse_problem(document).problem.tree.depths[-1] == 4999


def test_a_long_cycle_is_named_in_a_short_message() -> None:
    document = sample()
    document["tree"] = [
        {"node": f"N{v}", "parent": f"N{(v + 1) % 5000}", "wants": []} for v in range(5000)
    ]
    with pytest.raises(BadInput) as raised:
        parse_problem(document)
    assert raised.value.place == "tree[0].parent"
    assert raised.value.problem == (
        "node 'N0' is on a cycle: 'N0' below 'N1' below 'N2' below 'N3' below ..."
    )


def test_a_cycle_beside_the_tree_is_named_by_a_node_on_it() -> None:
    """N9 leads into the cycle but is not on it."""
    document = sample()
    document["tree"][:0] = [
        {"node": "N9", "parent": "A", "wants": []},
        {"node": "A", "parent": "B", "wants": []},
        {"node": "B", "parent": "A", "wants": []},
    ]
    with pytest.raises(BadInput, match=r"^tree\[1\]\.parent: node 'A' is on a cycle"):
        parse_problem(document)


def test_nodes_times_formats_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_file, "CELLS_MAX", 5)
    with pytest.raises(BadInput, match=r"^tree: has 3 nodes for 2 formats; .* at most 5$"):
        parse_problem(sample())


def test_nodes_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_file, "NODES_MAX", 2)
    with pytest.raises(BadInput, match=r"^tree: has 3 entries; at most 2 are read$"):
        parse_problem(sample())


def test_formats_may_come_from_a_graph() -> None:
    graph = AdaptationGraph.from_conversions([("pdf", 1.0), ("jpeg", 0.5)], [("pdf", "jpeg", 0.2)])
    document = sample()
    del document["formats"], document["conversions"]
    assert parse_problem(document, graph=graph).problem.graph is graph
    for key in ("formats", "conversions"):
        with pytest.raises(BadInput, match=f"^{key}: is given both here and by"):
            parse_problem({**document, key: []}, graph=graph)


def test_a_document_reads_back_as_the_same_problem(tmp_path: Path) -> None:
    file = parse_problem(sample())
    document = problem_document(file.problem, node_order=file.node_order)
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    again = read_problem(path)
    assert again.node_order == file.node_order
    assert problem_document(again.problem, node_order=again.node_order) == document


def test_a_document_leaves_out_what_is_usual() -> None:
    document: Any = problem_document(parse_problem(sample()).problem)
    assert document["tree"] == [
        {"node": "N1", "parent": None, "wants": [], "node_cost": 0.5},
        {"node": "N2", "parent": "N1", "wants": ["jpeg"], "link_cost": 4.0},
        {"node": "N3", "parent": "N2", "wants": ["jpeg", "pdf"], "bandwidth": 8.0},
    ]


def test_a_free_link_is_written_and_read() -> None:
    document = sample()
    document["tree"][0]["link_cost"] = 0
    problem = parse_problem(document).problem
    written: Any = problem_document(problem)
    assert written["tree"][1] == {
        "node": "N2",
        "parent": "N1",
        "wants": ["jpeg"],
        "link_cost": 0.0,
    }
    assert np.isinf(parse_problem(written).problem.tree.bandwidths[1])


def test_a_problem_with_several_formats_in_hand_has_no_file() -> None:
    graph = AdaptationGraph.from_conversions([("pdf", 1.0), ("jpeg", 0.5)], [])
    tree = DisseminationTree.from_nodes([TreeNode("N1", None)])
    problem = PlacementProblem(
        graph, tree, np.zeros((1, 2), dtype=np.bool_), np.ones(2, dtype=np.bool_)
    )
    with pytest.raises(BadInput, match=r"^held: a problem file has exactly one source format$"):
        problem_document(problem)
