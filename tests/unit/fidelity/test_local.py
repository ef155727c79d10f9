"""What a node can tell from what it knows, against what the whole forest loses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.explorer.moves import legal_moves
from tests.strategies_fidelity import random_forest, random_problem

from distributary.arrays import FloatArray, IntArray
from distributary.broker.adaptation.mover import steps_of
from distributary.fidelity._descent_kernels import adapt_round
from distributary.fidelity._state_kernels import LOAD_LINEAR, PARENT
from distributary.fidelity.forest import Forest
from distributary.fidelity.local import MOVES, LocalMove, LocalView, best_move
from distributary.fidelity.loss import loss
from distributary.fidelity.model import state_of
from distributary.fidelity.problem import FidelityProblem


def below(parents: IntArray, k: int) -> list[int]:
    """Return a node and all below it."""
    found = [k]
    for at in found:
        found.extend(np.flatnonzero(parents == at).tolist())
    return found


def tree_figures(
    problem: FidelityProblem, forest: Forest, t: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return rates (n, x), peaks (n, x) and weights (n,) of a tree, walked anew for each node."""
    parents = forest.parents[t]
    one = forest.approach == "one-tree"
    rates = problem.rates if one else problem.rates[:, [t]]
    weights = problem.weights.sum(axis=1) if one else problem.weights[:, t]
    inside = parents != -2
    peaks = np.array(
        [
            rates[below(parents, k)].max(axis=0) if inside[k] else np.zeros(rates.shape[1])
            for k in range(len(parents))
        ]
    )
    return rates, peaks, weights


def work_at(problem: FidelityProblem, parents: IntArray, peaks: FloatArray, k: int) -> float:
    children = np.flatnonzero(parents == k)
    receivers = (peaks[children] > 0).sum(axis=0)
    filtering = problem.filter_times[k] * float(receivers @ peaks[k])
    return float(filtering + problem.send_times[k] * peaks[children].sum())


def view_at(problem: FidelityProblem, forest: Forest, t: int, k: int) -> LocalView:
    """Return what node `k` of tree `t` knows."""
    parents = forest.parents[t]
    rates, peaks, weights = tree_figures(problem, forest, t)
    children = np.flatnonzero(parents == k).tolist()
    lower = [i for c in children for i in np.flatnonzero(parents == c).tolist()]
    known = [k, *children, *lower]
    hidden: list[list[int]] = [
        np.flatnonzero(parents == i).tolist() if i in lower else [] for i in known
    ]
    elsewhere = np.zeros((len(known), 3))
    for other in range(len(forest.parents)):
        if other == t:
            continue
        _, tops, load = tree_figures(problem, forest, other)
        for at, i in enumerate(known):
            row = forest.parents[other]
            if row[i] != -2:
                under = load[below(row, i)[1:]].sum()
                elsewhere[at] += work_at(problem, row, tops, i), tops[i].sum(), under
    return LocalView(
        names=tuple(problem.names[i] for i in known),
        parents=np.array([-1, *(known.index(parents[i]) for i in known[1:])]),
        rates=np.array([peaks[i] if i in lower else rates[i] for i in known]),
        weights=weights[known],
        filter_times=problem.filter_times[known],
        send_times=problem.send_times[known],
        delays=problem.delays[np.ix_(known, known)],
        elsewhere=elsewhere,
        below_count=np.array([len(h) for h in hidden]),
        below_receivers=np.array([(peaks[h] > 0).sum(axis=0) for h in hidden]).reshape(
            len(known), -1
        ),
        below_passed=np.array([peaks[h].sum(axis=0) for h in hidden]).reshape(len(known), -1),
        below_weight=np.array(
            [weights[below(parents, i)[1:]].sum() if i in lower else 0.0 for i in known]
        ),
    )


def moved(forest: Forest, t: int, steps: tuple[tuple[int, int], ...]) -> Forest:
    parents = forest.parents.copy()
    for mover, to in steps:
        parents[t, mover] = to
    return Forest(forest.approach, parents)


