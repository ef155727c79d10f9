"""A change is evaluated as the cost of the wiring after it, and leaves no trace if undone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies_wiring import drawn_wiring_problems, random_wiring_problem

from distributary.arrays import IntArray
from distributary.wiring import WiringProblem, cost, loads
from distributary.wiring._search_kernels import estimate_move, estimate_moves
from distributary.wiring._state_kernels import WiringState, try_change
from distributary.wiring.core import reach, traffic
from distributary.wiring.model import state_of

CLOSE = 1e-9


def assert_consistent(problem: WiringProblem, state: WiringState, core: str) -> None:
    """Everything derived is what one would derive from the brokers of the users."""
    broker_of = state.broker_of
    entering, subscribers = traffic(problem, broker_of)
    np.testing.assert_array_equal(state.subscribers, subscribers)
    np.testing.assert_allclose(state.entering, entering, rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(
        state.reach, reach(problem.core_prices, subscribers > 0, core), rtol=CLOSE, atol=CLOSE
    )
    np.testing.assert_allclose(state.loads, loads(problem, broker_of), rtol=CLOSE, atol=CLOSE)
    assert state.total[0] == pytest.approx(cost(problem, broker_of, core=core).total, rel=CLOSE)
    for b in range(problem.broker_count):
        assert sorted(ring_of(state, b)) == np.flatnonzero(broker_of == b).tolist()


def ring_of(state: WiringState, b: int) -> list[int]:
    """The users of a broker as the ring has them."""
    users: list[int] = []
    u = int(state.ring[b])
    while u >= 0 and u not in users:
        users.append(u)
        assert state.last_user[state.next_user[u]] == u
        u = int(state.next_user[u])
    return users


@given(
    drawn_wiring_problems(users_max=7, brokers_max=5, channels_max=4),
    st.sampled_from(["mst", "one-tree"]),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.booleans()), max_size=12),
    st.integers(0, 2**16),
)
def test_moves_and_swaps_are_evaluated_as_what_they_change(
    problem: WiringProblem, core: str, steps: list[tuple[int, int, bool]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    start = rng.integers(0, problem.broker_count, problem.user_count)
    state = state_of(problem, start, core)
    for first, second, made in steps:
        before = state.broker_of.copy()
        after = before.copy()
        one, other = first % problem.user_count, second % problem.user_count
        changes = 1
        state.users[0], state.targets[0] = one, second % problem.broker_count
        if one != other and (first + second) % 2:
            changes = 2
            state.targets[0] = before[other]
            state.users[1], state.targets[1] = other, before[one]
        for i in range(changes):
            after[state.users[i]] = state.targets[i]
        old, new = (cost(problem, wiring, core=core).total for wiring in (before, after))
        delta = try_change(state, changes, np.inf if made else -np.inf)
        assert delta == pytest.approx(new - old, rel=CLOSE, abs=CLOSE * (1.0 + old))
        np.testing.assert_array_equal(state.broker_of, after if made else before)
        assert_consistent(problem, state, core)


@pytest.mark.parametrize("core", ["mst", "one-tree"])
def test_an_estimate_is_exact_where_all_traffic_enters_at_subscribers(core: str) -> None:
    """Then the guess behind it is no guess."""
    problem = random_wiring_problem(5, users=14, brokers=6, channels=3)
    everyone = WiringProblem.in_order(
        users=problem.users,
        brokers=problem.brokers,
        publishes=problem.publishes,
        subscribes=np.ones_like(problem.subscribes),
        access_prices=problem.access_prices,
        core_prices=problem.core_prices,
    )
    start = np.arange(everyone.user_count) % everyone.broker_count
    state = state_of(everyone, start, core)
    base = cost(everyone, start, core=core).total
    for u in range(everyone.user_count):
        estimate_moves(state, u)
        for b in range(everyone.broker_count):
            expected = cost(everyone, _moved(start, u, b), core=core).total - base
            assert state.scores[b] == pytest.approx(expected, abs=1e-6)
            assert estimate_move(state, u, b) == pytest.approx(expected, abs=1e-6)


def _moved(broker_of: IntArray, u: int, b: int) -> IntArray:
    after = broker_of.copy()
    after[u] = b
    return after
