"""Whatever a file holds, reading it gives a problem or `BadInput`, and nothing is lost."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from distributary.content import AdaptationGraph
from distributary.content.calibrated_graph import graph_for
from distributary.content.documents import document_text, parse_document
from distributary.errors import BadInput
from distributary.placement.plan import NOT_MADE, Placement, Plan
from distributary.placement.plan_file import parse_plan, plan_document
from distributary.placement.problem import PlacementProblem
from distributary.placement.problem_file import parse_problem, problem_document
from distributary.topology import DisseminationTree, TreeNode

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
AMOUNTS = st.one_of(st.just(0.0), st.floats(1e-100, 1e15))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**320), 10**320),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["pdf", "jpeg", "N1", "N2"]),
)
KNOWN_KEYS = (
    *("formats", "conversions", "source_format", "tree", "name", "size", "from", "to", "cost"),
    *("node", "parent", "wants", "link_cost", "bandwidth", "nodes", "receives", "converts"),
)
KEYS = st.one_of(
    st.text(max_size=5),
    st.sampled_from(KNOWN_KEYS),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=25,
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


def same(one: PlacementProblem, other: PlacementProblem) -> bool:
    return (
        one.graph.names == other.graph.names
        and one.tree.names == other.tree.names
        and (one.alpha, one.beta) == (other.alpha, other.beta)
        and all(
            np.array_equal(a, b)
            for a, b in [
                (one.graph.sizes, other.graph.sizes),
                (one.graph.costs, other.graph.costs),
                (one.tree.parents, other.tree.parents),
                (one.tree.link_costs, other.tree.link_costs),
                (one.tree.node_costs, other.tree.node_costs),
                (one.tree.bandwidths, other.tree.bandwidths),
                (one.wants, other.wants),
                (one.held, other.held),
            ]
        )
    )


@given(problems(), st.randoms(use_true_random=False))
def test_a_problem_survives_its_file(problem: PlacementProblem, random: Any) -> None:
    """Through document, text and document; in whatever order the nodes are written."""
    order = list(problem.tree.names)
    random.shuffle(order)
    text = document_text(problem_document(problem, node_order=order))
    file = parse_problem(parse_document(text))
    assert same(file.problem, problem)
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
    placement = Placement("exact", plan, 1.0, 2.0, 3.0, 2.5, False, 0.1)
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


def complaint(read: Callable[[], object]) -> str:
    """Return what reading complains about, if anything; any other error escapes."""
    try:
        read()
    except BadInput as error:
        return str(error)
    return ""


@given(JSON)
def test_an_arbitrary_document_is_refused_politely(document: Any) -> None:
    assert complaint(lambda: parse_problem(document)).count("\n") == 0
    assert complaint(lambda: graph_for(document, 1_000_000)).count("\n") == 0


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60), JSON.map(json.dumps)))
def test_arbitrary_bytes_are_refused_politely(data: bytes | str) -> None:
    assert complaint(lambda: parse_problem(parse_document(data))).count("\n") == 0


def _steps(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every field and entry in a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        found
        for step, entry in inside
        for found in [(*path, step)]
        + (_steps(entry, (*path, step)) if isinstance(entry, dict | list) else [])
    ]


@given(problems(), st.data())
def test_a_damaged_problem_is_read_or_refused_politely(
    problem: PlacementProblem, data: st.DataObject
) -> None:
    """Up to three fields or entries replaced, removed, repeated or swapped."""
    document: Any = copy.deepcopy(problem_document(problem))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(_steps(document)))
        holder = document
        for step in path[:-1]:
            holder = holder[step]
        damage = data.draw(st.sampled_from(["replace", "remove", "repeat", "copy"]))
        if damage == "replace":
            holder[path[-1]] = data.draw(JSON)
        elif damage == "remove":
            del holder[path[-1]]
        elif damage == "repeat" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[path[-1]]))
        else:
            other = document
            for step in data.draw(st.sampled_from(_steps(document))):
                other = other[step]
            holder[path[-1]] = copy.deepcopy(other)
        if not document:
            break
    assert complaint(lambda: parse_problem(document)).count("\n") == 0
    assert complaint(lambda: parse_plan(document, problem)).count("\n") == 0
