"""Whatever a file of a stream holds, reading it gives a problem or `BadInput`."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.documents import NAMES, complaint, damage, json_values
from tests.sameness import same_stream
from tests.strategies_fidelity import fidelity_problems, problems_with_forests

from distributary.content.documents import document_text, parse_document
from distributary.fidelity.forest import Forest, check
from distributary.fidelity.loss import loss
from distributary.fidelity.planner import StreamTrees
from distributary.fidelity.problem import FidelityProblem
from distributary.fidelity.problem_file import parse_problem, problem_document
from distributary.fidelity.tree_file import parse_trees, trees_document

JSON = json_values(
    words=("s", "n001", "n002", "o0", "o000", "x.npy", "../x.npy"),
    keys=(
        *("source", "objects", "nodes", "delays", "adaptation", "node", "filter_time"),
        *("send_time", "rates", "collect_time", "collect_period", "decide_time"),
        *("decide_period", "trees", "parents", "s", "n001", "o0", "o000"),
    ),
)


def renamed(problem: FidelityProblem, names: list[str], objects: list[str]) -> FidelityProblem:
    """Return the problem under other names, which may put it in another order."""
    return FidelityProblem.in_order(
        names=names[: problem.node_count],
        source=names[0],
        objects=objects[: problem.object_count],
        rates=problem.rates,
        filter_times=problem.filter_times,
        send_times=problem.send_times,
        delays=problem.delays,
        adaptation=problem.adaptation,
    )


@given(
    fidelity_problems(servers_max=5),
    st.lists(NAMES, min_size=6, max_size=6, unique=True),
    st.lists(NAMES, min_size=4, max_size=4, unique=True),
    st.randoms(use_true_random=False),
)
def test_a_problem_survives_its_file(
    plain: FidelityProblem, names: list[str], objects: list[str], random: Any
) -> None:
    """Through document, text and document; whatever the names, in whatever order."""
    problem = renamed(plain, names, objects)
    document: Any = problem_document(problem)
    order = list(range(problem.node_count))
    random.shuffle(order)
    document["nodes"] = [document["nodes"][i] for i in order]
    document["delays"] = problem.delays[np.ix_(order, order)].tolist()
    file = parse_problem(parse_document(document_text(document)))
    assert same_stream(file.problem, problem)
    assert file.node_order == tuple(problem.names[i] for i in order)
    assert file.warnings == ()


@given(problems_with_forests(servers_max=6), st.randoms(use_true_random=False))
def test_trees_survive_their_file(drawn: tuple[FidelityProblem, Forest], random: Any) -> None:
    problem, forest = drawn
    order = list(problem.names)
    random.shuffle(order)
    result = StreamTrees("random", forest, loss(problem, forest), 0.1, None, problem=problem)
    text = document_text(trees_document(problem, result, order))
    again = parse_trees(parse_document(text), problem, approach=forest.approach)
    assert np.array_equal(again.parents, forest.parents)


@given(JSON)
def test_an_arbitrary_document_is_refused_politely(document: Any) -> None:
    assert complaint(lambda: parse_problem(document)).count("\n") == 0


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60), JSON.map(json.dumps)))
def test_arbitrary_bytes_are_refused_politely(data: bytes | str) -> None:
    assert complaint(lambda: parse_problem(parse_document(data))).count("\n") == 0


@given(fidelity_problems(servers_max=4, objects_max=3), st.data())
def test_a_damaged_problem_is_read_or_refused_politely(
    problem: FidelityProblem, data: st.DataObject
) -> None:
    document: Any = copy.deepcopy(problem_document(problem))
    damage(document, data, JSON)
    assert complaint(lambda: parse_problem(document)).count("\n") == 0


@given(problems_with_forests(servers_max=4, objects_max=3), st.data())
def test_damaged_trees_are_sound_or_refused_politely(
    drawn: tuple[FidelityProblem, Forest], data: st.DataObject
) -> None:
    problem, forest = drawn
    result = StreamTrees("random", forest, loss(problem, forest), 0.1, None, problem=problem)
    document: Any = copy.deepcopy(trees_document(problem, result))
    damage(document, data, JSON)
    approach = data.draw(st.sampled_from([forest.approach, "one-tree", "tree-each"]))

    def read() -> None:
        check(problem, parse_trees(document, problem, approach=approach))

    assert complaint(read).count("\n") == 0
