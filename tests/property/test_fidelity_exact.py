"""The best tree of the compiled enumeration against that of a slow one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import fidelity_enumeration as enumeration
from tests.reference.fidelity_loss import instance
from tests.strategies_fidelity import (
    fidelity_problems,
    permuted,
    random_forest,
    random_problem,
)

from distributary.errors import BadInput, TooLarge
from distributary.fidelity.exact import SERVERS_MAX, exact_tree
from distributary.fidelity.forest import check
from distributary.fidelity.loss import loss
from distributary.fidelity.problem import FidelityProblem


def assert_best(problem: FidelityProblem) -> None:
    forest = exact_tree(problem)
    check(problem, forest)
    found = loss(problem, forest)
    expected = enumeration.best(instance(problem))
    largest = max(expected.loads.values())
    if largest >= 1.0 - 1e-9:
        # Rounding may decide whether a node that is busy all the time is overloaded.
        assert found.loads.max() == pytest.approx(largest, rel=1e-9)
    else:
        assert found.average == pytest.approx(expected.average, rel=1e-9)


@settings(max_examples=100)
@given(fidelity_problems(servers_max=4))
def test_exact_equals_the_slow_enumeration(problem: FidelityProblem) -> None:
    """No choice of parents loses less, and none overloads less when all overload."""
    assert_best(problem)


@pytest.mark.parametrize(("seed", "objects", "busy"), [(1, 1, 0.9), (2, 2, 2.0), (3, 1, 9.0)])
def test_exact_equals_the_slow_enumeration_of_five_servers(
    seed: int, objects: int, busy: float
) -> None:
    assert_best(random_problem(seed, servers=5, objects=objects, busy=busy))


@settings(max_examples=50)
@given(fidelity_problems(servers_max=6), st.integers(0, 2**32))
def test_no_random_tree_loses_less(problem: FidelityProblem, seed: int) -> None:
    """Beyond the reach of the slow enumeration at least no tree found at random is better."""
    best = loss(problem, exact_tree(problem))
    for shift in range(20):
        other = loss(problem, random_forest(problem, "one-tree", seed=seed + shift))
        assert best.average <= other.average * (1.0 + 1e-9)


@settings(max_examples=50)
@given(fidelity_problems(servers_max=6), st.data())
def test_exact_does_not_depend_on_names(problem: FidelityProblem, data: st.DataObject) -> None:
    names = data.draw(st.permutations(range(1, problem.node_count)))
    objects = data.draw(st.permutations(range(problem.object_count)))
    forest = exact_tree(problem)
    other, _ = permuted(problem, forest, names=names, objects=objects)
    found, again = loss(problem, forest), loss(other, exact_tree(other))
    if abs(found.loads.max() - 1.0) > 1e-9:
        assert again.average == pytest.approx(found.average, rel=1e-9)


def test_every_tree_is_looked_at() -> None:
    """There are (m + 1)**(m - 1) trees, and only the one path through all servers is free."""
    for servers in range(1, 7):
        given_problem = random_problem(servers, servers=servers)
        path = np.random.default_rng(servers).permutation(servers) + 1
        delays = np.ones((servers + 1, servers + 1))
        delays[np.concatenate([[0], path[:-1]]), path] = 0.0
        problem = FidelityProblem(
            given_problem.names,
            given_problem.objects,
            np.ones((servers + 1, 1)),
            np.zeros(servers + 1),
            np.zeros(servers + 1),
            delays,
        )
        parents = exact_tree(problem).parents[0]
        assert parents[path].tolist() == [0, *path[:-1].tolist()]


def test_a_tree_each_is_the_same_for_a_single_object() -> None:
    problem = random_problem(4, servers=5, busy=1.5)
    each = exact_tree(problem, "tree-each")
    check(problem, each)
    assert np.array_equal(each.parents, exact_tree(problem).parents)


def test_a_tree_each_for_several_objects_is_refused() -> None:
    with pytest.raises(BadInput, match="3 objects with a tree each"):
        exact_tree(random_problem(4, servers=2, objects=3), "tree-each")


@pytest.mark.parametrize("servers", [SERVERS_MAX + 4, 200])
def test_too_many_servers_are_refused_before_anything_is_computed(servers: int) -> None:
    """The message says how many trees there are and what to use instead."""
    with pytest.raises(
        TooLarge, match=r"trees for \d+ servers.*at most 8.*method 'auto'"
    ) as refused:
        exact_tree(random_problem(2, servers=servers))
    assert refused.value.seconds > 100.0
    assert refused.value.memory_bytes > 0.0


def test_nothing_wanted_is_a_source_alone() -> None:
    problem = random_problem(1, servers=9)
    nothing = FidelityProblem(
        problem.names,
        problem.objects,
        np.zeros_like(problem.rates),
        problem.filter_times.copy(),
        problem.send_times.copy(),
        problem.delays.copy(),
    )
    assert exact_tree(nothing).parents.tolist() == [[-1] + [-2] * 9]
