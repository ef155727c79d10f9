"""Tree files say who receives from whom, and only sound trees are read back."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

from distributary.content.documents import document_text, parse_document
from distributary.errors import BadInput
from distributary.fidelity.forest import OUTSIDE, ROOT, Forest
from distributary.fidelity.loss import loss
from distributary.fidelity.planner import StreamTrees
from distributary.fidelity.problem import FidelityProblem
from distributary.fidelity.tree_file import parse_trees, trees_document


def problem_of(*, slow: float = 1.0) -> FidelityProblem:
    """Return three servers, of which `a` wants both objects and the others one each."""
    return FidelityProblem(
        ("s", "a", "b", "c"),
        ("x", "y"),
        np.array([[1.0, 1.0], [1.0, 0.5], [0.5, 0.0], [0.0, 1.0]]),
        np.full(4, 0.01 * slow),
        np.full(4, 0.001 * slow),
        np.full((4, 4), 0.02),
    )


def result_of(problem: FidelityProblem, approach: str, parents: list[list[int]]) -> StreamTrees:
    forest = Forest(approach, np.array(parents, dtype=np.int64))
    return StreamTrees("by-hand", forest, loss(problem, forest), 0.5, None, problem=problem)


ONE = [[ROOT, 0, 1, 1]]
EACH = [[ROOT, 0, 1, OUTSIDE], [ROOT, 3, OUTSIDE, 0]]


def test_one_tree_is_written_with_all_objects_in_the_order_asked_for() -> None:
    problem = problem_of()
    document: Any = trees_document(problem, result_of(problem, "one-tree", ONE), list("cbas"))
    assert list(document) == ["method", "average_loss", "overloaded", "seconds", "trees"]
    assert document["method"] == "by-hand"
    assert document["average_loss"] > 0.0
    assert document["overloaded"] == []
    assert document["seconds"] == 0.5
    assert document["trees"] == [{"objects": ["x", "y"], "parents": {"c": "a", "b": "a", "a": "s"}}]
    assert list(document["trees"][0]["parents"]) == ["c", "b", "a"]


def test_a_tree_each_has_the_servers_that_want_its_object() -> None:
    problem = problem_of()
    document: Any = trees_document(problem, result_of(problem, "tree-each", EACH))
    assert document["trees"] == [
        {"objects": ["x"], "parents": {"a": "s", "b": "a"}},
        {"objects": ["y"], "parents": {"a": "c", "c": "s"}},
    ]


def test_the_loss_of_an_overloaded_tree_is_null_and_the_nodes_are_named() -> None:
    problem = problem_of(slow=100.0)
    document: Any = json.loads(
        document_text(trees_document(problem, result_of(problem, "one-tree", ONE)))
    )
    assert document["average_loss"] is None
    assert "a" in document["overloaded"]


def test_evaluations_are_written_when_they_were_counted() -> None:
    problem = problem_of()
    result = result_of(problem, "one-tree", ONE)
    counted = StreamTrees(
        result.method, result.forest, result.loss, result.seconds, 42, problem=result.problem
    )
    assert trees_document(problem, counted)["evaluations"] == 42


@pytest.mark.parametrize(("approach", "parents"), [("one-tree", ONE), ("tree-each", EACH)])
def test_trees_survive_their_file(approach: str, parents: list[list[int]]) -> None:
    problem = problem_of()
    text = document_text(trees_document(problem, result_of(problem, approach, parents)))
    again = parse_trees(parse_document(text), problem, approach=approach)
    assert again.approach == approach
    assert again.parents.tolist() == parents


def test_with_one_object_both_approaches_read_the_same_tree() -> None:
    problem = FidelityProblem(
        ("s", "a"), ("x",), np.ones((2, 1)), np.zeros(2), np.zeros(2), np.zeros((2, 2))
    )
    document = {"trees": [{"objects": ["x"], "parents": {"a": "s"}}]}
    for approach in ("one-tree", "tree-each"):
        forest = parse_trees(document, problem, approach=approach)
        assert (forest.approach, forest.parents.tolist()) == (approach, [[ROOT, 0]])


EACH_TREES = [
    {"objects": ["x"], "parents": {"a": "s", "b": "a"}},
    {"objects": ["y"], "parents": {"a": "c", "c": "s"}},
]


def damaged(*path: Any, value: Any) -> list[Any]:
    """Return the trees with another value at `path`, or without it where that is None."""
    trees: Any = copy.deepcopy(EACH_TREES)
    holder = trees
    for step in path[:-1]:
        holder = holder[step]
    if value is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return trees  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("trees", "complaint"),
    [
        ("x", "trees: must be a list, not the string 'x'"),
        ([3], "trees[0]: must be an object, not 3"),
        ([], "trees: has no tree for 'x'"),
        (EACH_TREES[:1], "trees: has no tree for 'y'"),
        ([EACH_TREES[0]] * 2, "trees[1].objects: 'x': there is an earlier tree for that"),
        (EACH_TREES * 2, "trees: has 4 entries; at most 2 are read"),
        (damaged(0, "objects", value=["z"]), "trees[0].objects[0]: 'z' is not an object"),
        (damaged(0, "objects", value=["x", "y"]), "trees[0].objects: has 2 objects, where"),
        (damaged(0, "objects", value=[]), "trees[0].objects: has 0 objects, where"),
        (damaged(0, "objects", value=None), "trees[0].objects: is missing"),
        (damaged(0, "parents", value=None), "trees[0].parents: is missing"),
        (damaged(0, "parents", value=[]), "trees[0].parents: must be an object, not a list"),
        (damaged(0, "parents", "q", value="s"), "trees[0].parents.q: 'q' is not a node"),
        (damaged(0, "parents", "a", value="q"), "trees[0].parents.a: 'q' is not a node"),
        (damaged(0, "parents", "a", value=1), "trees[0].parents.a: must be a string, not 1"),
        (damaged(0, "parents", "a", value=None), "trees[0].parents: has no entry for node 'a'"),
        (damaged(0, "parents", "s", value="a"), "trees[0].parents.s: is the source"),
        (damaged(0, "parents", "c", value="a"), "trees[0].parents.c: does not belong here"),
        (damaged(0, "parents", "a", value="c"), "trees[0].parents.a: parent 'c' wants nothing"),
        (damaged(0, "parents", "a", value="b"), "trees[0].parents: node 'a' is on a cycle"),
        (damaged(1, "parents", "c", value="c"), "trees[1].parents: node 'c' is on a cycle"),
    ],
)
def test_an_unsound_tree_is_refused_with_its_place(trees: Any, complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_trees({"trees": trees}, problem_of(), approach="tree-each")
    assert str(caught.value).startswith(complaint)


def test_trees_of_the_other_approach_are_refused_with_a_hint() -> None:
    with pytest.raises(BadInput, match=r"has 1 of 2 objects, where one tree.*hint: .*tree-each"):
        parse_trees({"trees": EACH_TREES}, problem_of(), approach="one-tree")
    whole = {"objects": ["x", "y"], "parents": {"a": "s", "b": "s", "c": "s"}}
    with pytest.raises(BadInput, match=r"has 2 objects, where every object.*hint: .*one-tree"):
        parse_trees({"trees": [whole]}, problem_of(), approach="tree-each")
