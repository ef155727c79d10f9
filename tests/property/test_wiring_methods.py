"""The methods for wiring: the same as they are told, within capacity, and repeatable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.wiring import every_wiring, instance
from tests.reference.wiring_methods import Brokers, clustered, mixed, packed, scattered, weights
from tests.strategies_wiring import random_wiring_problem, wiring_problems

from distributary.arrays import IntArray
from distributary.wiring._capacity_kernels import try_all
from distributary.wiring.capacity import _try_program, make_room, room_limits
from distributary.wiring.clustering import clustering_wiring
from distributary.wiring.mixing import edge_weights, mixing_wiring
from distributary.wiring.packing import packing_wiring
from distributary.wiring.problem import WiringProblem
from distributary.wiring.random_wiring import random_wiring
from distributary.wiring.wiring import check

PROBLEMS = wiring_problems(users_max=9, brokers_max=5, channels_max=3)
METHODS = (random_wiring, packing_wiring, clustering_wiring, mixing_wiring)
SEEDS = st.integers(0, 2**32)


def settled(problem: WiringProblem, found: Brokers, seed: int) -> IntArray:
    """Return what a method should: what it found, with room made for those left over."""
    return make_room(problem, np.array([-1 if b is None else b for b in found]), seed=seed)


def numbers(problem: WiringProblem, seed: int) -> list[float]:
    drawn: list[float] = np.random.default_rng(seed).random(problem.user_count).tolist()
    return drawn


@settings(max_examples=200)
@given(PROBLEMS, SEEDS)
def test_random_takes_any_broker_with_room(problem: WiringProblem, seed: int) -> None:
    found = random_wiring(problem, seed=seed)
    expected = settled(problem, scattered(problem, numbers(problem, seed)), seed)
    assert np.array_equal(found, expected)


@settings(max_examples=200)
@given(PROBLEMS)
def test_packing_equals_algorithm_1(problem: WiringProblem) -> None:
    assert np.array_equal(packing_wiring(problem), settled(problem, packed(problem), 0))


@settings(max_examples=200)
@given(PROBLEMS)
def test_clustering_equals_looking_at_every_pair_for_every_broker(problem: WiringProblem) -> None:
    assert np.array_equal(clustering_wiring(problem), settled(problem, clustered(problem), 0))


@settings(max_examples=150)
@given(PROBLEMS, SEEDS)
def test_clustering_breaks_ties_in_the_same_way(problem: WiringProblem, seed: int) -> None:
    """Prices of 0, 1 and 2 alone: many pairs and brokers are equally good."""
    shape = problem.access_prices.shape
    few = np.random.default_rng(seed).integers(0, 3, shape).astype(np.float64)
    for prices in (np.ones(shape), few):
        tied = replace(problem, access_prices=prices)
        assert np.array_equal(clustering_wiring(tied), settled(tied, clustered(tied), 0))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("whole", [True, False])
def test_clustering_of_more_users_equals_looking_at_every_pair(seed: int, whole: bool) -> None:
    """With so many users most pairs are not looked at."""
    problem = random_wiring_problem(seed, users=60, brokers=6, channels=5, whole=whole)
    assert np.array_equal(clustering_wiring(problem), settled(problem, clustered(problem), 0))


@settings(max_examples=300)
@given(PROBLEMS)
def test_shared_trees_carry_what_the_tree_of_every_publisher_carries(
    problem: WiringProblem,
) -> None:
    assert edge_weights(problem) == pytest.approx(np.array(weights(problem)), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("metric", [True, False])
def test_shared_trees_of_more_users_carry_the_same(seed: int, metric: bool) -> None:
    problem = random_wiring_problem(seed, users=25, brokers=12, channels=3, metric=metric)
    assert edge_weights(problem) == pytest.approx(np.array(weights(problem)), rel=1e-12, abs=1e-12)


@settings(max_examples=200)
@given(PROBLEMS, SEEDS)
def test_mixing_draws_by_what_the_trees_carry(problem: WiringProblem, seed: int) -> None:
    expected = settled(problem, mixed(problem, numbers(problem, seed)), seed)
    assert np.array_equal(mixing_wiring(problem, seed=seed), expected)


@settings(max_examples=200)
@given(PROBLEMS, SEEDS)
def test_every_method_respects_capacities_and_repeats_with_its_seed(
    problem: WiringProblem, seed: int
) -> None:
    """Every problem here has a wiring, if only just."""
    for method in METHODS:
        broker_of = method(problem, seed=seed)
        check(problem, broker_of)
        assert np.array_equal(broker_of, method(problem, seed=seed))


@settings(max_examples=150)
@given(wiring_problems(users_max=6, brokers_max=3, channels_max=2), st.floats(0.5, 1.0))
def test_trying_all_and_the_integer_program_agree_with_enumeration(
    problem: WiringProblem, share: float
) -> None:
    """Capacities are cut by a share, so that some problems have no wiring any more."""
    cut = replace(problem, capacities=problem.capacities * share)
    possible = next(every_wiring(instance(cut)), None) is not None
    order = np.argsort(-cut.demands, kind="stable")
    broker_of = np.full(cut.user_count, -1)
    assert try_all(order, cut.demands, room_limits(cut), broker_of, 10**6) == possible
    if possible:
        check(cut, broker_of)
    if cut.demands.max() > 0.0:
        verdict = _try_program(cut, broker_of)
        assert verdict == possible
        if possible:
            check(cut, broker_of)
