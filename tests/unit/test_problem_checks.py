"""No problem exists with numbers, shapes or names that cannot be: its constructor refuses them."""

# What these tests do is what a type checker would not let pass.
# mypy: disable-error-code="arg-type, list-item, call-arg, type-var"

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.arrays import check_amounts
from distributary.content import AdaptationGraph
from distributary.errors import BadInput, WrongType
from distributary.fidelity import Adaptation, FidelityProblem
from distributary.placement import PlacementProblem
from distributary.topology import DisseminationTree, TreeNode
from distributary.wiring import WiringProblem

INF, NAN = math.inf, math.nan
BAD = (-1.0, NAN, INF, -INF, 1e300, -5e-324)

GRAPH = AdaptationGraph.from_conversions([("pdf", 5.0), ("jpeg", 2.0)], [("pdf", "jpeg", 3.0)])
TREE = DisseminationTree.from_nodes([TreeNode("N1", None), TreeNode("N2", "N1")])
PLACEMENT = PlacementProblem(
    GRAPH, TREE, np.array([[False, False], [True, False]]), np.array([False, True])
)
STREAM = FidelityProblem(
    ("s", "n1"),
    ("x",),
    np.ones((2, 1)),
    np.full(2, 0.1),
    np.full(2, 0.2),
    np.array([[0.0, 1.0], [1.0, 0.0]]),
)
USERS: dict[str, Any] = {
    "users": ["u2", "u1"],
    "brokers": ["b2", "b1"],
    "publishes": np.array([[1.0, 0.0], [0.0, 2.0]]),
    "subscribes": np.array([[False, True], [True, False]]),
    "access_prices": np.ones((2, 2)),
    "core_prices": np.array([[0.0, 3.0], [3.0, 0.0]]),
    "capacities": np.array([100.0, INF]),
}
WIRING = WiringProblem.in_order(**USERS)


def changed(array: Any, at: Any, value: float) -> Any:
    """Return a copy in which one entry is another."""
    copy = array.copy()
    copy[at] = value
    return copy


NUMBERS: dict[str, tuple[Callable[[float], object], str]] = {
    "size": (
        lambda x: replace(GRAPH, sizes=changed(GRAPH.sizes, 1, x)),
        "formats: 'pdf': size: must be",
    ),
    "conversion": (
        lambda x: replace(GRAPH, costs=changed(GRAPH.costs, (1, 0), x)),
        "conversions: 'pdf' to 'jpeg': cost: must be",
    ),
    "given size": (
        lambda x: AdaptationGraph.from_conversions([("b", 1), ("a", x)], []),
        "formats[1].size: must be",
    ),
    "given conversion": (
        lambda x: AdaptationGraph.from_conversions([("b", 1), ("a", 1)], [("b", "a", x)]),
        "conversions[0].cost: must be",
    ),
    "link": (
        lambda x: replace(TREE, link_costs=np.array([1.0, x])),
        "tree: node 'N2': link_cost: must be",
    ),
    "node": (
        lambda x: replace(TREE, node_costs=np.array([1.0, x])),
        "tree: node 'N2': node_cost: must be",
    ),
    "given link": (
        lambda x: DisseminationTree.from_nodes([TreeNode("b", "a", x), TreeNode("a", None)]),
        "tree[0].link_cost: must be",
    ),
    "given node": (
        lambda x: DisseminationTree.from_nodes([TreeNode("b", "a"), TreeNode("a", None, 1.0, x)]),
        "tree[1].node_cost: must be",
    ),
    "given bandwidth": (
        lambda x: DisseminationTree.from_nodes([TreeNode("a", None, bandwidth=x)]),
        "tree[0].bandwidth: must be",
    ),
    "alpha": (lambda x: replace(PLACEMENT, alpha=x), "alpha: must be"),
    "beta": (lambda x: replace(PLACEMENT, beta=x), "beta: must be"),
    "rate": (
        lambda x: replace(STREAM, rates=np.array([[1.0], [x]])),
        "rate of node 'n1' for 'x': must be",
    ),
    "filter": (
        lambda x: replace(STREAM, filter_times=np.array([1.0, x])),
        "filter_time of node 'n1': must be",
    ),
    "send": (
        lambda x: replace(STREAM, send_times=np.array([x, 1.0])),
        "send_time of node 's': must be",
    ),
    "delay": (
        lambda x: replace(STREAM, delays=np.array([[0.0, x], [1.0, 0.0]])),
        "delay from 's' to 'n1': must be",
    ),
    "adaptation": (lambda x: Adaptation(x, 1.0, 1.0, 1.0), "collect_time: must be"),
    "period": (lambda x: Adaptation(1.0, 1.0, 1.0, x), "decide_period: must be"),
    "published": (
        lambda x: wiring(publishes=changed(USERS["publishes"], (0, 0), x)),
        "rate of 'u2' on channel 0: must be",
    ),
    "access": (
        lambda x: wiring(access_prices=changed(USERS["access_prices"], (0, 1), x)),
        "access price of 'u2' at 'b1': must be",
    ),
    "core": (
        lambda x: wiring(core_prices=np.array([[0.0, x], [x, 0.0]])),
        "core price of 'b2' to 'b1': must be",
    ),
}


