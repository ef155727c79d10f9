"""What a move costs, against making it, against starting from scratch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies_fidelity import problems_with_forests, random_forest, random_problem

from distributary.fidelity._anneal_kernels import delta_of_move, draw_move, make_move
from distributary.fidelity._descent_kernels import adapt_round
from distributary.fidelity._move_kernels import (
    delta_of_relocation,
    delta_of_rotation,
    exchange,
    is_below,
    lowest_common,
    reparent,
    rotate,
)
from distributary.fidelity._state_kernels import LOAD_LINEAR, NOBODY, PARENT, PackedForest
from distributary.fidelity.forest import Forest, check
from distributary.fidelity.loss import loss
from distributary.fidelity.model import forest_of, servers_of, state_of
from distributary.fidelity.problem import FidelityProblem
from distributary.xorshift import seed_state


def assert_consistent(problem: FidelityProblem, state: PackedForest, approach: str) -> None:
    """The sums are those of a state built from scratch, and the cost is the loss."""
    forest = forest_of(state, approach)
    check(problem, forest)
    scratch = state_of(problem, approach, forest.parents)
    assert state.total[0] == pytest.approx(scratch.total[0], rel=1e-7, abs=1e-12)
    np.testing.assert_allclose(state.nodes, scratch.nodes, rtol=1e-7, atol=1e-9)
    found = loss(problem, forest)
    if found.loads.max() < LOAD_LINEAR:
        assert state.total[0] == pytest.approx(found.average, rel=1e-7, abs=1e-12)


def change_of(state: PackedForest, t: int, i: int, kind: int, other: int) -> float:
    """Return the evaluated change of a reparenting (0), an exchange (1) or a rotation (2)."""
    arrays = (*state[:4], state.delays, state.adaptation)
    if kind == 2:
        return delta_of_rotation(*arrays, t, i)
    to = other if kind == 0 else int(state.links[t, other, PARENT])
    top = lowest_common(state.links, t, int(state.links[t, i, PARENT]), to)
    return delta_of_relocation(*arrays, state.rows, t, i, NOBODY if kind == 0 else other, to, top)


@settings(max_examples=150)
@given(problems_with_forests(), st.integers(0, 2**32 - 1))
def test_any_move_changes_the_cost_as_evaluated(
    drawn: tuple[FidelityProblem, Forest], seed: int
) -> None:
    """Between any two nodes: evaluation, the move itself and a fresh start agree."""
    problem, forest = drawn
    state = state_of(problem, forest.approach, forest.parents)
    assert_consistent(problem, state, forest.approach)
    rng = np.random.default_rng(seed)
    start, servers = servers_of(problem, forest.approach)
    for _ in range(12):
        t = int(rng.integers(len(start) - 1))
        own = servers[start[t] : start[t + 1]]
        if not len(own):
            continue
        i, kind = int(rng.choice(own)), int(rng.integers(3))
        other = int(rng.choice(own)) if kind == 1 else int(rng.choice(np.append(own, 0)))
        parent = int(state.links[t, i, PARENT])
        if kind == 2 and parent == 0:
            continue
        if kind < 2 and is_below(state.links, t, other, i):
            continue
        if kind == 1 and (
            is_below(state.links, t, i, other) or parent == state.links[t, other, PARENT]
        ):
            continue
        before = float(state.total[0])
        expected = change_of(state, t, i, kind, other)
        if kind == 0:
            reparent(state, t, i, other)
        elif kind == 1:
            exchange(state, t, i, other)
        else:
            rotate(state, t, i)
        scale = max(abs(before), abs(state.total[0]), 1e-9)
        assert state.total[0] - before == pytest.approx(expected, abs=1e-8 * scale)
        assert_consistent(problem, state, forest.approach)


@settings(max_examples=60)
@given(problems_with_forests(), st.integers(0, 2**32 - 1))
def test_the_six_moves_change_the_cost_as_evaluated(
    drawn: tuple[FidelityProblem, Forest], seed: int
) -> None:
    """Random draws among promotion, demotion, the swaps and adoption are what they say."""
    problem, forest = drawn
    state = state_of(problem, forest.approach, forest.parents)
    start, servers = servers_of(problem, forest.approach)
    numbers = seed_state(seed)
    for attempt in range(40):
        t = attempt % (len(start) - 1)
        own = servers[start[t] : start[t + 1]]
        if not len(own):
            continue
        kind, i, other, top = draw_move(numbers, state.links, state.sums, t, own)
        if kind < 0:
            continue
        before = float(state.total[0])
        expected = delta_of_move(
            *state[:4], state.delays, state.adaptation, state.rows, t, kind, i, other, top
        )
        make_move(state, t, kind, i, other)
        scale = max(abs(before), abs(state.total[0]), 1e-9)
        assert state.total[0] - before == pytest.approx(expected, abs=1e-8 * scale)
    assert_consistent(problem, state, forest.approach)


@pytest.mark.parametrize("approach", ["one-tree", "tree-each"])
def test_adaptation_only_improves_until_no_move_helps(approach: str) -> None:
    """Each round makes the cost smaller; at the end no drawn move makes it smaller still."""
    problem = random_problem(3, servers=30, objects=3, busy=3.0)
    forest = random_forest(problem, approach, seed=1)
    state = state_of(problem, approach, forest.parents)
    costs = [float(state.total[0])]
    while True:
        made, weighed = adapt_round(state, 0, len(state.links))
        assert weighed > 0
        if made == 0:
            break
        costs.append(float(state.total[0]))
    assert costs == sorted(costs, reverse=True)
    assert len(costs) > 1
    assert_consistent(problem, state, approach)
    start, servers = servers_of(problem, approach)
    numbers = seed_state(5)
    for attempt in range(3000):
        t = attempt % (len(start) - 1)
        own = servers[start[t] : start[t + 1]]
        kind, i, other, top = draw_move(numbers, state.links, state.sums, t, own)
        if kind >= 0:
            change = delta_of_move(
                *state[:4], state.delays, state.adaptation, state.rows, t, kind, i, other, top
            )
            assert change >= -1e-9 * costs[-1]
