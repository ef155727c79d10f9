"""The search for trees against enumeration, the greedy trees and itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies_fidelity import fidelity_problems, random_problem

from distributary.fidelity import FidelityProblem, build_trees, check, loss
from distributary.fidelity._descent_kernels import cool, nearest_nodes
from distributary.fidelity.anneal import batches
from distributary.fidelity.model import servers_of, state_of
from distributary.fidelity.search import near_nodes
from distributary.xorshift import seed_state


@settings(max_examples=60)
@given(
    st.builds(
        random_problem,
        st.integers(0, 2**32),
        servers=st.sampled_from([6, 5, 4, 3, 2]),
        objects=st.sampled_from([1, 1, 3]),
        busy=st.sampled_from([0.05, 0.5, 0.95, 1.2, 2.0]),
        whole=st.booleans(),
        adapted=st.booleans(),
    )
)
def test_small_trees_come_out_nearly_optimal(problem: FidelityProblem) -> None:
    """Within half a per cent of the best of all trees, at every load."""
    best = build_trees(problem, method="exact")
    found = build_trees(problem, method="auto")
    check(problem, found.forest)
    if best.loss.overloaded:
        assert found.loss.overloaded
    else:
        assert found.loss.average <= best.loss.average * 1.005 + 1e-12
        assert found.loss.average >= best.loss.average * (1.0 - 1e-9) - 1e-12


@settings(max_examples=40)
@given(fidelity_problems(servers_max=12), st.sampled_from(["one-tree", "tree-each"]))
def test_the_search_is_never_worse_than_growing(problem: FidelityProblem, approach: str) -> None:
    """Whatever the load, the objects and the approach; and every method's trees are valid."""
    greedy, auto, adapted = (
        build_trees(problem, method=method, approach=approach)
        for method in ("greedy", "auto", "adapt")
    )
    for result in (greedy, auto, adapted):
        check(problem, result.forest)
    assert auto.loss.average <= greedy.loss.average * (1.0 + 1e-9) or greedy.loss.overloaded


@pytest.mark.parametrize("approach", ["one-tree", "tree-each"])
def test_trees_replay_from_their_seed(approach: str) -> None:
    """Same seed, same trees, for every method that draws."""
    problem = random_problem(8, servers=40, objects=3, busy=4.0)
    for method in ("random", "anneal", "auto"):
        one, two = (
            build_trees(problem, method=method, approach=approach, seed=3) for _ in range(2)
        )
        assert np.array_equal(one.forest.parents, two.forest.parents)


@pytest.mark.parametrize("approach", ["one-tree", "tree-each"])
@pytest.mark.parametrize("method", ["anneal", "adapt", "auto"])
def test_a_time_limit_ends_a_search_early_and_never_makes_trees_worse(
    method: str, approach: str
) -> None:
    """After the first batch of moves, wherever in the schedule or the round that is."""
    problem = random_problem(8, servers=20, objects=4, busy=2.0)
    start = None
    if method != "auto":
        start = build_trees(problem, method="random", approach=approach, seed=3).forest
    begun, whole = (
        build_trees(problem, method=method, approach=approach, start=start, time_limit=limit)
        for limit in (1e-9, None)
    )
    check(problem, begun.forest)
    assert begun.evaluations is not None
    assert whole.evaluations is not None
    assert 0 < begun.evaluations < whole.evaluations
    assert whole.loss.average <= begun.loss.average
    if start is not None and not loss(problem, start).overloaded:
        assert begun.loss.average <= loss(problem, start).average


@pytest.mark.parametrize("temperature", [1e-1, 1e-3])
def test_the_best_trees_kept_while_cooling_cost_what_is_kept_of_them(temperature: float) -> None:
    """Although only those of many trees are copied that changed, and over several calls."""
    problem = random_problem(8, servers=20, objects=6, busy=2.0)
    start, servers = servers_of(problem, "tree-each")
    first = build_trees(problem, method="random", approach="tree-each").forest
    state = state_of(problem, "tree-each", first.parents)
    best, best_cost, changed = first.parents.copy(), state.total.copy(), np.zeros(6, dtype=bool)
    numbers = seed_state(5)
    costs = [float(best_cost[0])]
    for _ in range(4):
        near = near_nodes(problem, state, "tree-each", count=4)
        evaluations = cool(
            numbers, state, start, servers, near, temperature, 600, best, best_cost, changed
        )
        assert 0 < evaluations <= 600
        kept = state_of(problem, "tree-each", best)
        assert kept.total[0] == pytest.approx(best_cost[0])
        costs.append(float(best_cost[0]))
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


def test_trees_split_into_batches_that_hold_each_of_them_once() -> None:
    start = np.array([0, 5, 5, 9, 30, 31])
    assert list(batches(start, 8)) == [(0, 3), (3, 4), (4, 5)]
    assert list(batches(start, 100)) == [(0, 5)]
    assert list(batches(start, 0)) == [(t, t + 1) for t in range(5)]
    assert list(batches(np.array([0]), 8)) == []


def test_the_nearest_nodes_are_the_nearest() -> None:
    """The one-pass selection equals sorting every column, among the nodes of each tree."""
    rng = np.random.default_rng(4)
    base, delays = rng.random((3, 30)), rng.random((30, 30))
    inside = [np.arange(1, 30), np.arange(2, 30, 3), np.array([4, 9, 20])]
    start = np.cumsum([0, *map(len, inside)])
    near = nearest_nodes(base, delays, start, np.concatenate(inside), 5)
    assert near.shape == (3, 30, 5)
    for t, own in enumerate(inside):
        for i in own.tolist():
            others = np.array([b for b in (0, *own.tolist()) if b != i])
            order = np.argsort(base[t, others] + delays[others, i], kind="stable")
            expected = others[order][:5].tolist()
            assert near[t, i].tolist() == expected + [-1] * (5 - len(expected))
