"""The methods of Zhao and Wu on problems small enough to follow by hand."""

from __future__ import annotations

import numpy as np
import pytest

from distributary.arrays import FloatArray
from distributary.wiring.clustering import clustering_wiring
from distributary.wiring.mixing import edge_weights, mixing_wiring
from distributary.wiring.packing import packing_wiring
from distributary.wiring.problem import WiringProblem
from distributary.wiring.random_wiring import random_wiring


def built(
    publishes: list[list[float]],
    subscribes: list[list[int]],
    access: list[list[float]],
    core: list[list[float]] | FloatArray | None = None,
    capacities: list[float] | None = None,
) -> WiringProblem:
    users, brokers = len(access), len(access[0])
    return WiringProblem.in_order(
        users=[f"u{u:03d}" for u in range(users)],
        brokers=[f"b{b}" for b in range(brokers)],
        publishes=np.array(publishes, dtype=np.float64),
        subscribes=np.array(subscribes, dtype=np.bool_),
        access_prices=np.array(access, dtype=np.float64),
        core_prices=np.ones((brokers, brokers)) - np.eye(brokers)
        if core is None
        else np.array(core, dtype=np.float64),
        capacities=None if capacities is None else np.array(capacities, dtype=np.float64),
    )


def test_packing_takes_the_cheapest_and_then_the_cheapest_with_room() -> None:
    problem = built(
        [[2.0], [2.0], [2.0]],
        [[0], [0], [0]],
        [[1.0, 3.0], [1.0, 2.0], [1.0, 1.0]],
        capacities=[3.0, 4.0],
    )
    assert packing_wiring(problem).tolist() == [0, 1, 1]


def test_random_wirings_use_every_broker_about_equally() -> None:
    problem = built([[1.0]] * 4_000, [[0]] * 4_000, [[1.0, 1.0, 1.0, 1.0]] * 4_000)
    counts = np.bincount(random_wiring(problem, seed=5), minlength=4)
    assert counts == pytest.approx(1_000, abs=120)
    assert not np.array_equal(random_wiring(problem, seed=5), random_wiring(problem, seed=6))


def test_the_first_broker_is_seeded_with_the_pair_of_most_traffic_for_its_prices() -> None:
    """Users 0 and 1 exchange 6 at prices of 4, users 2 and 3 exchange 4 at prices of 2."""
    problem = built(
        [[6.0, 0.0], [0.0, 0.0], [0.0, 4.0], [0.0, 0.0]],
        [[0, 0], [1, 0], [0, 0], [0, 1]],
        [[2.0, 1.0], [2.0, 1.0], [1.0, 9.0], [1.0, 9.0]],
    )
    assert clustering_wiring(problem).tolist() == [1, 1, 0, 0]