def wiring(**changes: Any) -> WiringProblem:
    return WiringProblem.in_order(**{**USERS, **changes})


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("case", NUMBERS)
def test_a_number_that_cannot_be_is_refused_where_it_is(case: str, value: float) -> None:
    make, place = NUMBERS[case]
    if case == "conversion" and value == INF:
        return  # A conversion that is impossible.
    with pytest.raises(BadInput) as caught:
        make(value)
    assert str(caught.value).startswith(place)
    assert f"{value:g}" in str(caught.value)


@pytest.mark.parametrize("value", [-1.0, NAN, -INF, 1e300])
def test_a_capacity_may_be_infinite_and_nothing_else_odd(value: float) -> None:
    assert WIRING.capacities.tolist() == [INF, 100.0]
    with pytest.raises(BadInput, match=r"^capacity of broker 'b1': must be"):
        wiring(capacities=np.array([INF, value]))


@pytest.mark.parametrize("value", [0.0, -1.0, NAN, -INF])
def test_a_bandwidth_is_positive(value: float) -> None:
    assert replace(TREE, bandwidths=np.array([1.0, INF])).bandwidths[1] == INF
    with pytest.raises(BadInput, match=r"^tree: node 'N2': bandwidth: must be greater than 0"):
        replace(TREE, bandwidths=np.array([1.0, value]))


OTHERS: dict[str, tuple[Callable[[], object], str]] = {
    "sizes": (lambda: replace(GRAPH, sizes=np.ones(3)), "sizes: is 3, and must be 2"),
    "costs": (lambda: replace(GRAPH, costs=np.ones((2, 3))), "costs: is 2 x 3, and must be 2 x 2"),
    "diagonal": (lambda: replace(GRAPH, costs=np.ones((2, 2))), "costs: must be infinite on"),
    "whole sizes": (
        lambda: replace(GRAPH, sizes=np.ones(2, dtype=np.int64)),
        "sizes: must be an array of float64, not of int64; hint: sizes.astype(numpy.float64)",
    ),
    "list": (lambda: replace(GRAPH, sizes=[1.0, 2.0]), "sizes: must be an array, not a list"),
    "names": (lambda: replace(GRAPH, names=("a", "a")), "names: 'a' is given twice"),
    "name": (lambda: replace(GRAPH, names=("a", 1)), "names[1]: must be a string, not an int"),
    "given twice": (
        lambda: AdaptationGraph.from_conversions([("a", 1), ("b", 1), ("a", 2)], []),
        "formats[2].name: format 'a' is given twice",
    ),
    "parents": (
        lambda: replace(TREE, parents=np.array([-1, 1])),
        "parents: must be -1 for the first node, and an earlier node",
    ),
    "parent": (lambda: replace(TREE, parents=np.array([-1, -2])), "parents: must be -1 for the"),
    "second root": (
        lambda: DisseminationTree.from_nodes([TreeNode("a", None), TreeNode("b", None)]),
        "tree[1].parent: node 'b' is a second root beside 'a'",
    ),
    "cycle": (
        lambda: DisseminationTree.from_nodes(
            [TreeNode("a", None), TreeNode("b", "c"), TreeNode("c", "b")]
        ),
        "tree[1].parent: node 'b' is on a cycle: 'b' below 'c' below 'b'",
    ),
    "no root": (
        lambda: DisseminationTree.from_nodes([TreeNode("a", "a")]),
        "tree[0].parent: node 'a' is on a cycle: 'a' below 'a'",
    ),
    "wants": (
        lambda: replace(PLACEMENT, wants=np.zeros((2, 3), dtype=np.bool_)),
        "wants: is 2 x 3, and must be 2 x 2",
    ),
    "held": (
        lambda: replace(PLACEMENT, held=np.zeros(2, dtype=np.bool_)),
        "held: has no format",
    ),
    "held numbers": (lambda: replace(PLACEMENT, held=np.ones(2)), "held: must be an array of bool"),
    "graph": (lambda: replace(PLACEMENT, graph=None), "graph: must be an AdaptationGraph"),
    "delays": (
        lambda: replace(STREAM, delays=np.zeros((2, 3))),
        "delays: is 2 x 3, and must be 2 x 2",
    ),
    "objects": (lambda: replace(STREAM, objects=("x", "x")), "objects: 'x' is given twice"),
    "no source": (
        lambda: FidelityProblem.in_order(
            names=["a"],
            source="b",
            objects=[],
            rates=np.ones((1, 0)),
            filter_times=np.ones(1),
            send_times=np.ones(1),
            delays=np.zeros((1, 1)),
        ),
        "source: 'b' is not a node",
    ),
    "access": (
        lambda: wiring(access_prices=np.ones((2, 3))),
        "access_prices: is 2 x 3, and must be 2 x 2",
    ),
    "subscribes": (
        lambda: wiring(subscribes=np.ones((2, 3), dtype=np.bool_)),
        "subscribes: is 2 x 3, and must be 2 x 2",
    ),
    "texts": (lambda: wiring(publishes=[["1", "2"]] * 2), "publishes: must be an array of float64"),
    "users": (lambda: wiring(users=["u", "u"]), "users: 'u' is given twice"),
    "asymmetric": (
        lambda: wiring(core_prices=np.array([[0.0, 3.0], [4.0, 0.0]])),
        "core price of 'b2' to 'b1': is 3, but the way back, core price of 'b1' to 'b2', is 4",
    ),
    "own price": (
        lambda: wiring(core_prices=np.array([[0.0, 3.0], [3.0, 1.0]])),
        "core price of 'b1' to 'b1': must be 0, not 1",
    ),
    "user": (lambda: rows(published=(np.array([2]), np.array([0]), np.ones(1))), "published[0][0]"),
    "channel": (
        lambda: rows(published=(np.array([0]), np.array([2]), np.ones(1))),
        "publish_channel[0]: is 2, and must be from 0 to 1",
    ),
    "lengths": (
        lambda: rows(wanted=(np.array([0]), np.array([0, 1]))),
        "wanted[1]: is 2, and must be 1",
    ),
    "pair": (
        lambda: rows(wanted=(np.array([0, 1, 0]), np.array([1, 1, 1]))),
        "interest_channel: of user 'u2' must ascend, and none comes twice",
    ),
    "starts": (
        lambda: replace(WIRING, publish_start=np.array([0, 2, 1])),
        "publish_start: must ascend from 0 to 2",
    ),
}


