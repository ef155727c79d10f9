"""The lower bound never exceeds the optimum, and its compiled pieces equal slow ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import wiring as reference
from tests.strategies_wiring import random_wiring_problem, wiring_problems

from distributary.arrays import FloatArray
from distributary.topology.prices import shortest_prices
from distributary.wiring._bound_kernels import cheapest_access, choose, follow, near_brokers
from distributary.wiring._linkage_kernels import least_by_linkage, least_by_set, link
from distributary.wiring._steiner_kernels import subset_weights
from distributary.wiring.bounds import lower_bound
from distributary.wiring.core import broker_tree
from distributary.wiring.cost import cost
from distributary.wiring.exact import exact_wiring
from distributary.wiring.generate import generate_problem
from distributary.wiring.packing import packing_wiring
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import CORES

SEEDS = st.integers(0, 2**32)


@settings(max_examples=120)
@given(wiring_problems(users_max=5, brokers_max=4), st.sampled_from(CORES))
def test_the_bound_never_exceeds_the_optimum(problem: WiringProblem, core: str) -> None:
    best = reference.best(problem, core)
    assert best is not None
    assert 0.0 <= lower_bound(problem, core=core) <= best[0] * (1.0 + 1e-9)


@settings(max_examples=30)
@given(SEEDS, st.sampled_from(CORES), st.sampled_from(["none", "loose", "tight", "mixed"]))
def test_the_bound_by_linkage_never_exceeds_the_optimum(seed: int, core: str, room: str) -> None:
    """With a dozen brokers, of which users can only use three, the optimum is known.

    The others have no capacity, but may be branching points and count in the linkage.
    """
    few = random_wiring_problem(seed, users=4, brokers=3, channels=2, room="loose")
    rng = np.random.default_rng(seed)
    points = rng.random((12, 2)) * 10.0
    capacities = np.zeros(12)
    capacities[[0, 4, 9]] = np.inf if room == "none" else few.capacities
    problem = WiringProblem.in_order(
        users=few.users,
        brokers=[f"b{b:02d}" for b in range(12)],
        publishes=few.publishes,
        subscribes=few.subscribes,
        access_prices=rng.random((4, 12)),
        core_prices=np.abs(points[:, None] - points[None]).sum(axis=2),
        capacities=capacities,
    )
    weigh = reference.weigher(problem, core)
    plain = reference.instance(problem)
    busy = problem.demands > 0.0
    best = np.inf
    for chosen in itertools.product([0, 4, 9], repeat=4):
        if reference.feasible(plain, np.where(busy, chosen, 0).tolist()):
            total = reference.access_cost(plain, chosen)
            total += reference.core_cost(plain, chosen, weigh)
            best = min(best, total)
    assert lower_bound(problem, core=core) <= best * (1.0 + 1e-9)


@pytest.mark.parametrize("core", CORES)
def test_the_bound_is_not_far_from_the_optimum(core: str) -> None:
    """Wide interests, few brokers: within a tenth; access alone would miss a quarter."""
    gaps = []
    for seed in range(4):
        problem = generate_problem(seed=seed, users=20, brokers=5, channels=6)
        _, optimum = exact_wiring(problem, core=core)
        gaps.append(1.0 - lower_bound(problem, core=core) / optimum)
    assert 0.0 <= np.mean(gaps) < 0.1


def test_the_bound_counts_what_brokers_must_exchange() -> None:
    """Two users who fit on no broker together have to pay for the way between two."""
    problem = WiringProblem.in_order(
        users=["a", "b"],
        brokers=["x", "y"],
        publishes=np.array([[2.0], [0.0]]),
        subscribes=np.array([[True], [True]]),
        access_prices=np.zeros((2, 2)),
        core_prices=np.array([[0.0, 3.0], [3.0, 0.0]]),
        capacities=np.array([2.0, 2.0]),
    )
    assert exact_wiring(problem)[1] == pytest.approx(6.0)
    assert lower_bound(problem) == pytest.approx(6.0)


def test_many_users_have_a_bound_below_any_wiring_and_the_same_again() -> None:
    """Also when shares are held for a few near brokers only."""
    problem = generate_problem(seed=1, users=8_000, brokers=200, channels=16, interests=(3, 4))
    bound = lower_bound(problem, time_limit=0.2)
    total = cost(problem, packing_wiring(problem)).total
    assert 0.3 * total < bound < total
    assert lower_bound(problem, time_limit=0.2) == bound


def test_nothing_to_do_costs_nothing() -> None:
    problem = WiringProblem.in_order(
        users=["a"],
        brokers=["x", "y"],
        publishes=np.zeros((1, 1)),
        subscribes=np.zeros((1, 1), dtype=np.bool_),
        access_prices=np.ones((1, 2)),
        core_prices=np.zeros((2, 2)),
    )
    assert lower_bound(problem) == 0.0


def random_prices(seed: int, count: int, *, whole: bool) -> FloatArray:
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, 6, (count, count)) if whole else rng.random((count, count))
    prices = np.triu(drawn.astype(np.float64), 1)
    return shortest_prices(prices + prices.T)


@settings(max_examples=60)
@given(SEEDS, st.integers(2, 7), st.booleans())
def test_the_least_cost_of_a_channel_is_that_of_its_best_set(
    seed: int, brokers: int, whole: bool
) -> None:
    """Both with the weights of a table and with those of single linkage."""
    rng = np.random.default_rng(seed)
    prices = random_prices(seed, brokers, whole=whole)
    tree = broker_tree(prices)
    by_price = np.argsort(tree.edges[1:], kind="stable") + 1
    pairs, joins, sizes = link(tree.order, tree.parents, tree.edges, by_price)
    # The price at which two brokers join: the dearest edge of the cheapest way, hop by hop.
    joined = prices.copy()
    for by in range(brokers):
        joined = np.minimum(joined, np.maximum(joined[:, by, None], joined[None, by, :]))
    channels = 3
    rates = rng.random(channels) * 4.0
    counts_min = rng.integers(1, brokers + 1, channels)
    gains = rng.random((channels, brokers)) * 4.0 * (rng.random((channels, brokers)) < 0.7)
    weights = subset_weights(prices, True)
    bits = np.array([s.bit_count() for s in range(1 << brokers)])
    opened = np.zeros((channels, brokers), dtype=np.bool_)

    def value(c: int, members: list[int], metric: FloatArray) -> float:
        weight = reference.spanning_weight(metric.tolist(), members)
        return float(rates[c] * weight - gains[c, members].sum())

    for metric, steiner, found in (
        (joined, False, least_by_linkage(rates, counts_min, gains, pairs, joins, sizes, opened)),
        (prices, True, least_by_set(rates, counts_min, gains, weights, bits, opened.copy())),
    ):
        expected = 0.0
        for c in range(channels):
            sets = [
                [b for b in range(brokers) if chosen >> b & 1]
                for chosen in range(1 << brokers)
                if chosen.bit_count() >= counts_min[c]
            ]
            if steiner:
                expected += min(
                    float(
                        rates[c] * reference.steiner_weight(metric.tolist(), members)
                        - gains[c, members].sum()
                    )
                    for members in sets
                )
            else:
                expected += min(value(c, members, metric) for members in sets)
                assert opened[c].sum() >= counts_min[c]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    reported = sum(value(c, np.flatnonzero(opened[c]).tolist(), joined) for c in range(channels))
    assert reported == pytest.approx(
        least_by_linkage(rates, counts_min, gains, pairs, joins, sizes, opened), abs=1e-9
    )


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 6), st.integers(1, 9))
def test_near_brokers_are_the_cheapest(seed: int, users: int, brokers: int) -> None:
    rng = np.random.default_rng(seed)
    access = rng.integers(0, 9, (users, brokers)).astype(np.float64)
    surcharges = rng.integers(0, 4, brokers).astype(np.float64)
    demands = rng.random(users)
    width = int(rng.integers(1, brokers + 1))
    near, far = np.empty((users, width), dtype=np.int64), np.empty(users)
    near_brokers(access, surcharges, near, far)
    for u in range(users):
        prices = sorted((access[u] + surcharges).tolist())
        assert len(set(near[u].tolist())) == width
        assert sorted((access[u] + surcharges)[near[u]].tolist()) == prices[:width]
        assert far[u] == (prices[width] if width < brokers else np.inf)
    loads = np.empty(brokers)
    total = cheapest_access(demands, access, surcharges, loads)
    assert total == pytest.approx(float(demands @ (access + surcharges).min(axis=1)))
    assert loads.sum() == pytest.approx(demands.sum())


@settings(max_examples=60)
@given(SEEDS)
def test_users_choose_and_shares_follow(seed: int) -> None:
    """Every user pays its least sum; shares move where user and channel disagree."""
    rng = np.random.default_rng(seed)
    users, brokers, channels, width = 4, 5, 3, 3
    access, surcharges = rng.random((users, brokers)), rng.random(brokers) * 0.2
    near, far = np.empty((users, width), dtype=np.int64), np.empty(users)
    near_brokers(access, surcharges, near, far)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 3, users))])
    wished = rng.integers(0, channels, starts[-1])
    shares = rng.random((len(wished), width)) * (rng.random((len(wished), width)) < 0.5)
    opened = rng.random((channels, brokers)) < 0.5
    demands = rng.random(users) + 0.1
    chosen, loads = np.empty(users, dtype=np.int64), np.empty(brokers)
    prices = np.take_along_axis(access, near, axis=1)
    total, disagreement = choose(
        demands, near, prices, far, surcharges, 0.0, starts, wished, shares, opened, chosen, loads
    )
    expected, expected_loads = 0.0, np.zeros(brokers)
    for u in range(users):
        options = {-1: demands[u] * far[u]}
        for j, b in enumerate(near[u].tolist()):
            paid = sum(shares[k, j] for k in range(starts[u], starts[u + 1]))
            options[j] = demands[u] * (access[u, b] + surcharges[b]) + paid
        expected += min(options.values())
        assert options[int(chosen[u])] == min(options.values())
        if chosen[u] >= 0:
            expected_loads[near[u, chosen[u]]] += demands[u]
    assert total == pytest.approx(expected)
    assert loads == pytest.approx(expected_loads)
    before, gains = shares.copy(), np.empty((channels, brokers))
    follow(0.25, near, starts, wished, chosen, opened, shares, gains)
    changed, summed = 0, np.zeros((channels, brokers))
    for u in range(users):
        for k in range(starts[u], starts[u + 1]):
            for j, b in enumerate(near[u].tolist()):
                wants = int(j == chosen[u]) - int(opened[wished[k], b])
                assert shares[k, j] == max(0.0, before[k, j] + 0.25 * wants)
                changed += int(shares[k, j] != before[k, j])
                summed[wished[k], b] += shares[k, j]
    assert changed == disagreement
    assert gains == pytest.approx(summed)
