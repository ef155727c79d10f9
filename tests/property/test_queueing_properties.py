"""The compiled queueing model does, draw for draw, what its description says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import queueing as reference
from tests.strategies_fidelity import problems_with_forests, random_forest

from distributary.fidelity import FidelityProblem, Forest, loss
from distributary.simulator.queueing import Change, QueueingRun, simulate, slowed

SECONDS = 9.0
BUSY = (0.05, 0.5, 0.95, 1.05, 2.0)


@st.composite
def streams_with_changes(
    draw: st.DrawFn,
) -> tuple[FidelityProblem, Forest, list[Change]]:
    """Draw a problem, trees for it, and changes of times, delays, rates and trees."""
    problem, forest = draw(problems_with_forests(servers_max=6, objects_max=3, busy=BUSY))
    changes = []
    current = problem
    for at in sorted(draw(st.sets(st.sampled_from([0.5, 2.0, 4.5, 7.75]), max_size=3))):
        kind = draw(st.sampled_from(["slowed", "delays", "rates", "trees", "all"]))
        other = forest
        if kind in ("trees", "all"):
            other = random_forest(problem, forest.approach, seed=draw(st.integers(0, 2**32)))
        if kind in ("slowed", "all"):
            nodes = draw(st.sets(st.integers(0, problem.node_count - 1), min_size=1))
            current = slowed(current, sorted(nodes), draw(st.sampled_from([0.25, 10.0])))
        if kind in ("delays", "all"):
            current = replace(current, delays=current.delays[::-1, ::-1].copy())
        if kind in ("rates", "all"):
            factors = np.random.default_rng(draw(st.integers(0, 2**32))).uniform(
                0.5, 2.0, current.rates.shape
            )
            current = replace(current, rates=current.rates * factors)
        changes.append(
            Change(
                at,
                problem=None if kind == "trees" else current,
                forest=other if kind in ("trees", "all") else None,
            )
        )
    return problem, forest, changes


def assert_same(run: QueueingRun, expected: reference.Measured) -> None:
    """Compare counts exactly, and times but for the rounding of their sums."""
    assert run.received == expected.received
    assert run.meant.tolist() == expected.meant.tolist()
    assert run.handled.tolist() == expected.handled
    for name in (
        "delays",
        "outside",
        "loss_series",
        "outside_series",
        "load_series",
        "waits",
        "services",
    ):
        measured = getattr(run, name)
        np.testing.assert_allclose(
            measured, getattr(expected, name), rtol=1e-9, atol=1e-9, err_msg=name
        )


@settings(max_examples=200)
@given(streams_with_changes(), st.integers(0, 2**32), st.sampled_from([2.0, 4.0, 9.0, 20.0]))
def test_the_compiled_model_measures_what_the_slow_one_does(
    stream: tuple[FidelityProblem, Forest, list[Change]], seed: int, window_s: float
) -> None:
    problem, forest, changes = stream
    run = simulate(problem, forest, seconds=SECONDS, seed=seed, window_s=window_s, changes=changes)
    assert_same(
        run,
        reference.run(
            problem, forest, seconds=SECONDS, seed=seed, window_s=window_s, changes=changes
        ),
    )


@given(problems_with_forests(servers_max=8, objects_max=4), st.integers(0, 2**32))
def test_what_is_measured_fits_together(stream: tuple[FidelityProblem, Forest], seed: int) -> None:
    problem, forest = stream
    run = simulate(problem, forest, seconds=20.0, seed=seed, window_s=3.0)
    assert (run.meant <= run.published).all()
    assert (run.meant[~problem.wanted] == 0).all()
    assert run.received >= run.meant.sum()
    assert (run.outside <= 1.0 + 1e-12).all()
    # Times outside are the delays, less what they share and what is left at the end.
    assert (run.outside <= run.loss + 1e-12).all()
    assert (run.load_series <= 1.0 + 1e-12).all()
    np.testing.assert_allclose(run.loss, run.delays * run.meant / run.seconds, atol=1e-12)
    wishes = np.maximum(problem.wanted.sum(axis=1), 1)
    for series, total in ((run.loss_series, run.loss), (run.outside_series, run.outside)):
        np.testing.assert_allclose(
            run.window_lengths @ series / run.seconds, total.sum(axis=1) / wishes, atol=1e-9
        )


@given(problems_with_forests(servers_max=8, objects_max=4), st.integers(0, 2**32))
def test_nodes_that_take_no_time_add_no_delay(
    stream: tuple[FidelityProblem, Forest], seed: int
) -> None:
    problem, forest = stream
    idle = replace(
        problem,
        filter_times=np.zeros(problem.node_count),
        send_times=np.zeros(problem.node_count),
        adaptation=None,
    )
    run = simulate(idle, forest, seconds=20.0, seed=seed)
    predicted = loss(idle, forest)
    expected = np.where(run.meant > 0, np.broadcast_to(predicted.delays, run.meant.shape), 0.0)
    np.testing.assert_allclose(run.delays, expected, atol=1e-9)
    assert run.load_series.max() == 0.0


@given(problems_with_forests(servers_max=8, objects_max=1), st.integers(0, 2**32))
def test_with_one_object_a_tree_each_is_one_tree(
    stream: tuple[FidelityProblem, Forest], seed: int
) -> None:
    problem, forest = stream
    runs = [
        simulate(problem, Forest(approach, forest.parents), seconds=20.0, seed=seed)
        for approach in ("one-tree", "tree-each")
    ]
    assert runs[0].loss.tolist() == runs[1].loss.tolist()
    assert runs[0].load_series.tolist() == runs[1].load_series.tolist()


@given(problems_with_forests(servers_max=6, objects_max=3, busy=(0.5,)), st.integers(0, 2**32))
def test_a_change_to_what_is_there_already_changes_nothing(
    stream: tuple[FidelityProblem, Forest], seed: int
) -> None:
    """Also while updates are under way: they go on where they are."""
    problem, forest = stream
    plain = simulate(problem, forest, seconds=20.0, seed=seed)
    again = simulate(
        problem,
        forest,
        seconds=20.0,
        seed=seed,
        changes=[Change(at, replace(problem), replace(forest)) for at in (3.0, 3.5, 11.0)],
    )
    assert plain.received == again.received
    assert plain.delays.tolist() == again.delays.tolist()
    assert plain.outside.tolist() == again.outside.tolist()


@pytest.mark.parametrize("approach", ["one-tree", "tree-each"])
def test_updates_do_not_depend_on_trees_or_times(approach: str) -> None:
    """So that two trees can be compared under the very same stream."""
    rng = np.random.default_rng(5)
    rates = rng.uniform(0.5, 2.0, (9, 3))
    names = ("s", *(f"n{i}" for i in range(1, 9)))
    problem = FidelityProblem(
        names, ("a", "b", "c"), rates, np.full(9, 0.01), np.full(9, 0.002), np.full((9, 9), 0.1)
    )
    one, two = (
        simulate(other, random_forest(other, approach, seed=seed), seconds=200.0, seed=7)
        for seed, other in enumerate((problem, slowed(problem, range(9), 0.5)))
    )
    assert one.published.tolist() == two.published.tolist()
    assert one.meant.tolist() == two.meant.tolist()
    assert one.delays.tolist() != two.delays.tolist()
