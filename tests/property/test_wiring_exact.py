"""The exact wiring against the enumeration of all wirings, and an integer program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import wiring as reference
from tests.reference.wiring_program import minimum_cost
from tests.strategies_wiring import random_wiring_problem, wiring_problems

from distributary.errors import InfeasiblePlan, TooLarge
from distributary.wiring.cost import cost
from distributary.wiring.exact import BROKERS_MAX, exact_wiring, is_small
from distributary.wiring.generate import generate_problem
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import CORES, check


@settings(max_examples=80)
@given(wiring_problems(users_max=5, brokers_max=4), st.sampled_from(CORES))
def test_exact_equals_the_enumeration(problem: WiringProblem, core: str) -> None:
    """No wiring that respects the capacities costs less, and the bound says so."""
    broker_of, bound = exact_wiring(problem, core=core)
    check(problem, broker_of)
    expected = reference.best(problem, core)
    assert expected is not None
    total = cost(problem, broker_of, core=core).total
    assert total == pytest.approx(expected[0], rel=1e-9, abs=1e-9)
    assert bound == total


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    ("seed", "users", "brokers", "room"),
    [(1, 7, 3, "tight"), (2, 9, 3, "loose"), (3, 6, 4, "none")],
)
def test_exact_equals_the_integer_program(
    core: str, seed: int, users: int, brokers: int, room: str
) -> None:
    problem = random_wiring_problem(seed, users=users, brokers=brokers, channels=3, room=room)
    _, bound = exact_wiring(problem, core=core)
    assert bound == pytest.approx(minimum_cost(problem, core), rel=1e-6)


@pytest.mark.parametrize("core", CORES)
def test_no_random_wiring_costs_less(core: str) -> None:
    """Beyond the reach of the enumeration at least no wiring found at random is better."""
    problem = generate_problem(seed=5, users=16, brokers=6, channels=6, interests=(1, 3))
    broker_of, bound = exact_wiring(problem, core=core)
    check(problem, broker_of)
    rng = np.random.default_rng(1)
    for _ in range(300):
        other = broker_of.copy()
        moved = rng.random(len(other)) < rng.random()
        other[moved] = rng.integers(6, size=int(moved.sum()))
        if np.all(np.bincount(other, problem.demands, 6) <= problem.capacities):
            assert cost(problem, other, core=core).total >= bound * (1.0 - 1e-9)


def test_a_search_that_is_cut_short_still_bounds_the_optimum() -> None:
    problem = generate_problem(seed=2, users=26, brokers=8, channels=8, interests=(1, 3))
    start, _ = exact_wiring(problem, time_limit=0.0)
    broker_of, bound = exact_wiring(problem, time_limit=0.0, start=start)
    check(problem, broker_of)
    total = cost(problem, broker_of).total
    assert total <= cost(problem, start).total
    assert 0.5 * total < bound < total


def test_users_without_traffic_do_not_count() -> None:
    """They make no difference to the cost, so that any number of them is solved at once."""
    problem = random_wiring_problem(4, users=5, brokers=4, channels=2, room="tight")
    idle = WiringProblem.in_order(
        users=[*problem.users, *(f"x{i}" for i in range(200))],
        brokers=problem.brokers,
        publishes=np.vstack([problem.publishes, np.zeros((200, 2))]),
        subscribes=np.vstack([problem.subscribes, np.zeros((200, 2), dtype=np.bool_)]),
        access_prices=np.vstack([problem.access_prices, np.ones((200, 4))]),
        core_prices=problem.core_prices,
        capacities=problem.capacities,
    )
    assert is_small(idle)
    assert exact_wiring(idle)[1] == pytest.approx(exact_wiring(problem)[1])


@pytest.mark.parametrize(("users", "brokers"), [(6, BROKERS_MAX + 1), (100, 8), (40_000, 9)])
def test_large_problems_are_refused_before_anything_is_computed(users: int, brokers: int) -> None:
    problem = generate_problem(seed=1, users=users, brokers=brokers, channels=2)
    assert not is_small(problem)
    with pytest.raises(TooLarge, match=r"at most 10 brokers.*method 'auto'") as refused:
        exact_wiring(problem)
    assert refused.value.memory_bytes > 0.0


def test_users_that_do_not_fit_are_refused() -> None:
    """Three equal users do not fit on two brokers that hold one and a half each."""
    publishes = np.ones((3, 1))
    problem = WiringProblem.in_order(
        users=["a", "b", "c"],
        brokers=["x", "y"],
        publishes=publishes,
        subscribes=np.zeros((3, 1), dtype=np.bool_),
        access_prices=np.ones((3, 2)),
        core_prices=np.zeros((2, 2)),
        capacities=np.array([1.5, 1.5]),
    )
    with pytest.raises(InfeasiblePlan):
        exact_wiring(problem)
