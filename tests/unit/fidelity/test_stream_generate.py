"""Random streams have the times, rates and delays of the published experiments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.sameness import same_stream

from distributary.errors import BadInput
from distributary.fidelity.generate import PAPER_ADAPTATION, generate_problem
from distributary.fidelity.problem import FidelityProblem


def test_the_default_is_the_published_set_up() -> None:
    """256 servers 20 ms apart; 5 ms to filter, 1 ms to send and one update a second, on average."""
    problem = generate_problem(seed=0)
    apart = problem.delays[1:, 1:][~np.eye(256, dtype=np.bool_)]
    assert problem.node_count == 257
    assert problem.object_count == 1
    assert apart.mean() == pytest.approx(0.020, rel=0.02)
    assert problem.filter_times[1:].min() >= 0.001
    assert problem.filter_times.max() <= 0.009
    assert problem.filter_times[1:].mean() == pytest.approx(0.005, rel=0.1)
    assert problem.send_times[1:].min() >= 0.000125
    assert problem.send_times.max() <= 0.001875
    assert problem.send_times[1:].mean() == pytest.approx(0.001, rel=0.1)
    assert problem.rates.min() >= 0.5
    assert problem.rates[1:].mean() == pytest.approx(1.0, rel=0.1)
    assert problem.served[1:].all()


@pytest.mark.parametrize("load", [0.2, 1.0, 3.0, 5.0])
def test_load_moves_the_mean_times_but_not_the_least(load: float) -> None:
    problem = generate_problem(seed=2, servers=400, routers=500, load=load)
    assert problem.filter_times[0] == 0.001
    assert problem.send_times[0] == 0.000125
    assert 0.001 <= problem.filter_times[1:].min() < 0.001 + 0.0005 * load
    assert 0.000125 <= problem.send_times[1:].min() < 0.000125 + 0.0001 * load
    assert problem.filter_times[1:].mean() == pytest.approx(0.005 * load, rel=0.1)
    assert problem.send_times[1:].mean() == pytest.approx(0.001 * load, rel=0.1)


def test_problems_that_differ_in_load_differ_in_nothing_else() -> None:
    light, heavy = (generate_problem(seed=4, servers=30, routers=50, load=x) for x in (1.0, 5.0))
    assert np.array_equal(light.delays, heavy.delays)
    assert np.array_equal(light.rates, heavy.rates)
    assert np.array_equal(np.argsort(light.filter_times), np.argsort(heavy.filter_times))


def test_the_source_has_the_largest_rate_of_every_object() -> None:
    problem = generate_problem(seed=1, servers=40, routers=50, objects=7, interest=0.3)
    assert bool(np.all(problem.rates[0] >= problem.rates.max(axis=0)))


@pytest.mark.parametrize("interest", [0.0, 0.1, 0.6, 1.0])
def test_every_server_wants_at_least_one_object(interest: float) -> None:
    problem = generate_problem(seed=3, servers=200, routers=300, objects=50, interest=interest)
    wishes = problem.wanted[1:].sum(axis=1)
    assert wishes.min() >= 1
    assert wishes.mean() == pytest.approx(max(50 * interest, 1.0), rel=0.1)
    wanted = problem.rates[1:][problem.wanted[1:]]
    assert wanted.min() >= 0.01
    assert wanted.max() <= 0.03


def test_rates_are_drawn_from_the_range_given() -> None:
    problem = generate_problem(seed=3, servers=50, routers=60, objects=2, rates=(2.0, 4.0))
    assert problem.rates[0].tolist() == [4.0, 4.0]
    assert problem.rates.min() >= 2.0


def test_the_seed_decides_everything() -> None:
    def make(seed: int) -> FidelityProblem:
        return generate_problem(
            seed=seed, servers=20, routers=30, objects=3, interest=0.5, adaptation=PAPER_ADAPTATION
        )

    assert same_stream(make(1), make(1))
    assert not same_stream(make(1), make(2))


def test_servers_stand_at_places_of_a_given_matrix() -> None:
    delays = np.arange(100.0).reshape(10, 10)
    places = [f"city {place}" for place in range(10)]
    problem = generate_problem(seed=6, servers=4, delays=delays, places=places)
    assert problem.node_count == 5
    index = [places.index(name) for name in problem.names]
    assert np.array_equal(problem.delays, delays[np.ix_(index, index)])
    whole = generate_problem(seed=6, delays=delays)
    assert sorted(whole.names) == [f"n{place}" for place in range(10)]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"seed": -1}, "seed: must be at least 0, not -1"),
        ({"servers": 0}, "servers: is 0"),
        ({"servers": 100_000}, "servers: is 100,000"),
        ({"routers": 1}, "routers: is 1"),
        ({"routers": 10**9}, "routers: is"),
        ({"objects": 0}, "objects: is 0"),
        ({"objects": 10**7}, "objects: is"),
        ({"load": 0.1}, "load: is 0.1, and must be from 0.2"),
        ({"load": float("nan")}, "load: is nan"),
        ({"load": float("inf")}, "load: is inf"),
        ({"interest": 1.5}, "interest: is 1.5"),
        ({"interest": float("nan")}, "interest: is nan"),
        ({"rates": (0.0, 1.0)}, "rates: are from 0 to 1"),
        ({"rates": (2.0, 1.0)}, "rates: are from 2 to 1"),
        ({"rates": (1.0, float("inf"))}, "rates: are from 1 to inf"),
        ({"rates": (float("nan"), 1.0)}, "rates: are from nan"),
        ({"delays": np.zeros((1, 1))}, "delays: has fewer than two places"),
        ({"delays": np.zeros((3, 3)), "servers": 3}, "servers: is 3, and there are 3 places"),
        ({"delays": np.zeros((3, 3)), "routers": 9}, "routers: cannot be combined"),
    ],
)
def test_what_is_out_of_range_is_refused(options: dict[str, Any], complaint: str) -> None:
    small = {} if "delays" in options else {"servers": 5, "routers": 10}
    with pytest.raises(BadInput) as caught:
        generate_problem(**{"seed": 0, **small, **options})
    assert str(caught.value).startswith(complaint)
