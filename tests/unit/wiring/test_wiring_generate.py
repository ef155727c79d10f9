"""Generated problems are those of the published experiments, and the same for one seed."""

from __future__ import annotations

import numpy as np
import pytest
from tests.wiring_sameness import same_wiring_problem

from distributary.errors import BadInput
from distributary.wiring.generate import generate_positions, generate_problem
from distributary.wiring.generating_function import quadratic_cells


def test_cells_hold_the_integral_of_the_positive_part() -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(-1.0, 1.0, (300, 3))
    # Lines, constants, double roots, and roots at the ends.
    odd = [
        [1, 0, -1],
        [-1, 0, 1],
        [0, 0, 0],
        [0.5, 0.5, 0.5],
        [-1, -1, -1],
        [0, 0, 1],
        [0, 1, 0],
        [1, 0, 1],
        [0, -1, 0],
        [0, 0.5, 1],
    ]
    values[:10] = np.array(odd, dtype=np.float64)
    channels, fine = 7, 20_000
    x = (np.arange(channels * fine) + 0.5) / (channels * fine)
    got = quadratic_cells(values, channels)
    for (start, middle, end), row in zip(values, got, strict=True):
        a, b = 2 * (start - 2 * middle + end), 4 * middle - 3 * start - end
        heights = np.maximum(start + x * (b + x * a), 0.0)
        expected = heights.reshape(channels, fine).mean(axis=1) / channels
        assert row == pytest.approx(expected, abs=1e-9)


def test_a_cell_without_a_positive_part_is_exactly_zero() -> None:
    got = quadratic_cells(np.array([[1.0, -0.5, 1.0], [-1.0, 0.5, -1.0]]), 64)
    assert (got == 0.0).any(axis=1).all()
    assert (got > 0.0).any(axis=1).all()
    assert not quadratic_cells(np.array([[-0.1, -0.2, -0.3]]), 8).any()


def test_the_defaults_are_those_of_the_experiments() -> None:
    problem = generate_problem(seed=1)
    assert (problem.user_count, problem.broker_count, problem.channel_count) == (1000, 10, 64)
    assert problem.capacities.sum() == pytest.approx(2.0 * problem.demands.sum())
    assert np.ptp(problem.capacities) == 0.0
    assert problem.access_prices.mean() == pytest.approx(1.0, rel=1e-6)
    assert problem.core_prices.sum() / 90 == pytest.approx(1.0)
    assert not problem.shortened
    assert problem.publish_rate.sum() == pytest.approx(1000.0)
    # Between two random points lies a third of the space on average.
    assert problem.subscribes.mean() == pytest.approx(1 / 3, abs=0.03)


def test_a_subscription_is_one_interval() -> None:
    problem = generate_problem(seed=2, users=200)
    for wanted in problem.subscribes:
        chosen = np.flatnonzero(wanted)
        assert len(chosen) == chosen[-1] - chosen[0] + 1


def test_narrow_interests_span_as_many_cells_as_asked_for() -> None:
    problem = generate_problem(seed=3, users=400, interests=(2, 5))
    widths = problem.subscribes.sum(axis=1)
    assert set(widths.tolist()) == {2, 3, 4, 5}
    assert problem.subscribes.any(axis=0).all()


def test_several_dimensions_make_boxes_of_cells() -> None:
    problem = generate_problem(seed=4, users=150, channels=6, dimensions=3, interests=(1, 3))
    assert problem.channel_count == 216
    for wanted in problem.subscribes.reshape(150, 6, 6, 6):
        sides = [wanted.any(axis=axes).sum() for axes in ((1, 2), (0, 2), (0, 1))]
        assert wanted.sum() == np.prod(sides)
        assert max(sides) <= 3
    # A rate in a cell of several dimensions is a product of one for each.
    table = problem.publishes.reshape(150, 6, 36)
    ranks = [np.linalg.matrix_rank(rates, tol=1e-12) for rates in table]
    assert max(ranks) == 1