def rows(**changes: Any) -> WiringProblem:
    nobody = np.empty(0, dtype=np.int64)
    given: dict[str, Any] = {
        "users": USERS["users"],
        "brokers": USERS["brokers"],
        "channel_count": 2,
        "published": (nobody, nobody, np.empty(0)),
        "wanted": (nobody, nobody),
        "access_prices": USERS["access_prices"],
        "core_prices": USERS["core_prices"],
    }
    return WiringProblem.from_rows(**{**given, **changes})


@pytest.mark.parametrize("case", OTHERS)
def test_a_shape_type_or_name_that_cannot_be_is_refused(case: str) -> None:
    make, sentence = OTHERS[case]
    with pytest.raises(BadInput) as caught:
        make()
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_a_wrong_type_of_array_is_a_type_error() -> None:
    with pytest.raises(WrongType):
        replace(STREAM, rates=np.ones((2, 1), dtype=np.float32))


def test_lists_and_whole_numbers_make_a_problem_in_any_order() -> None:
    made = wiring(publishes=[[1, 0], [0, 2]], access_prices=[[1, 1], [1, 1]], capacities=[100, INF])
    assert np.array_equal(made.publishes, WIRING.publishes)
    assert made.capacities.tolist() == WIRING.capacities.tolist()


@given(
    st.lists(st.floats(width=64) | st.sampled_from([0.0, -0.0, 1e60, INF, NAN]), max_size=5),
    st.booleans(),
)
def test_amounts_are_those_from_0_to_the_most(values: list[float], unlimited: bool) -> None:
    """As somebody would check them one by one."""
    wrong = [
        f"x[{i}]"
        for i, value in enumerate(values)
        if not (0.0 <= value <= 1e60 or (unlimited and value == INF))
    ]
    if wrong:
        with pytest.raises(BadInput) as caught:
            check_amounts("x", np.array(values), (len(values),), unlimited=unlimited)
        assert caught.value.place == wrong[0]
    else:
        array = np.array(values)
        check_amounts("x", array, (len(values),), unlimited=unlimited)
        assert not array.flags.writeable
