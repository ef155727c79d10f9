"""The trees to compare with: valid, as defined, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.fidelity_dita import dita
from tests.reference.fidelity_loss import instance, parents_by_name
from tests.strategies_fidelity import fidelity_problems, random_problem

from distributary.errors import BadInput
from distributary.fidelity.baselines import _best_limit, dita_tree, random_tree, source_tree
from distributary.fidelity.forest import check, members
from distributary.fidelity.loss import loss
from distributary.fidelity.problem import FidelityProblem

APPROACH = st.sampled_from(["one-tree", "tree-each"])


@given(fidelity_problems(), APPROACH)
def test_the_source_serves_everybody_itself(problem: FidelityProblem, approach: str) -> None:
    forest = source_tree(problem, approach)
    check(problem, forest)
    inside = members(problem, approach)[:, 1:]
    assert np.array_equal(forest.parents[:, 1:] == 0, inside)


@given(fidelity_problems(), APPROACH, st.integers(0, 2**32))
def test_a_random_tree_is_valid_and_repeats_with_its_seed(
    problem: FidelityProblem, approach: str, seed: int
) -> None:
    forest = random_tree(problem, approach, seed=seed)
    check(problem, forest)
    assert np.array_equal(forest.parents, random_tree(problem, approach, seed=seed).parents)


def test_random_trees_differ_between_seeds_and_reach_every_tree() -> None:
    """Of the sixteen trees of three servers all are drawn, and a path about as it should be."""
    problem = random_problem(6, servers=3)
    assert problem.served[1:].all()
    drawn = [random_tree(problem, "one-tree", seed=seed).parents[0] for seed in range(600)]
    assert len({tuple(parents.tolist()) for parents in drawn}) == 16
    # The second joins below the first half of the time, the third below that one a third.
    paths = np.mean([len(set(parents[1:].tolist())) == 3 for parents in drawn])
    assert paths == pytest.approx(1 / 6, abs=0.05)


@settings(max_examples=150)
@given(fidelity_problems(), APPROACH, st.integers(1, 8))
def test_dita_equals_its_description(problem: FidelityProblem, approach: str, fanout: int) -> None:
    """Servers by descending rate, each below the nearest node with room."""
    forest = dita_tree(problem, approach, fanout=fanout)
    check(problem, forest)
    everything = [list(problem.objects)]
    things = everything if approach == "one-tree" else [[thing] for thing in problem.objects]
    expected = [dita(instance(problem), some, fanout) for some in things]
    assert parents_by_name(problem, forest) == expected


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 5, 40]), st.booleans())
def test_dita_finds_the_nearest_node_also_beyond_those_it_remembers(
    seed: int, fanout: int, whole: bool
) -> None:
    """With more nodes than are remembered for each, and with ties, the result is the same."""
    problem = random_problem(seed, servers=45, whole=whole)
    forest = dita_tree(problem, "one-tree", fanout=fanout)
    assert parents_by_name(problem, forest) == [
        dita(instance(problem), list(problem.objects), fanout)
    ]


@settings(max_examples=100)
@given(fidelity_problems(), APPROACH)
def test_no_fanout_limit_is_better_than_the_one_found(
    problem: FidelityProblem, approach: str
) -> None:
    found = loss(problem, dita_tree(problem, approach))
    for fanout in range(1, problem.node_count + 1):
        other = loss(problem, dita_tree(problem, approach, fanout=fanout))
        assert (found.average, found.loads.max()) <= (other.average, other.loads.max())


def test_the_search_among_many_limits_closes_in_on_the_best() -> None:
    """A single valley is found wherever it lies, without trying everything."""
    for best in (1, 2, 3, 100, 777, 4_096, 9_999, 10_000):
        tried: list[int] = []

        def quality(limit: int, best: int = best, tried: list[int] = tried) -> tuple[float, float]:
            tried.append(limit)
            return abs(limit - best), 0.0

        assert _best_limit(quality, 10_000) == best
        assert len(tried) == len(set(tried)) < 60


@pytest.mark.parametrize("fanout", [0, -3])
def test_a_fanout_limit_below_one_is_refused(fanout: int) -> None:
    with pytest.raises(BadInput, match=r"fanout: .* is less than 1"):
        dita_tree(random_problem(1, servers=3), "one-tree", fanout=fanout)
