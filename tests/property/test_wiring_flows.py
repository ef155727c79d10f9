"""What flows between brokers is what the core is paid for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.wiring_flows import flows_by_message
from tests.strategies_wiring import random_wiring_problem, wiring_problems

from distributary.wiring.cost import cost
from distributary.wiring.flows import flows
from distributary.wiring.problem import WiringProblem

CORES = ("mst", "one-tree")


def assigned(problem: WiringProblem, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.random.default_rng(seed).integers(problem.broker_count, size=problem.user_count)


@given(
    wiring_problems(users_max=8, brokers_max=6, channels_max=3),
    st.integers(0, 1000),
    st.sampled_from(CORES),
)
@settings(max_examples=150)
def test_flows_times_prices_are_the_core_cost(problem: WiringProblem, seed: int, core: str) -> None:
    broker_of = assigned(problem, seed)
    paid = float((flows(problem, broker_of, core=core) * problem.core_prices).sum())
    assert paid == pytest.approx(cost(problem, broker_of, core=core).core, rel=1e-9, abs=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 7), st.sampled_from(CORES))
@settings(max_examples=100)
def test_every_pair_carries_what_its_messages_add_up_to(seed: int, brokers: int, core: str) -> None:
    """Without ties there is one spanning tree, so that each pair can be compared."""
    problem = random_wiring_problem(seed, users=8, brokers=brokers, channels=3)
    broker_of = assigned(problem, seed)
    expected = flows_by_message(problem, broker_of, core)
    assert flows(problem, broker_of, core=core) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(wiring_problems())
@settings(max_examples=50)
def test_nothing_flows_when_all_are_at_one_broker(problem: WiringProblem) -> None:
    together = np.zeros(problem.user_count, dtype=np.int64)
    assert not flows(problem, together).any()
    assert not flows(problem, together, core="one-tree").any()