def gains(
    problem: FidelityProblem, forest: Forest, t: int, k: int
) -> dict[tuple[tuple[int, int], ...], float]:
    """Return by how much every legal move really lowers the loss."""
    before = loss(problem, forest).average
    parents = forest.parents[t]
    grandchildren = {
        c: np.flatnonzero(parents == c).tolist() for c in np.flatnonzero(parents == k).tolist()
    }
    found = {}
    for _, steps in legal_moves(k, grandchildren):
        after = loss(problem, moved(forest, t, steps))
        assume(after.loads.max() < LOAD_LINEAR)
        found[steps] = before - after.average
    return found


def steps_in(
    problem: FidelityProblem, forest: Forest, t: int, k: int, move: LocalMove
) -> tuple[tuple[int, int], ...]:
    index = {name: i for i, name in enumerate(problem.names)}
    parents = dict(enumerate(forest.parents[t].tolist()))
    return steps_of(
        move.kind, top=k, moved=index[move.moved], other=index[move.other], parents=parents
    )


@settings(max_examples=120)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([3, 5, 8, 12]),
    st.sampled_from([1, 3]),
    st.sampled_from(["one-tree", "tree-each"]),
    st.sampled_from([0.05, 0.4]),
)
def test_the_best_local_move_is_the_best_of_all_and_gains_what_it_says(
    seed: int, servers: int, objects: int, approach: str, busy: float
) -> None:
    """At every node of every tree, however much is below its grandchildren."""
    problem = random_problem(seed, servers=servers, objects=objects, busy=busy)
    forest = random_forest(problem, approach, seed=seed)
    assume(loss(problem, forest).loads.max() < LOAD_LINEAR)
    rng = np.random.default_rng(seed)
    t = int(rng.integers(len(forest.parents)))
    inner = np.unique(forest.parents[t][forest.parents[t] >= 0])
    for k in inner.tolist():
        real = gains(problem, forest, t, k)
        best = max(real.values(), default=0.0)
        move = best_move(view_at(problem, forest, t, k))
        if move is None:
            assert best <= 1e-9
        else:
            assert move.gain == pytest.approx(best, rel=1e-9, abs=1e-9)
            assert real[steps_in(problem, forest, t, k, move)] == pytest.approx(
                move.gain, rel=1e-9, abs=1e-9
            )


@pytest.mark.parametrize("approach", ["one-tree", "tree-each"])
@pytest.mark.parametrize("seed", range(8))
def test_at_the_root_of_a_shallow_tree_it_is_the_first_move_of_a_round(
    seed: int, approach: str
) -> None:
    """With the whole tree in view a node does what the planner's round does there."""
    problem = random_problem(seed, servers=7, objects=2, busy=0.3)
    inside = random_forest(problem, approach, seed=seed).parents != -2
    rng = np.random.default_rng(seed)
    t = 0
    members = [i for i in np.flatnonzero(inside[t]).tolist() if i > 0]
    first, rest = members[:3], members[3:]
    parents = np.where(inside, 0, -2)
    parents[:, 0] = -1
    for i in rest:
        parents[t, i] = rng.choice(first)
    forest = Forest(approach, parents)
    move = best_move(view_at(problem, forest, t, 0))
    state = state_of(problem, approach, parents)
    made, _ = adapt_round(state, t, t + 1)
    if move is None:
        assert made == 0 or (state.links[t, first, PARENT] == 0).all()
        return
    # The round goes on below the root, where it may move what was moved at most further down.
    steps = steps_in(problem, forest, t, 0, move)
    expected = moved(forest, t, steps).parents[t]
    after = state.links[t, :, PARENT]
    assert {i for i in members if after[i] == 0} == {i for i in members if expected[i] == 0}


def test_a_node_without_grandchildren_and_with_one_child_has_no_move() -> None:
    problem = random_problem(1, servers=1)
    forest = random_forest(problem, "one-tree", seed=1)
    assert best_move(view_at(problem, forest, 0, 0)) is None


def test_every_kind_of_move_is_found_somewhere() -> None:
    found = set()
    for seed in range(120):
        problem = random_problem(seed, servers=8, objects=1, busy=0.6)
        forest = random_forest(problem, "one-tree", seed=seed)
        if not np.isfinite(loss(problem, forest).average):
            continue
        for k in np.unique(forest.parents[0][forest.parents[0] >= 0]).tolist():
            move = best_move(view_at(problem, forest, 0, k))
            if move is not None:
                found.add(move.kind)
    assert found == set(MOVES)