def test_prices_and_capacities_change_nothing_else() -> None:
    one = generate_problem(seed=5, users=120, brokers=6)
    other = generate_problem(
        seed=5, users=120, brokers=6, core_ratio=0.25, capacity_factor=None, interests=(1, 2)
    )
    assert np.array_equal(one.publishes, other.publishes)
    assert np.array_equal(one.access_prices, other.access_prices)
    assert other.core_prices == pytest.approx(0.25 * one.core_prices)
    assert np.isinf(other.capacities).all()


def test_free_core_and_one_broker_are_allowed() -> None:
    assert not generate_problem(seed=1, users=20, brokers=4, core_ratio=0.0).core_prices.any()
    alone = generate_problem(seed=1, users=1)
    assert (alone.user_count, alone.broker_count) == (1, 1)


@pytest.mark.parametrize("layout", ["plane", "towns"])
def test_positions_are_those_that_the_prices_come_from(layout: str) -> None:
    problem = generate_problem(seed=6, users=300, brokers=7, layout=layout)  # type: ignore[arg-type]
    places = generate_positions(seed=6, users=300, brokers=7, layout=layout)  # type: ignore[arg-type]
    apart = np.linalg.norm(places.users[:, None] - places.brokers[None, :], axis=2)
    assert problem.access_prices == pytest.approx(apart / apart.mean(), abs=1e-6)
    assert (places.users >= 0.0).all()
    assert (places.users <= 1.0).all()


def test_towns_bring_users_together() -> None:
    def nearest(layout: str) -> float:
        at = generate_positions(seed=7, users=400, layout=layout).users  # type: ignore[arg-type]
        apart = np.linalg.norm(at[:, None] - at[None, :], axis=2)
        return float(np.median(np.sort(apart, axis=1)[:, 10]))

    assert nearest("towns") < 0.7 * nearest("plane")


def test_a_seed_gives_the_same_problem_and_another_seed_another() -> None:
    one, again = generate_problem(seed=8, users=50), generate_problem(seed=8, users=50)
    assert same_wiring_problem(one, again)
    assert not same_wiring_problem(one, generate_problem(seed=9, users=50))


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"seed": -1}, "seed: must be at least 0, not -1"),
        ({"users": 0}, "users: is 0"),
        ({"brokers": 0}, "brokers: is 0"),
        ({"channels": 0}, "channels: is 0"),
        ({"channels": 5000}, "channels: is 5,000, and must be from 1 to 4,096"),
        (
            {"channels": 17, "dimensions": 3},
            "dimensions: 17 channels in each of 3 dimensions are 4,913",
        ),
        ({"dimensions": 0}, "dimensions: is 0"),
        ({"dimensions": 99}, "dimensions: is 99"),
        ({"users": 10**7}, "users: is 10,000,000, and must be from 1 to 1,000,000"),
        ({"users": 10**6, "brokers": 10**4}, "users: 1,000,000 users and 10,000"),
        ({"users": 10**5, "channels": 4096}, "users: 100,000 users with 4,096 cells"),
        ({"core_ratio": -1.0}, "core_ratio: is -1"),
        ({"core_ratio": float("nan")}, "core_ratio: is nan"),
        ({"interests": (0, 3)}, "interests: are from 0 to 3"),
        ({"interests": (4, 3)}, "interests: are from 4 to 3"),
        ({"interests": (1, 65)}, "interests: are from 1 to 65, and must rise within 1 to 64"),
        ({"capacity_factor": 0.0}, "capacity_factor: is 0"),
        ({"capacity_factor": float("nan")}, "capacity_factor: is nan"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, object], place: str) -> None:
    with pytest.raises(BadInput) as caught:
        generate_problem(**{"seed": 0, **arguments})  # type: ignore[arg-type]
    assert str(caught.value).startswith(place)