def test_a_pair_of_seeds_must_fit_together() -> None:
    """The pair with most traffic needs 12, and then the user it leaves needs 6."""
    problem = built(
        [[6.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        [[0, 0], [1, 0], [0, 0], [0, 1]],
        [[1.0, 2.0], [1.0, 2.0], [1.0, 1.0], [1.0, 1.0]],
        capacities=[11.0, 14.0],
    )
    assert clustering_wiring(problem).tolist() == [1, 1, 0, 0]


def test_no_price_is_the_best_ratio_for_pairs_and_for_users() -> None:
    """Broker 0 is free for users 2 and 3, who exchange little; user 4 is free at broker 1."""
    problem = built(
        [[9.0, 0.0], [9.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 5.0]],
        [[1, 0], [1, 0], [0, 0], [0, 1], [0, 0]],
        [[0.1, 0.1], [0.1, 0.1], [0.0, 1.0], [0.0, 1.0], [0.1, 0.0]],
    )
    assert clustering_wiring(problem).tolist() == [1, 1, 0, 0, 1]


def test_a_user_without_traffic_joins_the_nearest_cluster() -> None:
    problem = built(
        [[1.0], [0.0], [0.0]],
        [[0], [1], [0]],
        [[1.0, 1.0, 9.0], [1.0, 1.0, 9.0], [3.0, 2.0, 1.0]],
    )
    assert clustering_wiring(problem).tolist() == [0, 0, 2]


def test_of_equal_pairs_the_first_is_taken_though_another_is_looked_at_before() -> None:
    """Users 0 and 1 exchange 4, and so do 2 and 3, of whom more could be expected."""
    publishes = np.zeros((5, 6))
    publishes[[0, 1, 2, 3], [0, 1, 2, 3]] = 2.0
    publishes[2, 4] = 5.0
    publishes[4, 5] = 3.0
    subscribes = np.zeros((5, 6), dtype=np.int64)
    subscribes[[1, 0, 3, 2, 3], [0, 1, 2, 3, 5]] = 1
    problem = built(publishes.tolist(), subscribes.tolist(), [[1.0, 1.0]] * 5)
    assert clustering_wiring(problem).tolist() == [0, 0, 1, 1, 1]


# Broker 1 stands between brokers 0 and 2.
LINE = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]


def test_a_tree_reaches_users_through_brokers_near_to_them() -> None:
    """User 0 publishes at broker 0; its subscribers are near broker 1 and broker 2."""
    problem = built(
        [[5.0], [0.0], [0.0]],
        [[0], [1], [1]],
        [[1.0, 9.0, 9.0], [9.0, 1.0, 9.0], [9.0, 9.0, 1.0]],
        LINE,
    )
    assert edge_weights(problem).tolist() == [[5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 5.0]]


def test_prices_that_are_distances_make_stars() -> None:
    """The direct way to a user is never longer than one through another broker."""
    rng = np.random.default_rng(4)
    users, brokers = rng.random((30, 2)), rng.random((6, 2))
    access = np.linalg.norm(users[:, None] - brokers[None], axis=2)
    core = np.linalg.norm(brokers[:, None] - brokers[None], axis=2)
    rates = np.zeros((30, 1))
    rates[7] = 2.0
    problem = built(rates.tolist(), [[1]] * 30, access.tolist(), core)
    weights = edge_weights(problem)
    assert (weights > 0.0).sum(axis=0).tolist().count(0) == 5
    assert weights.sum() == pytest.approx(60.0)


def test_nobody_is_sent_what_it_published_itself() -> None:
    problem = built([[2.0], [3.0]], [[1], [1]], [[1.0], [1.0]])
    assert edge_weights(problem).tolist() == [[5.0], [5.0]]


def test_a_publisher_whose_channel_nobody_else_wants_has_no_tree() -> None:
    problem = built([[2.0], [0.0]], [[1], [0]], [[3.0, 1.0], [1.0, 3.0]])
    assert not edge_weights(problem).any()
    assert mixing_wiring(problem).tolist() == [1, 0]


def test_a_publisher_that_would_bring_a_broker_into_its_own_tree_does_not() -> None:
    """User 0 starts at broker 0, and as a subscriber would be reached through broker 2.

    Were it among those to be reached, broker 2 would join with it, and user 3 be reached from
    there rather than from broker 1.
    """
    problem = built(
        [[1.0], [0.0], [0.0], [0.0]],
        [[1], [1], [1], [1]],
        [
            [10.0, 20.0, 8.5],
            [0.0, 50.0, 50.0],
            [50.0, 5.0, 50.0],
            [50.0, 10.6, 10.0],
        ],
        LINE,
    )
    assert edge_weights(problem).tolist() == [
        [1.0, 0.0, 0.0],
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        [0.0, 1.0, 0.0],
    ]


def test_draws_follow_the_traffic_on_the_edges() -> None:
    """All readers are reached from broker 0 by a rate of 3, from broker 1 by one of 1."""
    readers = 2_000
    problem = built(
        [[3.0], [1.0]] + [[0.0]] * readers,
        [[0], [0]] + [[1]] * readers,
        [[0.1, 9.0], [9.0, 0.1]] + [[2.0, 2.0]] * readers,
        [[0.0, 8.0], [8.0, 0.0]],
    )
    weights = edge_weights(problem)
    assert (weights[2:] == [3.0, 1.0]).all()
    share = np.mean(mixing_wiring(problem, seed=1)[2:] == 0)
    assert share == pytest.approx(0.75, abs=0.03)
