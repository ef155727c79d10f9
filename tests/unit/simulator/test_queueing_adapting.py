"""Adapting trees at run time by what nodes have measured and reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from distributary.arrays import FloatArray
from distributary.errors import BadInput
from distributary.fidelity import build_trees, check, loss
from distributary.fidelity.generate import generate_problem
from distributary.fidelity.planner import adapt
from distributary.simulator.queueing import (
    Adapting,
    Change,
    QueueingRun,
    first_servers,
    simulate,
    slowed,
)
from distributary.simulator.queueing import _event_kernels as kernels
from distributary.simulator.queueing.adapting import Observer
from distributary.simulator.queueing.model import Model

PROBLEM = generate_problem(seed=6, servers=40, routers=100)
FOREST = adapt(PROBLEM, build_trees(PROBLEM, method="greedy").forest)[0]
DEAF = Adapting(threshold=1e9)
"""Nobody ever reports anything."""


def tally(
    meant: FloatArray, steps: dict[int, tuple[float, float, float, float]] | None = None
) -> kernels.Tally:
    """Return a tally of so many updates, and of filtering and sending in the first window."""
    shape = PROBLEM.rates.shape
    copies = np.zeros((*shape, 4))
    copies[:, :, kernels.MEANT] = meant
    counted = np.zeros((shape[0], 1, 4))
    for node, columns in (steps or {}).items():
        counted[node, 0] = columns
    rows = np.zeros((shape[0], 1))
    return kernels.Tally(copies, np.zeros(shape, np.int64), rows, rows, rows, rows, counted)


def same(one: QueueingRun, two: QueueingRun) -> bool:
    return one.received == two.received and one.delays.tolist() == two.delays.tolist()


def test_without_news_a_tree_that_cannot_be_improved_stays() -> None:
    static = simulate(PROBLEM, FOREST, seconds=2_000.0, seed=1)
    adapting = simulate(PROBLEM, FOREST, seconds=2_000.0, seed=1, adapting=DEAF)
    assert same(static, adapting)
    assert [r.at_s for r in adapting.rounds] == [200.0 * k for k in range(1, 10)]
    assert {(r.moved, r.reports) for r in adapting.rounds} == {(0, 0)}
    assert all(r.weighed > 100 for r in adapting.rounds)
    assert adapting.forest.parents.tolist() == FOREST.parents.tolist()


def test_a_round_is_a_round_of_the_planner_by_what_is_believed() -> None:
    start = build_trees(PROBLEM, method="random", seed=1).forest
    run = simulate(PROBLEM, start, seconds=650.0, seed=1, adapting=DEAF)
    expected, weighed = adapt(PROBLEM, start, rounds=3)
    assert run.forest.parents.tolist() == expected.parents.tolist()
    assert sum(r.weighed for r in run.rounds) == weighed
    assert all(r.moved > 0 for r in run.rounds)


def test_a_random_tree_comes_near_a_planned_one() -> None:
    start = build_trees(PROBLEM, method="random", seed=1).forest
    run = simulate(PROBLEM, start, seconds=10_000.0, seed=1, adapting=Adapting())
    check(PROBLEM, run.forest)
    planned = simulate(PROBLEM, FOREST, seconds=10_000.0, seed=1)
    assert run.average_loss_series[0] > 1.3 * planned.average_loss_series[0]
    assert run.average_loss_series[-1] < 1.1 * planned.average_loss_series[-1]


@pytest.mark.parametrize("approach", ["one-tree", "tree-each"])
def test_servers_that_slow_down_are_moved_out_of_the_way(approach: str) -> None:
    drawn = generate_problem(seed=6, servers=40, routers=100, objects=3, rates=(0.7, 2.0))
    problem = slowed(drawn, [0], 5.0)
    forest = build_trees(problem, method="greedy", approach=approach).forest
    busiest = np.argsort(-loss(problem, forest).loads[1:])[:5] + 1
    slow = slowed(problem, busiest.tolist(), 10.0)
    changes = [Change(2_000.0, slow)]
    static, adapting = (
        simulate(problem, forest, seconds=8_000.0, seed=2, changes=changes, adapting=settings)
        for settings in (None, Adapting())
    )
    check(problem, adapting.forest)
    assert static.average_loss_series[-1] > 3.0 * static.average_loss_series[0]
    assert adapting.average_loss_series[-1] < 1.25 * adapting.average_loss_series[0]
    assert loss(slow, adapting.forest).loads.max() < 0.5 < loss(slow, forest).loads.max()
    # Whatever the trees, everybody gets what is meant for it, once.
    assert adapting.meant.tolist() == static.meant.tolist()


def test_links_that_slow_down_are_noticed() -> None:
    delays = PROBLEM.delays.copy()
    for child in first_servers(FOREST, 4):
        delays[0, child] *= 20.0
    far = replace(PROBLEM, delays=delays)
    changes = [Change(500.0, far)]
    runs = [
        simulate(PROBLEM, FOREST, seconds=6_000.0, seed=3, changes=changes, adapting=settings)
        for settings in (None, Adapting())
    ]
    assert runs[1].average_loss_series[-1] < 0.7 * runs[0].average_loss_series[-1]


def test_the_same_seed_adapts_in_the_same_way() -> None:
    start = build_trees(PROBLEM, method="random", seed=1).forest
    one, two = (
        simulate(PROBLEM, start, seconds=1_000.0, seed=4, adapting=Adapting()) for _ in range(2)
    )
    assert same(one, two)
    assert one.rounds == two.rounds


def test_times_are_reported_when_they_have_changed_by_more_than_the_threshold() -> None:
    observer = Observer(PROBLEM, Adapting(samples_min=10))
    filters, sends = PROBLEM.filter_times, PROBLEM.send_times
    observer.close_window(
        50.0,
        tally(
            50.0 * PROBLEM.rates,
            {
                1: (100, 100 * 1.19 * filters[1], 20, 20 * 1.3 * sends[1]),
                2: (100, 100 * 1.21 * filters[2], 20, 20 * 0.84 * sends[2]),
                3: (100, 100 * 0.83 * filters[3], 20, 20 * sends[3]),
                4: (9, 9 * 5.0 * filters[4], 9, 9 * 5.0 * sends[4]),
            },
        ),
        PROBLEM.delays,
    )
    believed = observer.believed
    assert believed.filter_times / filters == pytest.approx(
        np.array([1.21 if i == 2 else 0.83 if i == 3 else 1.0 for i in range(41)])
    )
    assert believed.send_times / sends == pytest.approx(
        np.array([1.3 if i == 1 else 1.0 for i in range(41)])
    )
    _, done = observer.round(50.0, FOREST)
    assert done.reports == 3


def test_a_rate_is_told_from_enough_updates_only() -> None:
    rates = PROBLEM.rates
    meant = 2.0 * 30.0 * rates
    meant[5] = 0.0
    observer = Observer(PROBLEM, Adapting(samples_min=50))
    observer.close_window(30.0, tally(meant), PROBLEM.delays)
    enough = meant >= 50.0
    assert 5 < enough.sum() < 40
    assert observer.believed.rates == pytest.approx(np.where(enough, 2.0 * rates, rates))


def test_that_updates_stay_away_is_noticed_too() -> None:
    """Once enough should have come; and nobody stops wanting what it wants."""
    observer = Observer(PROBLEM, Adapting(samples_min=50))
    observer.close_window(200.0, tally(np.zeros(PROBLEM.rates.shape)), PROBLEM.delays)
    assert observer.believed.rates == pytest.approx(0.5 / 200.0)
    assert (observer.believed.wanted == PROBLEM.wanted).all()


def test_what_the_nodes_measure_is_what_they_do() -> None:
    """After a while, everybody who has children knows how slow it has become."""
    slow = slowed(PROBLEM, range(41), 3.0)
    settings = Adapting(samples_min=400)
    observer = Observer(PROBLEM, settings)
    model = Model(
        [(0.0, slow)], seconds=5_000.0, window_s=1_000.0, collect_s=settings.window_s, seed=1
    )
    model.use(slow, FOREST)
    for window in range(1, 100):
        model.run_until(window * settings.window_s)
        observer.close_window(window * settings.window_s, model.tally, slow.delays)
    busy = np.flatnonzero(model.tally.steps[:, :, kernels.SENT].sum(axis=1) > 800)
    assert len(busy) > 3
    believed = observer.believed
    assert believed.filter_times[busy] / slow.filter_times[busy] == pytest.approx(1.0, abs=0.25)
    assert believed.send_times[busy] / slow.send_times[busy] == pytest.approx(1.0, abs=0.25)
    assert believed.rates / slow.rates == pytest.approx(1.0, abs=0.25)


def test_settings_out_of_range_are_refused() -> None:
    for words, arguments in (
        ("window_s: is 0", {"window_s": 0.0}),
        ("threshold: is -1", {"threshold": -1.0}),
        ("round_s: is 70", {"round_s": 70.0}),
        ("round_s: is inf", {"round_s": float("inf")}),
        ("samples_min: is 0", {"samples_min": 0}),
    ):
        with pytest.raises(BadInput, match=words):
            Adapting(**arguments)
