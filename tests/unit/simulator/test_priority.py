"""Messages of membership have priority over others: load changes no delays, and no routes."""

from __future__ import annotations

import random

import numpy as np

from distributary.broker.addresses import Address
from distributary.broker.host import Neighbour, Surroundings
from distributary.broker.links.messages import Hop
from distributary.broker.membership.roster import Ping, Pong
from distributary.broker.settings import MembershipSettings, Settings, ns
from distributary.simulator.network import SimulatedNetwork
from distributary.simulator.places import Places
from distributary.simulator.scenario import OverlayTable
from distributary.simulator.world import World

MEMBERS = ("1111", "8888", "eeee")
DELAY_NS = 5_000_000
SETTINGS = Settings(membership=MembershipSettings(period_s=0.5))


def world_of(mbps: float) -> World:
    delays = np.full((3, 3), DELAY_NS)
    places = Places(MEMBERS, delays, np.ones((3, 3)), np.ones(3))
    table = OverlayTable(brokers=3, bandwidth_mbps=mbps)
    world = World(SETTINGS, SimulatedNetwork(places, table, random.Random(1)), seed=1)
    for identity in MEMBERS:
        neighbours = tuple(Neighbour(other, DELAY_NS) for other in MEMBERS if other != identity)
        world.add(identity, Surroundings(neighbours, members=MEMBERS))
    return world


def delay_ms(world: World, one: str, other: str) -> float:
    broker = world.nodes[one].broker
    assert broker is not None
    return broker.core.membership.delay_ns_to(other) / 1e6


def load(world: World, seconds: float, *, every_s: float, size_bytes: int) -> None:
    """Have two brokers send each other data for a while."""
    one, other, _ = MEMBERS
    start_ns = world.now_ns
    for number in range(round(seconds / every_s)):
        for sender, to in ((one, other), (other, one)):
            hop = Hop(1 + number, 1, bytes(size_bytes))
            world.at(start_ns + round(number * every_s * 1e9), world.send, sender, to, hop)
    world.run_until(start_ns + ns(seconds))


def test_pings_do_not_stand_in_line_behind_data() -> None:
    world = world_of(mbps=1.0)
    one, other, _ = MEMBERS
    world.run_until(ns(3.0))
    before = delay_ms(world, one, other)
    # Each takes a tenth of a second.
    load(world, 20.0, every_s=0.11, size_bytes=12_500)
    assert abs(delay_ms(world, one, other) - before) < 1.0
    assert abs(delay_ms(world, other, one) - before) < 1.0


def test_a_link_that_is_overloaded_takes_nobody_down() -> None:
    world = world_of(mbps=1.0)
    one, other, third = MEMBERS
    # Whoever is asked to ask for them has the same trouble.
    for sender in (one, other):
        for number in range(1, 30):
            world.send(sender, third, Hop(number, 1, bytes(125_000)))
            world.send(third, sender, Hop(number, 1, bytes(125_000)))
    load(world, 20.0, every_s=0.5, size_bytes=125_000)
    broker = world.nodes[one].broker
    assert broker is not None
    assert broker.core.membership.alive() == MEMBERS


def test_a_ping_takes_the_time_of_its_own_size() -> None:
    world = world_of(mbps=0.01)
    one, other, _ = MEMBERS
    world.run_until(ns(10.0))
    # Some hundred bits at ten thousand a second.
    assert delay_ms(world, one, other) > 10.0


def test_a_busy_broker_answers_pings_at_once() -> None:
    world = world_of(mbps=0.0)
    one, other, _ = MEMBERS
    world.nodes[other].message_ns = 1e9
    answers: list[int] = []

    def listen(sender: Address, to: Address, message: object, now_ns: int) -> None:
        if sender == other and to == one and isinstance(message, Pong):
            answers.append(now_ns)

    for number in range(1, 20):
        world.send(one, other, Hop(number, 1, b""))
    world.run_until(ns(0.1))
    world.listeners.append(listen)
    asked_ns = world.now_ns
    world.send(one, other, Ping(77, 1, 0))
    world.run_until(ns(0.2))
    assert asked_ns + DELAY_NS in answers


def test_what_stands_in_line_is_not_held_up_by_pings() -> None:
    places = Places(("aa", "bb"), np.full((2, 2), DELAY_NS), np.ones((2, 2)), np.ones(2))
    table = OverlayTable(brokers=2, bandwidth_mbps=8.0)
    links = SimulatedNetwork(places, table, random.Random(3))
    assert links.arrivals("aa", "bb", 1000, 0) == (DELAY_NS + 1_000_000,)
    assert links.priority_arrivals("aa", "bb", 100, 0) == (DELAY_NS + 100_000,)
    assert links.arrivals("aa", "bb", 1000, 0) == (DELAY_NS + 2_000_000,)
