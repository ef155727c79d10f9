"""The queueing model against what queueing theory and the cost model say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from distributary.arrays import FloatArray
from distributary.fidelity import ROOT, FidelityProblem, Forest, build_trees, loss
from distributary.fidelity.generate import generate_problem
from distributary.simulator.queueing import QueueingRun, simulate

SEEDS = range(10)


def star(
    rates: list[float], *, filter_time: float, send_time: float, source_rate: float = 1.0
) -> tuple[FidelityProblem, Forest]:
    """Return one node that serves leaves, without delays on the way to them."""
    count = len(rates) + 1
    problem = FidelityProblem(
        ("s", *(f"n{i:02d}" for i in range(1, count))),
        ("x",),
        np.array([[source_rate], *([rate] for rate in rates)]),
        np.full(count, filter_time),
        np.full(count, send_time),
        np.zeros((count, count)),
    )
    return problem, Forest("one-tree", np.array([[ROOT, *[0] * len(rates)]], dtype=np.int64))


def estimate(
    problem: FidelityProblem,
    forest: Forest,
    measure: Callable[[QueueingRun], float],
    *,
    seconds: float = 20_000.0,
) -> tuple[float, float]:
    """Return the mean of a measure over independent runs, and its standard error."""
    found = [measure(simulate(problem, forest, seconds=seconds, seed=seed)) for seed in SEEDS]
    return float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(len(found)))


def assert_agrees(found: tuple[float, float], theory: float) -> None:
    """Within four standard errors, which must be small enough to mean something."""
    mean, error = found
    assert error <= 0.04 * theory
    assert abs(mean - theory) <= 4.0 * error


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8, 0.9])
def test_one_child_makes_a_queue_of_exponential_services(load: float) -> None:
    """M/M/1: waiting load / (1 - load) services, and one service more until it is sent."""
    problem, forest = star([1.0], filter_time=load, send_time=0.0)
    seconds = 20_000.0 if load < 0.8 else 60_000.0
    wait = load / (1.0 - load) * load
    assert_agrees(estimate(problem, forest, lambda run: run.waits[0], seconds=seconds), wait)
    sojourn = load / (1.0 - load)
    assert_agrees(estimate(problem, forest, lambda run: run.delays[1, 0], seconds=seconds), sojourn)
    assert_agrees(estimate(problem, forest, lambda run: run.loads[0], seconds=seconds), load)


def test_the_cost_model_of_one_child_is_exact() -> None:
    problem, forest = star([1.0], filter_time=0.6, send_time=0.0)
    assert_agrees(
        estimate(problem, forest, lambda run: run.average_loss), loss(problem, forest).average
    )


def services(rates: FloatArray, *, filter_time: float, send_time: float) -> tuple[float, float]:
    """Return the first two moments of the time for a message with nested needs.

    Given its chance, a message is sent to the children whose share is above it, and the time
    is a sum of independent exponential times.
    """
    shares = np.sort(np.append(rates, [0.0, 1.0]))
    first = second = 0.0
    for low, high in pairwise(shares):
        sent = int((rates > low).sum())
        mean = len(rates) * filter_time + sent * send_time
        variance = len(rates) * filter_time**2 + sent * send_time**2
        first += (high - low) * mean
        second += (high - low) * (variance + mean**2)
    return first, second


@pytest.mark.parametrize("busy", [0.3, 0.7, 0.9])
def test_many_children_make_a_queue_of_summed_services(busy: float) -> None:
    """M/G/1: the formula of Pollaczek and Khinchine, and load = rate * mean service."""
    rates = np.array([0.2, 0.5, 0.5, 0.9, 1.0])
    filter_time = send_time = busy / 8.1
    problem, forest = star(rates.tolist(), filter_time=filter_time, send_time=send_time)
    mean, square = services(rates, filter_time=filter_time, send_time=send_time)
    assert mean == pytest.approx(busy)
    assert_agrees(estimate(problem, forest, lambda run: run.services[0]), mean)
    assert_agrees(estimate(problem, forest, lambda run: run.loads[0]), busy)
    seconds = 20_000.0 if busy < 0.9 else 60_000.0
    wait = square / (2.0 * (1.0 - busy))
    assert_agrees(estimate(problem, forest, lambda run: run.waits[0], seconds=seconds), wait)


def test_the_source_also_handles_what_nobody_needs() -> None:
    problem, forest = star([0.5], filter_time=0.1, send_time=0.2, source_rate=2.0)
    assert_agrees(estimate(problem, forest, lambda run: run.loads[0]), 2.0 * 0.1 + 0.5 * 0.2)
    run = simulate(problem, forest, seed=3)
    assert run.handled[0] == run.published[0]
    assert run.received == run.meant[1, 0] < run.published[0]


def test_children_are_served_in_random_order() -> None:
    """Of equal children none waits longer than another: each is last as often as first."""
    problem, forest = star([1.0] * 4, filter_time=0.05, send_time=0.05)
    found = [simulate(problem, forest, seed=seed).delays[1:, 0] for seed in SEEDS]
    means, errors = np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(len(found))
    assert np.abs(means - means.mean()).max() <= 4.0 * errors.max()
    # In a fixed order the last would wait three children, of 0.1 s each, longer than the first.
    assert np.ptp(means) < 0.02


def test_every_node_of_a_tree_works_as_long_as_predicted() -> None:
    """Loads of all nodes, with needs nested and objects passed on that a node does not want."""
    problem = generate_problem(seed=3, servers=24, routers=60, objects=4, interest=0.5)
    problem = replace(problem, rates=problem.rates * 200.0)
    for approach in ("one-tree", "tree-each"):
        forest = build_trees(problem, method="random", approach=approach, seed=3).forest
        predicted = loss(problem, forest).loads
        runs = [simulate(problem, forest, seconds=500.0, seed=seed).loads for seed in SEEDS]
        errors = np.std(runs, axis=0, ddof=1) / math.sqrt(len(runs))
        assert predicted.max() > 0.1
        # Among 25 nodes one is sometimes further out than four standard errors.
        assert (np.abs(np.mean(runs, axis=0) - predicted) <= 5.0 * errors).all()


@pytest.mark.parametrize("approach", ["one-tree", "tree-each"])
@pytest.mark.parametrize(
    ("busiest", "ratio_min", "ratio_max"),
    [(0.05, 0.95, 1.02), (0.3, 0.78, 1.05), (0.9, 0.48, 1.12)],
)
def test_measured_losses_are_near_predicted_ones_while_load_is_low(
    busiest: float, ratio_min: float, ratio_max: float, approach: str
) -> None:
    """The cost model takes all services for exponential.

    With many children they vary less, and messages wait half as long at worst; with trees of
    different breadth on one node they may vary more.
    """
    for method in ("source", "random", "greedy"):
        for objects, interest in ((1, 1.0), (12, 0.6)):
            problem = generate_problem(
                seed=2, servers=32, routers=80, objects=objects, interest=interest
            )
            forest = build_trees(problem, method=method, approach=approach, seed=2).forest
            factor = busiest / loss(problem, forest).loads.max()
            scaled = replace(
                problem,
                filter_times=problem.filter_times * factor,
                send_times=problem.send_times * factor,
            )
            predicted = loss(scaled, forest)
            run = simulate(scaled, forest, seconds=10_000.0, seed=2)
            assert ratio_min <= run.average_loss / predicted.average <= ratio_max
            assert run.loads.max() == pytest.approx(busiest, rel=0.05)
