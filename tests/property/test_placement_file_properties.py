"""Whatever a file holds, reading it gives a problem or `BadInput`, and nothing is lost."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.documents import NAMES, complaint, damage, json_values
from tests.sameness import same_placement

from distributary.content import AdaptationGraph
from distributary.content.calibrated_graph import graph_for
from distributary.content.documents import document_text, parse_document
from distributary.placement.plan import NOT_MADE, Placement, Plan
from distributary.placement.plan_file import parse_plan, plan_document
from distributary.placement.problem import PlacementProblem
from distributary.placement.problem_file import parse_problem, problem_document
from distributary.topology import DisseminationTree, TreeNode

AMOUNTS = st.one_of(st.just(0.0), st.floats(1e-100, 1e15))
JSON = json_values(
    words=("pdf", "jpeg", "N1", "N2"),
    keys=(
        *("formats", "conversions", "source_format", "tree", "name", "size", "from", "to", "cost"),
        *("node", "parent", "wants", "link_cost", "bandwidth", "nodes", "receives", "converts"),
    ),
)


@st.composite
def problems(draw: st.DrawFn) -> PlacementProblem:
    """Return any problem that a file can hold."""
    formats = draw(st.lists(st.tuples(NAMES, AMOUNTS), min_size=1, max_size=5, unique_by=_first))
    names = [name for name, _ in formats]
    pairs = [(a, b) for a in names for b in names if a != b]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    graph = AdaptationGraph.from_conversions(formats, [(a, b, draw(AMOUNTS)) for a, b in chosen])
    brokers = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    bandwidths = st.one_of(st.none(), st.floats(1e-100, 1e15))
    tree = DisseminationTree.from_nodes(
        TreeNode(
            broker,
            draw(st.sampled_from(brokers[:v])) if v else None,
            draw(AMOUNTS),
            draw(AMOUNTS),
            draw(bandwidths),
        )
        for v, broker in enumerate(brokers)
    )
    source = draw(st.integers(0, len(names) - 1))
    held = np.zeros(len(names), dtype=np.bool_)
    held[source] = True
    wants = np.array(
        [[draw(st.booleans()) and bool(m) for m in graph.makeable[source]] for _ in brokers]
    )
    return PlacementProblem(graph, tree, wants, held, draw(AMOUNTS), draw(AMOUNTS))


def _first(pair: tuple[str, float]) -> str:
    return pair[0]


@given(problems(), st.randoms(use_true_random=False))
def test_a_problem_survives_its_file(problem: PlacementProblem, random: Any) -> None:
    """Through document, text and document; in whatever order the nodes are written."""
    order = list(problem.tree.names)
    random.shuffle(order)
    text = document_text(problem_document(problem, node_order=order))
    file = parse_problem(parse_document(text))
    assert same_placement(file.problem, problem)
    assert file.node_order == tuple(order)
    assert file.warnings == ()


@given(problems(), st.data())
def test_a_plan_survives_its_file(problem: PlacementProblem, data: st.DataObject) -> None:
    """Any plan without circles, whether it serves anybody or not."""
    plan = Plan.empty(problem)
    for v in range(problem.node_count):
        in_hand = np.flatnonzero(problem.held).tolist() if v == 0 else []
        for k in data.draw(st.permutations(range(problem.format_count))):
            fate = data.draw(st.sampled_from(["absent", "received", "made"]))
            if fate == "received" and v > 0:
                plan.receives[v, k] = True
                in_hand.append(k)
            elif fate == "made" and in_hand and k not in in_hand:
                plan.made_from[v, k] = data.draw(st.sampled_from(in_hand))
                in_hand.append(k)
    placement = Placement("exact", plan, 1.0, 2.0, 3.0, 2.5, False, 0.1, problem=problem)
    document: Any = parse_document(document_text(plan_document(problem, placement)))
    again = parse_plan(document, problem)
    assert np.array_equal(again.receives, plan.receives)
    assert np.array_equal(again.made_from, plan.made_from)
    for v, entry in enumerate(document["nodes"]):
        ready = set(entry["receives"])
        if v == 0:
            ready |= {problem.graph.names[k] for k in np.flatnonzero(problem.held)}
        for origin, target in entry["converts"]:
            assert origin in ready
            ready.add(target)
        assert len(entry["converts"]) == np.count_nonzero(plan.made_from[v] != NOT_MADE)


@given(JSON)
def test_an_arbitrary_document_is_refused_politely(document: Any) -> None:
    assert complaint(lambda: parse_problem(document)).count("\n") == 0
    assert complaint(lambda: graph_for(document, 1_000_000)).count("\n") == 0


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60), JSON.map(json.dumps)))
def test_arbitrary_bytes_are_refused_politely(data: bytes | str) -> None:
    assert complaint(lambda: parse_problem(parse_document(data))).count("\n") == 0


@given(problems(), st.data())
def test_a_damaged_problem_is_read_or_refused_politely(
    problem: PlacementProblem, data: st.DataObject
) -> None:
    """Up to three fields or entries replaced, removed, repeated or swapped."""
    document: Any = copy.deepcopy(problem_document(problem))
    damage(document, data, JSON)
    assert complaint(lambda: parse_problem(document)).count("\n") == 0
    assert complaint(lambda: parse_plan(document, problem)).count("\n") == 0
