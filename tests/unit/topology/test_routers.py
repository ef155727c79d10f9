"""Router networks have the shape and the delays that the published experiments describe."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from distributary.errors import BadInput
from distributary.topology.routers import ROUTERS, power_law_network, server_delays


def test_a_few_routers_have_most_of_the_links() -> None:
    network = power_law_network(ROUTERS, np.random.default_rng(3))
    degrees = np.bincount(network.links.ravel(), minlength=ROUTERS)
    assert len(network.links) == 1 + 2 * (ROUTERS - 2)
    assert int(np.median(degrees)) <= 3
    assert int(degrees.max()) >= 60
    # With a power law the share of routers with many links falls slowly, not all at once.
    tail = [float((degrees >= 2**k).mean()) for k in range(2, 6)]
    assert all(0.1 < later / earlier < 0.5 for earlier, later in pairwise(tail))


def test_everybody_reaches_everybody_and_no_link_is_double() -> None:
    for count in (2, 3, 10, 500):
        network = power_law_network(count, np.random.default_rng(count))
        assert len(network.largest_part) == count
        ends = np.sort(network.links, axis=1)
        assert len(np.unique(ends, axis=0)) == len(ends)
        assert bool(np.all(ends[:, 0] < ends[:, 1]))


@pytest.mark.parametrize("servers", [1, 2, 257, 60, 61, 200])
def test_delays_are_symmetric_with_the_mean_asked_for(servers: int) -> None:
    """On routers of their own, and, beyond as many as there are, on shared ones."""
    routers = ROUTERS if servers == 257 else 60
    delays = server_delays(servers, np.random.default_rng(1), router_count=routers)
    assert delays.shape == (servers, servers)
    assert np.array_equal(delays, delays.T)
    assert np.array_equal(delays.diagonal(), np.zeros(servers))
    apart = delays[~np.eye(servers, dtype=np.bool_)]
    assert bool(np.all(apart > 0.0))
    if servers > 1:
        assert apart.mean() == pytest.approx(0.020)
        assert apart.std() < 0.02


def test_delays_keep_the_triangle_inequality_even_on_shared_routers() -> None:
    delays = server_delays(90, np.random.default_rng(5), router_count=40)
    detours = (delays[:, :, None] + delays[None, :, :]).min(axis=1)
    assert bool(np.all(delays <= detours + 1e-12))


def test_the_seed_decides_everything() -> None:
    one, same, other = (
        server_delays(20, np.random.default_rng(seed), router_count=100) for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("count", [-1, 0, 1, 1_000_000])
def test_impossible_numbers_of_routers_are_refused(count: int) -> None:
    with pytest.raises(BadInput, match="routers: is"):
        power_law_network(count, np.random.default_rng(0))
