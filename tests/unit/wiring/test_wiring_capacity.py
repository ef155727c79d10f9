"""Capacities: what is plainly too much, and room for those whom a greedy method leaves over."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from distributary.arrays import FloatArray, IntArray
from distributary.errors import InfeasiblePlan
from distributary.wiring.capacity import check_feasible, make_room
from distributary.wiring.clustering import clustering_wiring
from distributary.wiring.mixing import mixing_wiring
from distributary.wiring.packing import packing_wiring
from distributary.wiring.problem import WiringProblem
from distributary.wiring.random_wiring import random_wiring
from distributary.wiring.wiring import check

METHODS = (random_wiring, packing_wiring, clustering_wiring, mixing_wiring)


def publishers(
    demands: FloatArray | list[float],
    capacities: list[float],
    prices: FloatArray | None = None,
) -> WiringProblem:
    """Return a problem of users who only publish: their demand is their rate."""
    users, brokers = len(demands), len(capacities)
    return WiringProblem.in_order(
        users=[f"u{u:03d}" for u in range(users)],
        brokers=[f"b{b:02d}" for b in range(brokers)],
        publishes=np.array(demands, dtype=np.float64)[:, None],
        subscribes=np.zeros((users, 1), dtype=np.bool_),
        access_prices=np.ones((users, brokers)) if prices is None else prices,
        core_prices=np.ones((brokers, brokers)) - np.eye(brokers),
        capacities=np.array(capacities, dtype=np.float64),
    )


def just_fitting(seed: int, *, users: int, brokers: int, slack: float) -> WiringProblem:
    """Return a problem with the capacities that one random wiring needs, and some slack."""
    rng = np.random.default_rng(seed)
    demands = rng.lognormal(0.0, 1.0, users)
    loads = np.bincount(rng.integers(brokers, size=users), weights=demands, minlength=brokers)
    return publishers(demands, (loads * (1.0 + slack)).tolist(), rng.random((users, brokers)))


def nobody(problem: WiringProblem) -> IntArray:
    return np.full(problem.user_count, -1, dtype=np.int64)


def test_too_much_demand_names_the_shortfall() -> None:
    with pytest.raises(InfeasiblePlan, match=r"short by 2\.5$") as raised:
        check_feasible(publishers([3.0, 4.0, 1.5], [4.0, 2.0]))
    assert raised.value.shortfall == pytest.approx(2.5)


def test_a_user_larger_than_every_broker_is_named() -> None:
    with pytest.raises(InfeasiblePlan, match=r"user 'u001' .* short by 1$") as raised:
        check_feasible(publishers([3.0, 6.0], [5.0, 5.0]))
    assert raised.value.shortfall == pytest.approx(1.0)


def test_large_users_must_fit_into_large_brokers() -> None:
    with pytest.raises(
        InfeasiblePlan, match=r"the 2 largest users .* the only broker .* short by 3$"
    ) as raised:
        check_feasible(publishers([4.0, 1.0, 4.0], [3.0, 5.0, 3.0]))
    assert raised.value.shortfall == pytest.approx(3.0)


def test_whatever_has_a_wiring_passes() -> None:
    for seed in range(30):
        check_feasible(just_fitting(seed, users=12, brokers=4, slack=0.0))
    check_feasible(publishers([1e9, 2.0], [np.inf, 0.0]))


def test_one_move_makes_room_where_it_costs_least() -> None:
    """Of the two small users in the way, the one that loses less by moving moves."""
    prices = np.array([[0.0, 5.0], [0.0, 1.0], [0.0, 9.0]])
    problem = publishers([2.0, 2.0, 4.0], [6.0, 3.0], prices)
    assert make_room(problem, np.array([0, 0, -1])).tolist() == [0, 1, 0]


def test_two_users_swap_when_no_move_helps() -> None:
    problem = publishers([3.0, 2.0, 2.0, 3.0], [5.0, 5.0])
    assert sorted(make_room(problem, np.array([0, 1, 1, -1])).tolist()) == [0, 0, 1, 1]
    check(problem, make_room(problem, np.array([0, 1, 1, -1])))


@pytest.mark.parametrize("seed", range(12))
def test_small_problems_without_any_slack_are_wired(seed: int) -> None:
    problem = just_fitting(seed, users=10, brokers=3, slack=0.0)
    for method in METHODS:
        check(problem, method(problem, seed=seed))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("users", "brokers", "slack"), [(40, 4, 0.005), (300, 10, 0.002), (2_000, 40, 0.002)]
)
def test_larger_problems_with_little_slack_are_wired(
    seed: int, users: int, brokers: int, slack: float
) -> None:
    problem = just_fitting(seed, users=users, brokers=brokers, slack=slack)
    for method in METHODS:
        check(problem, method(problem, seed=seed))


def test_a_problem_that_only_just_fails_is_refused_with_proof() -> None:
    """Three halves do not fit into two wholes that are a little smaller."""
    problem = publishers([2.0, 2.0, 2.0], [3.5, 3.5])
    with pytest.raises(InfeasiblePlan, match=r"short by 0\.5; .* is proven$") as raised:
        make_room(problem, nobody(problem))
    assert raised.value.shortfall == pytest.approx(0.5)
    for method in METHODS:
        with pytest.raises(InfeasiblePlan, match=r"is proven$"):
            method(problem)


def test_a_problem_too_large_to_decide_is_refused_without_proof() -> None:
    problem = publishers([2.0] * 71, [3.0] * 70)
    with pytest.raises(InfeasiblePlan, match=r"short by 1; .* is not proven$"):
        make_room(problem, nobody(problem))


def test_without_highs_the_message_claims_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many users to try all ways, few enough for an integer program."""
    problem = publishers([2.0] * 50 + [1.1], [5.0] * 25)
    with pytest.raises(InfeasiblePlan, match=r"is proven$"):
        make_room(problem, nobody(problem))
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(InfeasiblePlan, match=r"is not proven$"):
        make_room(problem, nobody(problem))
