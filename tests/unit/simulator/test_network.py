"""Links: delay, bandwidth, loss, and what disturbs them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from distributary.simulator.network import Disturbance, SimulatedNetwork
from distributary.simulator.places import AccessLinks, Places
from distributary.simulator.scenario import OverlayTable


def network(*, link_cost: float = 1.0, **overlay: float | str) -> SimulatedNetwork:
    delays = np.array([[0, 5_000_000], [7_000_000, 0]])
    places = Places(("aa", "bb"), delays, np.full((2, 2), link_cost), np.ones(2))
    table = OverlayTable(brokers=2, access_delay_ms=2.0, **overlay)  # type: ignore[arg-type]
    return SimulatedNetwork(places, table, random.Random(3))


def test_a_message_takes_the_delay_of_its_direction() -> None:
    links = network()
    assert links.arrivals("aa", "bb", 100, 10) == (5_000_010,)
    assert links.arrivals("bb", "aa", 100, 10) == (7_000_010,)
    assert links.arrivals("@c", "aa", 100, 10) == (2_000_010,)


def test_bytes_take_time_and_wait_for_those_before_them() -> None:
    links = network(bandwidth_mbps=8.0)
    # A byte takes a microsecond at eight megabits per second.
    assert links.arrivals("aa", "bb", 1000, 0) == (6_000_000,)
    assert links.arrivals("aa", "bb", 1000, 0) == (7_000_000,)
    assert links.arrivals("bb", "aa", 1000, 0) == (8_000_000,)
    assert links.arrivals("aa", "bb", 1000, 50_000_000) == (56_000_000,)


@pytest.mark.parametrize("cost", [0.1, 1.0, 25.0, 100.0])
def test_a_link_that_costs_more_is_as_much_slower(cost: float) -> None:
    links = network(bandwidth_mbps=8.0, link_cost=cost)
    assert links.arrivals("aa", "bb", 1000, 0) == (5_000_000 + round(1_000_000 * cost),)


def test_ten_megabits_cost_one_where_links_differ_and_no_bandwidth_is_given() -> None:
    # What costs 100 in the published model has 0.1 Mbit/s.
    links = network(heterogeneity="weak", link_cost=100.0)
    assert links.arrivals("aa", "bb", 1000, 0) == (5_000_000 + 80_000_000,)
    assert network(link_cost=100.0).arrivals("aa", "bb", 1000, 0) == (5_000_000,)
    unlimited = network(heterogeneity="weak", bandwidth_mbps=0.0, link_cost=100.0)
    assert unlimited.arrivals("aa", "bb", 1000, 0) == (5_000_000,)


def test_clients_have_links_of_their_own() -> None:
    links = network(bandwidth_mbps=8.0, access_mbps=0.8)
    assert links.arrivals("@c", "aa", 1000, 0) == (12_000_000,)


def test_a_client_that_stands_somewhere_is_far_and_slow_at_dear_brokers() -> None:
    links = network(bandwidth_mbps=8.0)
    links.place("@c", AccessLinks(np.array([0.5, 3.0]), np.array([1_000_000, 4_000_000])))
    assert links.arrivals("@c", "aa", 1000, 0) == (3_000_000 + 500_000,)
    assert links.arrivals("bb", "@c", 1000, 0) == (6_000_000 + 3_000_000,)
    assert links.arrivals("bb", "@d", 1000, 0) == (2_000_000,)


def test_a_share_of_messages_gets_lost() -> None:
    links = network(loss=0.25)
    arrived = sum(len(links.arrivals("aa", "bb", 1, 0)) for _ in range(4000))
    assert arrived / 4000 == pytest.approx(0.75, abs=0.03)


def test_delays_can_change_as_a_whole() -> None:
    links = network()
    links.delay_factor = 2.0
    assert links.arrivals("aa", "bb", 1, 0) == (10_000_000,)


@pytest.mark.parametrize(
    ("disturbance", "mean_count"),
    [
        (Disturbance(drop=0.5), 0.5),
        (Disturbance(duplicate=0.5), 1.5),
        (Disturbance({"zz"}, drop=1.0), 1.0),
        (Disturbance({"aa"}, drop=1.0), 0.0),
        (Disturbance({"aa"}, cut=True), 0.0),
        (Disturbance({"aa", "bb"}, cut=True), 1.0),
        (Disturbance(frozenset(), cut=True), 1.0),
    ],
)
def test_disturbances_drop_and_repeat_what_concerns_them(
    disturbance: Disturbance, mean_count: float
) -> None:
    links = network()
    links.disturbances.append(disturbance)
    arrived = sum(len(links.arrivals("aa", "bb", 1, 0)) for _ in range(4000))
    assert arrived / 4000 == pytest.approx(mean_count, abs=0.05)


def test_a_cut_leaves_clients_with_their_homes() -> None:
    links = network()
    links.disturbances.append(Disturbance({"aa"}, cut=True))
    assert len(links.arrivals("@c", "aa", 1, 0)) == 1


def test_what_is_held_up_is_overtaken() -> None:
    links = network()
    links.disturbances.append(Disturbance(late=0.5, late_ns=1e9))
    times = [links.arrivals("aa", "bb", 1, k)[0] for k in range(100)]
    assert times != sorted(times)
    assert min(times) >= 5_000_000
    assert max(times) <= 1_005_000_100


def test_a_spike_holds_everything_up_alike() -> None:
    links = network()
    links.disturbances.append(Disturbance(delay_ns=1e6))
    times = [links.arrivals("aa", "bb", 1, k)[0] for k in range(10)]
    assert times == [6_000_000 + k for k in range(10)]
