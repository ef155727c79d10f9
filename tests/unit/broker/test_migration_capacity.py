"""Room at a broker, in clients and in traffic, and what publishers say before they are measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.migration_worlds import MOVING, MoveWorld

from distributary.broker.migration.messages import RequestToMove, Reserve, Reserved, Summarize
from distributary.broker.settings import Settings
from distributary.broker.telemetry import Misbehaved, MoveRefused

EVERY_S = 0.25


def limited(**limits: Any) -> Settings:
    return replace(MOVING, migration=replace(MOVING.migration, **limits))


def busy_world(**limits: Any) -> MoveWorld:
    """Return an overlay whose brokers have measured what is published."""
    world = MoveWorld(settings=limited(**limits))
    world.run_s(3)
    world.publish_for(6)
    return world


def refusals(world: MoveWorld) -> set[tuple[str, str, str]]:
    """Who was refused, by whom and for want of what."""
    return {
        (record.client, record.target, record.reason)
        for _, record in world.reports
        if isinstance(record, MoveRefused)
    }


def event_traffic() -> float:
    """Return the bytes per second of what `publish_for` has published."""
    world = MoveWorld()
    world.customer("s", world.old, near=world.old)
    told = world.sent(Summarize)
    world.run_s(3)
    world.publish_for(8)
    world.run_s(3)
    rates: list[float] = [rate for summary in told for _, rate in summary.publishes]
    return max(rates)


TRAFFIC = event_traffic()
"""What somebody is sent who wants everything."""


def test_a_broker_without_room_for_its_traffic_does_not_take_a_client() -> None:
    world = busy_world(traffic_capacity=1.5 * TRAFFIC)
    device = world.customer("s", world.old, near=world.new)
    resident = world.subscribe("t", world.new)
    asked = world.sent(Reserve)
    world.publish_for(8)
    assert device.home == world.old
    assert refusals(world) == {("@s", world.new, "traffic")}
    assert max(message.traffic for message in asked) == pytest.approx(TRAFFIC)
    # As soon as there is room it goes.
    resident.unsubscribe("t")
    world.publish_for(8)
    world.run_s(3)
    assert device.home == world.new
    assert world.violations() == []


@pytest.mark.parametrize(
    ("limits", "moved", "reason"),
    [
        ({"capacity": 2, "traffic_capacity": 9.0 * TRAFFIC}, 2, "clients"),
        ({"capacity": 9, "traffic_capacity": 2.5 * TRAFFIC}, 2, "traffic"),
        ({"capacity": 1, "traffic_capacity": 2.5 * TRAFFIC}, 1, "clients"),
        ({"capacity": 9, "traffic_capacity": 0.5 * TRAFFIC}, 0, "traffic"),
        ({"capacity": 9, "traffic_capacity": 9.0 * TRAFFIC}, 3, None),
    ],
)
def test_room_is_kept_in_clients_and_in_traffic_while_several_are_asked(
    limits: dict[str, Any], moved: int, reason: str | None
) -> None:
    world = busy_world(**limits)
    devices = [world.customer(name, world.old, near=world.new) for name in ("s", "t", "u")]
    world.publish_for(16)
    assert sum(device.home == world.new for device in devices) == moved
    assert {why for _, _, why in refusals(world)} == ({reason} if reason else set())
    assert world.violations() == []


def test_room_that_is_not_needed_is_free_again() -> None:
    """A client that goes away when it is asked gives back what was reserved for it."""
    world = busy_world(traffic_capacity=1.5 * TRAFFIC)
    mute = world.customer("a", world.old, near=world.new)
    mute.handle(RequestToMove, lambda _: mute.unsubscribe("a"))
    device = world.customer("s", world.old, near=world.new)
    world.publish_for(16)
    assert ("@s", world.new, "traffic") in refusals(world)
    assert (mute.home, device.home) == (world.old, world.new)
    assert world.violations() == []


def test_a_client_goes_to_the_next_best_broker_when_the_best_one_is_full() -> None:
    world = busy_world(traffic_capacity=1.5 * TRAFFIC)
    device = world.subscribe("s", world.old)
    prices = {world.new: 1.0, world.other: 2.0}
    device.prices = tuple((m, prices.get(m, 100.0)) for m in world.members)
    device._tell_prices()
    world.subscribe("t", world.new)
    world.publish_for(12)
    assert device.home == world.other
    assert ("@s", world.new, "traffic") in refusals(world)
    assert world.violations() == []


def test_publishers_take_room_as_well() -> None:
    world = MoveWorld(settings=limited(capacity=1))
    device = world.customer("s", world.old, near=world.new)
    world.run_s(3)
    # The publisher is the only client of the broker that the other one wants to go to.
    world.publish_for(8, home=world.new)
    assert device.home == world.old
    assert refusals(world) == {("@s", world.new, "clients")}
    assert world.violations() == []


def publisher_of(world: MoveWorld, home: str) -> tuple[Any, int]:
    """Have a client publish once, so that it is known; return it and the cell."""
    world.publish("first", home, media_type=None)
    world.run_s(1)
    return world.publishers["/maps"], next(iter(world.ledger.published.values())).cell


def test_advertised_rates_count_before_anything_is_measured() -> None:
    world = MoveWorld(settings=limited(event_bytes=500))
    device = world.customer("s", world.old, near=world.new)
    publisher, cell = publisher_of(world, world.far)
    # Only what nobody has measured: what was published is forgotten.
    for member in world.members:
        world.crash_for(member, 1)
    world.run_s(2)
    told = world.sent(Summarize)
    asked = world.sent(Reserve)
    publisher.advertise(((cell, 6.0),))
    world.run_s(12)
    assert ((cell, 3000.0),) in [summary.publishes for summary in told]
    assert [message.traffic for message in asked] == [3000.0]
    assert device.home == world.new
    assert world.violations() == []


def test_what_is_measured_counts_and_not_what_was_advertised() -> None:
    world = MoveWorld(settings=limited(event_bytes=1_000_000))
    world.customer("s", world.old, near=world.old)
    publisher, cell = publisher_of(world, world.far)
    publisher.advertise(((cell, 6.0), ((cell + 1) % 64, 3.0)))
    world.run_s(3)
    world.publish_for(10)
    told = world.sent(Summarize)
    world.publish_for(6)
    published = [summary.publishes for summary in told if summary.publishes]
    assert published
    assert {cells for ((cells, _),) in published} == {cell}
    assert all(rate == pytest.approx(TRAFFIC, rel=0.3) for ((_, rate),) in published)


def test_a_publisher_that_falls_silent_has_no_traffic() -> None:
    world = MoveWorld()
    world.customer("s", world.old, near=world.old)
    publisher, cell = publisher_of(world, world.far)
    publisher.advertise(((cell, 6.0),))
    world.run_s(3)
    world.publish_for(6)
    world.run_s(4)
    told = world.sent(Summarize)
    world.run_s(6)
    assert told
    assert {summary.publishes for summary in told} == {()}


def test_a_client_brings_along_what_its_old_home_has_measured() -> None:
    world = MoveWorld()
    world.subscribe("s", world.far)
    world.run_s(2)
    world.publish_for(3, home=world.old)
    device = world.publishers["/maps"]
    world.register(device, world.new)
    world.publish_for(10, home=world.old)
    assert device.home == world.new
    rates = world.core(world.new).migration._rates.of(device.address)
    assert sum(rates.values()) == pytest.approx(TRAFFIC, rel=0.3)
    assert world.core(world.old).migration._rates.of(device.address) == {}


@pytest.mark.parametrize("rate", [1e308, 1e30])
def test_a_boast_does_not_make_a_broker_say_what_others_refuse(rate: float) -> None:
    world = MoveWorld()
    world.customer("s", world.old, near=world.new)
    publisher, cell = publisher_of(world, world.far)
    for member in world.members:
        world.crash_for(member, 1)
    world.run_s(2)
    publisher.advertise(((cell, rate),))
    world.run_s(8)
    assert not [record for _, record in world.reports if isinstance(record, Misbehaved)]


def test_every_answer_names_what_there_is_no_room_for() -> None:
    world = MoveWorld(settings=limited(capacity=0))
    world.customer("s", world.old, near=world.new)
    answers = world.sent(Reserved)
    world.run_s(3)
    world.publish_for(8)
    assert set(answers) == {Reserved("@s", "clients")}
