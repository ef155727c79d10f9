"""The search keeps to the capacities, beats the published methods and comes near the optimum."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import wiring as reference
from tests.strategies_wiring import random_wiring_problem, wiring_problems

from distributary.errors import InfeasiblePlan
from distributary.wiring import CORES, WiringProblem, check, cost, wire
from distributary.wiring.clustering import clustering_wiring
from distributary.wiring.mixing import mixing_wiring
from distributary.wiring.packing import packing_wiring
from distributary.wiring.rewire import rewire, users_moved
from distributary.wiring.search import search_wiring

NEAR = 1.02


def optimal_cost(
    problem: WiringProblem, core: str, *, start: list[int] | None = None, moves: int = 0
) -> float:
    """The least cost of all wirings; the strategies leave room for one at least."""
    found = reference.best(problem, core, start=start, moves=moves)
    assert found is not None
    return found[0]


@given(wiring_problems(), st.sampled_from(CORES))
def test_search_finds_the_optimum_of_a_handful_of_users(problem: WiringProblem, core: str) -> None:
    """However tight the capacities: single moves and swaps alone can get stuck there."""
    found = wire(problem, method="search", core=core)
    check(problem, found.broker_of)
    optimum = optimal_cost(problem, core)
    assert found.cost.total == pytest.approx(optimum, rel=1e-9, abs=1e-9)
    assert found.lower_bound == pytest.approx(optimum, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("room", ["none", "loose", "mixed"])
@pytest.mark.parametrize("core", ["mst", "one-tree"])
def test_moves_and_swaps_alone_come_within_two_per_cent_of_the_optimum(
    room: str, core: str
) -> None:
    for seed in range(12):
        problem = random_wiring_problem(seed, users=6, brokers=4, channels=3, room=room)
        found = search_wiring(problem, core=core)
        check(problem, found)
        assert cost(problem, found, core=core).total <= NEAR * optimal_cost(problem, core) + 1e-9


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("core", ["mst", "one-tree"])
def test_search_is_never_dearer_than_the_published_methods(seed: int, core: str) -> None:
    problem = random_wiring_problem(seed, users=60, brokers=9, channels=6)
    found = search_wiring(problem, core=core, seed=seed)
    check(problem, found)
    for method in (packing_wiring, clustering_wiring, mixing_wiring):
        theirs = cost(problem, method(problem, seed=seed), core=core).total
        assert cost(problem, found, core=core).total <= theirs * (1.0 + 1e-12)


def test_one_seed_gives_one_wiring() -> None:
    problem = random_wiring_problem(3, users=60, brokers=9, channels=6)
    first, again = (search_wiring(problem, seed=7) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_time_limit_is_kept_and_still_gives_a_wiring() -> None:
    problem = random_wiring_problem(3, users=60, brokers=9, channels=6)
    found = search_wiring(problem, time_limit=1e-6)
    check(problem, found)
    packed = cost(problem, packing_wiring(problem)).total
    assert cost(problem, found).total <= packed * (1.0 + 1e-12)


@given(wiring_problems(users_max=5), st.integers(0, 5), st.sampled_from(CORES))
def test_rewiring_a_handful_of_users_is_optimal(
    problem: WiringProblem, moves: int, core: str
) -> None:
    home = packing_wiring(problem)
    found = rewire(problem, home, moves, core=core)
    check(problem, found)
    assert users_moved(home, found) <= moves
    optimum = optimal_cost(problem, core, start=home.tolist(), moves=moves)
    assert cost(problem, found, core=core).total == pytest.approx(optimum, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("moves", [1, 2, 4])
def test_rewiring_by_search_uses_its_moves_well(moves: int) -> None:
    """It saves nearly all that so few moves can save, over many instances together."""
    saved = possible = 0.0
    for seed in range(20):
        problem = random_wiring_problem(seed, users=6, brokers=4, channels=3)
        home = packing_wiring(problem)
        found = rewire(problem, home, moves, tried_max=0)
        check(problem, found)
        assert users_moved(home, found) <= moves
        before, after = cost(problem, home).total, cost(problem, found).total
        assert after <= before * (1.0 + 1e-12)
        saved += before - after
        possible += before - optimal_cost(problem, "mst", start=home.tolist(), moves=moves)
    assert possible > 0.0
    assert saved >= 0.95 * possible


def test_rewiring_attaches_new_users_without_counting_them_as_moved() -> None:
    problem = random_wiring_problem(11, users=40, brokers=6, channels=4)
    home = packing_wiring(problem)
    home[::7] = -1
    found = rewire(problem, home, 0)
    check(problem, found)
    np.testing.assert_array_equal(found[home >= 0], home[home >= 0])
    assert users_moved(home, found) == 0


def test_rewiring_relieves_overloaded_brokers_or_says_that_it_cannot() -> None:
    problem = random_wiring_problem(12, users=40, brokers=5, channels=4, room="loose")
    crowded = np.zeros(40, dtype=np.int64)
    found = rewire(problem, crowded, 40)
    check(problem, found)
    assert users_moved(crowded, found) >= 1
    with pytest.raises(InfeasiblePlan, match="limited to 1 no wiring respects the capacities"):
        rewire(problem, crowded, 1)
    with pytest.raises(InfeasiblePlan, match=r"broker 'b000' carries .* allow more moves"):
        rewire(problem, crowded, 3)


def test_more_moves_never_cost_more() -> None:
    problem = random_wiring_problem(13, users=60, brokers=8, channels=5)
    shifted = replace(problem, access_prices=np.roll(problem.access_prices, 1, axis=1))
    home = packing_wiring(shifted)
    costs = [cost(problem, rewire(problem, home, moves)).total for moves in (0, 3, 10, 60)]
    assert costs[0] == pytest.approx(cost(problem, home).total)
    assert all(fewer >= more * (1.0 - 1e-12) for fewer, more in itertools.pairwise(costs))
