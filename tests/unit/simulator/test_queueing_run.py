"""Running streams through trees: what changes on the way, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from distributary.errors import BadInput, InvalidPlan, TooLarge
from distributary.fidelity import ROOT, FidelityProblem, Forest, build_trees, loss
from distributary.fidelity.generate import generate_problem
from distributary.simulator.queueing import Change, first_servers, simulate, slowed

# A source that is slow itself leaves work to the servers.
PROBLEM = slowed(generate_problem(seed=4, servers=20, routers=60, rates=(2.0, 6.0)), [0], 5.0)
FOREST = build_trees(PROBLEM, method="greedy").forest
BUSIEST = int(loss(PROBLEM, FOREST).loads[1:].argmax()) + 1


def test_the_same_seed_gives_the_same_run_and_another_one_another() -> None:
    one, two, other = (simulate(PROBLEM, FOREST, seconds=500.0, seed=s) for s in (1, 1, 2))
    assert one.loss.tolist() == two.loss.tolist()
    assert one.load_series.tolist() == two.load_series.tolist()
    assert one.loss.tolist() != other.loss.tolist()


def test_a_run_is_measured_window_by_window() -> None:
    run = simulate(PROBLEM, FOREST, seconds=2_500.0, seed=1)
    assert run.window_lengths.tolist() == [1_000.0, 1_000.0, 500.0]
    assert run.loss_series.shape == run.outside_series.shape == run.load_series.shape == (3, 21)
    assert run.average_loss == pytest.approx(run.loss[1:].mean())
    assert run.average_outside == pytest.approx(run.outside[1:].mean())
    assert run.average_loss == pytest.approx(loss(PROBLEM, FOREST).average, rel=0.15)
    assert 0.0 < run.average_outside < run.average_loss


def test_servers_are_averaged_over_their_objects_before_they_are_averaged() -> None:
    """As planners do: a server that wants much counts no more than one that wants little."""
    problem = FidelityProblem(
        ("s", "near", "far"),
        ("a", "b", "c"),
        np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 1.0], [2.0, 0.0, 0.0]]),
        np.full(3, 0.001),
        np.full(3, 0.001),
        np.array([[0.0, 0.01, 0.2], [0.01, 0.0, 0.2], [0.2, 0.2, 0.0]]),
    )
    forest = build_trees(problem, method="source").forest
    run = simulate(problem, forest, seconds=2_000.0)
    for average, copies in ((run.average_loss, run.loss), (run.average_outside, run.outside)):
        assert average == pytest.approx((copies[1].mean() + copies[2, 0]) / 2.0)
    assert run.average_loss == pytest.approx(loss(problem, forest).average, rel=0.1)


def test_losses_rise_when_nodes_slow_down_and_fall_when_they_recover() -> None:
    run = simulate(
        PROBLEM,
        FOREST,
        seconds=3_000.0,
        changes=[Change(1_000.0, slowed(PROBLEM, [BUSIEST], 6.0)), Change(2_000.0, PROBLEM)],
    )
    before, during, after = run.average_loss_series
    assert during > 1.5 * before
    assert after == pytest.approx(before, rel=0.1)
    assert run.load_series[1, BUSIEST] == pytest.approx(6 * run.load_series[0, BUSIEST], rel=0.1)


def test_slower_links_are_felt_from_when_they_slow_down() -> None:
    far = replace(PROBLEM, delays=PROBLEM.delays * 10.0)
    run = simulate(PROBLEM, FOREST, seconds=2_000.0, changes=[Change(1_000.0, far)])
    static = [simulate(problem, FOREST, seconds=2_000.0) for problem in (PROBLEM, far)]
    for window, other in enumerate(static):
        assert run.average_loss_series[window] == pytest.approx(
            other.average_loss_series[window], rel=0.02
        )
    assert run.average_loss_series[1] > 3.0 * run.average_loss_series[0]


def test_rates_change_how_often_is_published_and_who_needs_it() -> None:
    rates = PROBLEM.rates.copy()
    rates[0] *= 2.0
    rates[1:] = rates[1:, ::-1] * 0.5
    slower = replace(PROBLEM, rates=rates)
    run = simulate(PROBLEM, FOREST, seconds=8_000.0, changes=[Change(4_000.0, slower)])
    assert run.published[0] == pytest.approx(4_000.0 * 6.0 * 3.0, rel=0.02)
    expected = 4_000.0 * (PROBLEM.rates[1:] + rates[1:])
    assert run.meant[1:] == pytest.approx(expected, rel=0.05)


def test_nothing_is_lost_or_doubled_when_trees_change() -> None:
    """Updates that are under way when the trees change arrive by the old ones."""
    forests = [build_trees(PROBLEM, method="random", seed=seed).forest for seed in range(8)]
    busy = slowed(PROBLEM, range(21), 5.0)
    changes = [Change(100.0 * (k + 1), forest=forest) for k, forest in enumerate(forests)]
    static = simulate(busy, FOREST, seconds=1_000.0, seed=5)
    moving = simulate(busy, FOREST, seconds=1_000.0, seed=5, changes=changes)
    assert moving.meant.tolist() == static.meant.tolist()
    assert moving.received >= moving.meant.sum()
    assert moving.forest is forests[-1]


def test_a_node_that_cannot_keep_up_falls_behind_for_as_long_as_it_runs() -> None:
    names, times = ("s", "n1"), np.array([1.5, 0.0])
    problem = FidelityProblem(names, ("x",), np.ones((2, 1)), times, np.zeros(2), np.zeros((2, 2)))
    run = simulate(problem, Forest("one-tree", np.array([[ROOT, 0]])), seconds=10_000.0, seed=2)
    assert loss(problem, run.forest).overloaded == ("s",)
    assert run.loads[0] == pytest.approx(1.0, abs=0.01)
    # After t seconds a third of what was published waits, half a second's delay per second.
    expected = 0.5 * (np.arange(10) * 1_000.0 + 500.0)
    assert run.average_loss_series == pytest.approx(expected, rel=0.25)
    assert run.average_outside == pytest.approx(1.0, abs=0.02)


def test_an_object_that_nobody_wants_is_published_and_goes_nowhere() -> None:
    problem = FidelityProblem(
        ("s", "n1", "n2"),
        ("a", "b"),
        np.array([[1.0, 1.0], [0.5, 0.0], [0.0, 0.0]]),
        np.full(3, 0.01),
        np.full(3, 0.01),
        np.full((3, 3), 0.1),
    )
    forest = build_trees(problem, method="source").forest
    run = simulate(problem, forest, seconds=1_000.0)
    assert run.published.min() > 900
    assert run.meant.sum() == run.meant[1, 0] == run.received
    assert run.handled.tolist() == [run.published[0], 0, 0]
    assert run.average_loss == pytest.approx(run.loss[1, 0])
    unwanted = replace(problem, rates=np.zeros((3, 2)))
    silent = simulate(unwanted, build_trees(unwanted, method="source").forest, seconds=10.0)
    assert (silent.received, silent.average_loss, silent.average_outside) == (0, 0.0, 0.0)


def test_the_first_servers_are_those_next_to_the_source() -> None:
    parents = np.array([[ROOT, 3, 0, 0, 2, 4, 3]])
    forest = Forest("one-tree", parents)
    assert first_servers(forest, 4) == (2, 3, 1, 4)
    assert first_servers(forest, 99) == (2, 3, 1, 4, 6, 5)


def test_slowing_nodes_down_leaves_the_others_as_they_are() -> None:
    slow = slowed(PROBLEM, (2, 5), 10.0)
    ratio = slow.filter_times / PROBLEM.filter_times
    assert np.flatnonzero(ratio != 1.0).tolist() == [2, 5]
    assert ratio[[2, 5]] == pytest.approx(10.0)
    assert slow.send_times[5] == pytest.approx(10.0 * PROBLEM.send_times[5])
    assert slow.delays is PROBLEM.delays
    with pytest.raises(BadInput, match="factor: is 0"):
        slowed(PROBLEM, (2,), 0.0)


def test_numbers_out_of_range_are_refused() -> None:
    for words, arguments in (
        ("seed: is -1", {"seed": -1}),
        ("seconds: is 0", {"seconds": 0.0}),
        ("seconds: is inf", {"seconds": float("inf")}),
        ("window_s: is nan", {"window_s": float("nan")}),
        ("window_s: makes more than 100,000 windows", {"window_s": 0.1}),
    ):
        with pytest.raises(BadInput, match=words):
            simulate(PROBLEM, FOREST, **arguments)


def test_too_many_updates_are_refused_before_memory_runs_out() -> None:
    often = replace(PROBLEM, rates=PROBLEM.rates * 1_000.0)
    with pytest.raises(TooLarge, match="about 120,000,000 updates"):
        simulate(often, FOREST)


def test_changes_that_do_not_fit_are_refused() -> None:
    fewer = PROBLEM.rates.copy()
    fewer[3] = 0.0
    each = build_trees(PROBLEM, method="greedy", approach="tree-each").forest
    loop = FOREST.parents.copy()
    loop[0, 1], loop[0, 2] = 2, 1
    for words, changes in (
        ("one is at 0 s", [Change(0.0)]),
        ("one is at 900 s", [Change(900.0)]),
        ("in order", [Change(5.0), Change(5.0)]),
        ("who wants what", [Change(5.0, replace(PROBLEM, rates=fewer))]),
        ("another approach", [Change(5.0, forest=each)]),
    ):
        with pytest.raises(BadInput, match=words):
            simulate(PROBLEM, FOREST, seconds=900.0, changes=changes)
    with pytest.raises(InvalidPlan, match="cycle"):
        simulate(PROBLEM, FOREST, changes=[Change(5.0, forest=Forest("one-tree", loop))])
    with pytest.raises(InvalidPlan, match="cycle"):
        simulate(PROBLEM, Forest("one-tree", loop))
