"""Plans, trees and wirings by name: what they answer is what their arrays say."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any, cast

import numpy as np
import pytest

from distributary import fidelity, placement, wiring
from distributary.content import AdaptationGraph
from distributary.drawing import embedded
from distributary.errors import BadInput, MissingPackage, WrongType
from distributary.fidelity.tree_file import trees_document
from distributary.placement import PlacementProblem, place
from distributary.placement.plan_file import plan_document
from distributary.topology import DisseminationTree, TreeNode
from distributary.wiring.wiring_file import wiring_document

GRAPH = AdaptationGraph.from_conversions(
    [("pdf", 5.0), ("jpeg", 2.0), ("text", 0.5)], [("pdf", "jpeg", 3.0), ("pdf", "text", 1.0)]
)
TREE = DisseminationTree.from_nodes(
    [TreeNode("N1", None), TreeNode("N2", "N1"), TreeNode("N3", "N1")]
)
PLAN = place(
    PlacementProblem.from_wishes(GRAPH, TREE, {"N2": ["jpeg"], "N3": "text"}, source="pdf")
)
STREAM = fidelity.generate_problem(seed=7, servers=6, objects=3, routers=40)
TREES = {
    approach: fidelity.build_trees(STREAM, method="greedy", approach=approach)
    for approach in fidelity.APPROACHES
}
WIRING = wiring.wire(wiring.generate_problem(seed=7, users=12, brokers=3), method="packing")
RESULTS: dict[str, Any] = {"plan": PLAN, **TREES, "wiring": WIRING}


def test_wishes_by_name_are_the_matrix() -> None:
    problem = PLAN.problem
    wanted = {(TREE.names[v], GRAPH.names[k]) for v, k in np.argwhere(problem.wants)}
    assert wanted == {("N2", "jpeg"), ("N3", "text")}
    assert [GRAPH.names[k] for k in np.flatnonzero(problem.held)] == ["pdf"]
    both = PlacementProblem.from_wishes(GRAPH, TREE, {}, source=("pdf", "text"), beta=2.0)
    assert both.held.sum() == 2
    assert both.beta == 2.0


@pytest.mark.parametrize(
    ("wishes", "source", "said"),
    [
        ({"N2": ["jpg"]}, "pdf", "wishes of 'N2': 'jpg' is not a format; hint: did you mean"),
        ({"N9": ["jpeg"]}, "pdf", "wishes: 'N9' is not a node of the tree"),
        ({"N2": ["jpeg"]}, "doc", "source: 'doc' is not a format"),
        ({"N2": ["pdf"]}, "jpeg", "cannot be made from the source format"),
        ({}, [], "held: has no format"),
    ],
)
def test_names_that_mean_nothing_are_named(wishes: Any, source: Any, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        PlacementProblem.from_wishes(GRAPH, TREE, wishes, source=source)


@pytest.mark.parametrize("wishes", [["N2"], {"N2": 3}, {"N2": [3]}, None])
def test_wishes_of_other_types_are_refused(wishes: Any) -> None:
    with pytest.raises(WrongType, match="wishes"):
        PlacementProblem.from_wishes(GRAPH, TREE, wishes, source="pdf")


def test_a_plan_says_what_happens_at_a_broker() -> None:
    assert PLAN.at("N1").converts == (("pdf", "jpeg"), ("pdf", "text"))
    assert PLAN.at("N2").receives == ("jpeg",)
    assert PLAN.at("N3").wants == ("text",)
    frame = PLAN.to_frame()
    assert frame["transmission_cost"].sum() + frame["conversion_cost"].sum() == PLAN.total_cost
    assert frame["parent"].tolist() == [None, "N1", "N1"]


def test_costs_in_a_frame_are_weighted_and_add_up() -> None:
    problem = replace(placement.generate_problem("map", seed=3, brokers=9), alpha=0.5, beta=3.0)
    plan = place(problem)
    frame = plan.to_frame("arrow").to_pydict()
    total = sum(frame["transmission_cost"]) + sum(frame["conversion_cost"])
    assert total == pytest.approx(plan.total_cost)


def test_trees_say_where_a_server_stands() -> None:
    one = TREES["one-tree"]
    for name in STREAM.names[1:]:
        here = one.at(name)
        assert here.parent is not None
        assert name in one.at(here.parent).children
    assert one.at("source").parent is None
    each = TREES["tree-each"]
    frame = each.to_frame("polars")
    assert frame.shape[0] == int(STREAM.wanted.sum())
    row = frame.row(0, named=True)
    here = each.at(row["server"], row["object"])
    assert (here.parent, here.delay_s) == (row["parent"], row["delay_s"])
    with pytest.raises(BadInput, match="every object has a tree of its own"):
        each.at("n1")


def test_a_wiring_says_who_is_where() -> None:
    assert sum(len(WIRING.at(broker)) for broker in WIRING.problem.brokers) == 12
    for broker in WIRING.problem.brokers:
        assert all(WIRING.broker(user) == broker for user in WIRING.at(broker))
    assert WIRING.to_frame()["access_cost"].sum() == pytest.approx(WIRING.cost.access)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: PLAN.at("N9"), "node: 'N9' is not"),
        (lambda: PLAN.at(cast(Any, 2)), "node: must be a string"),
        (lambda: TREES["one-tree"].at("x"), "node: 'x' is not"),
        (lambda: TREES["tree-each"].at("n1", "x"), "object: 'x' is not"),
        (lambda: TREES["tree-each"].at("n1", cast(Any, 3)), "object: must be a string or None"),
        (lambda: WIRING.at("x"), "broker: 'x' is not"),
        (lambda: WIRING.broker("x"), "user: 'x' is not"),
        (lambda: PLAN.to_frame("excel"), "library: 'excel' is not one of pandas, polars, arrow"),
    ],
)
def test_whoever_is_not_there_is_named(ask: Callable[[], object], said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        ask()


def test_what_is_written_is_what_the_commands_write() -> None:
    assert PLAN.to_dict() == plan_document(PLAN.problem, PLAN)
    for trees in TREES.values():
        assert trees.to_dict() == trees_document(STREAM, trees)
    assert WIRING.to_dict() == wiring_document(WIRING.problem, WIRING)


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_every_frame_has_the_same_rows(name: str, library: str) -> None:
    rows = RESULTS[name].to_frame("arrow").to_pylist()
    frame = RESULTS[name].to_frame(library)
    found = {
        "pandas": lambda: frame.to_dict("records"),
        "polars": lambda: frame.to_dicts(),
        "arrow": lambda: frame.to_pylist(),
    }[library]()
    assert found == rows
    assert len(rows) > 2


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_missing_library_says_how_to_install_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    library = package.removeprefix("py")
    with pytest.raises(MissingPackage, match=rf'pip install "distributary\[{library}\]"'):
        PLAN.to_frame(library)


@pytest.mark.parametrize("name", RESULTS)
def test_a_notebook_shows_the_picture(name: str) -> None:
    html = RESULTS[name]._repr_html_()
    found = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert found is not None
    picture = base64.b64decode(found[1]).decode()
    assert picture.startswith("<?xml")
    assert RESULTS[name].method in picture


def test_a_large_tree_is_told_and_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "DRAWN_MAX", 2)
    assert PLAN._repr_html_().startswith("<pre>Placement(method=")
    assert TREES["one-tree"]._repr_html_().startswith("<pre>StreamTrees(")


@pytest.mark.parametrize(
    "package", ["content", "topology", "media", "simulator", "pipeline", "client"]
)
def test_names_on_demand_are_those_that_are_listed(package: str) -> None:
    module = import_module(f"distributary.{package}")
    assert dir(module) == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_results_load_no_library_of_frames_before_it_is_asked_for() -> None:
    code = (
        "import sys\n"
        "import distributary.placement, distributary.fidelity, distributary.wiring\n"
        "import distributary.media, distributary.pipeline, distributary.simulator\n"
        "print([name for name in ('pandas', 'polars', 'pyarrow') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
