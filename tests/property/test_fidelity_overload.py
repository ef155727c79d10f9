"""Repaired forests against the exact method, and reasons why there is none against all trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies_fidelity import (
    fidelity_problems,
    problems_with_forests,
    random_forest,
    random_problem,
)

from distributary.fidelity.baselines import random_tree, source_tree
from distributary.fidelity.exact import exact_tree
from distributary.fidelity.forest import Forest, check
from distributary.fidelity.loss import loss
from distributary.fidelity.overload import unservable
from distributary.fidelity.problem import FidelityProblem
from distributary.fidelity.search import relieved, repair

TIGHT = (1.05, 2.0, 4.0, 8.0)


def slowed(problem: FidelityProblem, factor: float) -> FidelityProblem:
    """Return the problem with every node slower by a factor, which multiplies all loads."""
    return FidelityProblem(
        problem.names,
        problem.objects,
        problem.rates.copy(),
        problem.filter_times * factor,
        problem.send_times * factor,
        problem.delays.copy(),
        problem.adaptation,
    )


def tight_problem(seed: int, *, largest_load: float) -> FidelityProblem:
    """Return a problem whose best tree has exactly this largest load."""
    rng = np.random.default_rng(seed)
    problem = random_problem(
        seed, servers=int(rng.integers(2, 7)), objects=int(rng.integers(1, 4)), whole=seed % 3 == 0
    )
    hopeless = slowed(problem, 1e6)
    least = loss(hopeless, exact_tree(hopeless)).loads.max()
    return slowed(hopeless, largest_load / least) if least > 0.0 else problem


@settings(max_examples=150)
@given(problems_with_forests(busy=TIGHT))
def test_repair_never_makes_the_largest_load_worse(drawn: tuple[FidelityProblem, Forest]) -> None:
    """The result is valid, a forest without overload stays as it is, and so does a result."""
    problem, forest = drawn
    before = loss(problem, forest)
    repaired = repair(problem, forest)
    check(problem, repaired)
    after = loss(problem, repaired)
    assert after.loads.max() <= before.loads.max() * (1.0 + 1e-9)
    if not before.overloaded:
        assert repaired is forest
    elif not after.overloaded:
        assert repair(problem, repaired) is repaired
    assert np.array_equal(repair(problem, forest).parents, repaired.parents)


@settings(max_examples=60)
@given(fidelity_problems(servers_max=6, busy=TIGHT), st.integers(0, 2**32))
def test_repair_succeeds_wherever_some_tree_does(problem: FidelityProblem, seed: int) -> None:
    """A few servers in one tree: no overload is left that the exact method avoids."""
    if loss(problem, exact_tree(problem)).loads.max() < 1.0 - 1e-9:
        for forest in (
            source_tree(problem, "one-tree"),
            random_tree(problem, "one-tree", seed=seed),
        ):
            assert loss(problem, repair(problem, forest)).overloaded == ()


@pytest.mark.parametrize(("largest_load", "share"), [(0.8, 1.0), (0.9, 1.0), (0.999, 0.95)])
def test_moves_alone_nearly_always_succeed(largest_load: float, share: float) -> None:
    """Also without looking at every tree, and with next to nothing to spare."""
    succeeded = []
    for seed in range(120):
        problem = tight_problem(seed, largest_load=largest_load)
        forest = random_forest(problem, "one-tree", seed=seed)
        if loss(problem, forest).overloaded:
            moved = relieved(problem, forest)
            succeeded.append(loss(problem, moved).overloaded == ())
    assert len(succeeded) > 60
    assert np.mean(succeeded) >= share


@pytest.mark.parametrize("approach", ["one-tree", "tree-each"])
@pytest.mark.parametrize("objects", [1, 20])
def test_a_source_that_serves_too_many_is_relieved(approach: str, objects: int) -> None:
    """Ten times the load that the source can bear is spread until nobody is even busy."""
    problem = random_problem(11, servers=120, objects=objects, busy=20.0)
    forest = source_tree(problem, approach)
    assert loss(problem, forest).loads[0] > 5.0
    found = loss(problem, repair(problem, forest))
    assert found.overloaded == ()
    assert found.loads.max() < 0.85


@settings(max_examples=150)
@given(fidelity_problems(servers_max=5, busy=TIGHT))
def test_no_tree_serves_what_is_called_unservable(problem: FidelityProblem) -> None:
    """Every load given as a reason is at most the largest load of the best tree there is."""
    for shortfall in unservable(problem, "one-tree"):
        best = loss(problem, exact_tree(problem)).loads.max()
        assert 1.0 < shortfall.load <= best * (1.0 + 1e-9)
        assert set(shortfall.servers) <= set(problem.names)


@settings(max_examples=150)
@given(problems_with_forests(approach="tree-each", servers_max=5, busy=TIGHT))
def test_no_forest_with_a_tree_each_serves_what_is_called_unservable(
    drawn: tuple[FidelityProblem, Forest],
) -> None:
    problem, forest = drawn
    for candidate in (forest, repair(problem, forest)):
        largest = loss(problem, candidate).loads.max()
        for shortfall in unservable(problem, "tree-each"):
            assert 1.0 < shortfall.load <= largest * (1.0 + 1e-9)


def test_most_of_what_cannot_be_served_is_recognised() -> None:
    """A third too much is too much for one of the reasons nine times in ten."""
    recognised = [
        bool(unservable(tight_problem(seed, largest_load=1.3), "one-tree")) for seed in range(100)
    ]
    assert np.mean(recognised) > 0.85


def plain(rates: list[float], times: list[float]) -> FidelityProblem:
    count = len(rates)
    return FidelityProblem(
        ("s", *(f"n{i}" for i in range(1, count))),
        ("o",),
        np.array(rates)[:, None],
        np.array(times),
        np.zeros(count),
        np.zeros((count, count)),
    )


def test_a_source_too_slow_for_one_server_is_named() -> None:
    (reason,) = unservable(plain([4.0, 2.0, 1.0], [0.3, 0.1, 0.1]), "one-tree")
    assert reason.servers == ("s",)
    assert reason.load == pytest.approx(1.2)
    assert "'s' has a load of at least 1.2" in reason.reason


def test_a_server_that_needs_too_much_for_any_parent_is_named() -> None:
    """The slow source could serve the fast server, if only that one needed less."""
    reasons = unservable(plain([0.0, 5.0, 1.0], [0.5, 0.1, 0.3]), "one-tree")
    by_server = {reason.servers: reason.load for reason in reasons}
    assert by_server["n1",] == pytest.approx(1.5)
    assert ("n2",) not in by_server


def test_servers_that_are_too_many_together_are_named() -> None:
    """Each can be served, and the source can serve one; but one of three has no place."""
    (reason,) = unservable(plain([1.0] * 4, [0.8, 1.5, 1.6, 1.7]), "one-tree")
    assert reason.servers == ("n1", "n2", "n3")
    assert reason.load == pytest.approx(1.6)
    assert "all servers together" in reason.reason


def test_nothing_wanted_can_always_be_served() -> None:
    for approach in ("one-tree", "tree-each"):
        assert unservable(plain([9.0, 0.0], [9.0, 9.0]), approach) == []


def test_nodes_that_take_no_time_serve_anybody() -> None:
    assert unservable(plain([9.0, 9.0, 9.0], [0.0, 9.0, 9.0]), "one-tree") == []
