"""Clients that move between brokers: nothing is missed, nothing comes twice, order is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.broker_overlays import SECOND
from tests.migration_worlds import MOVING, MoveWorld, decline

from distributary.broker import client as messages
from distributary.broker.dissemination.messages import Offer
from distributary.broker.migration.messages import (
    MoveNow,
    Redirect,
    Replicate,
    Replicated,
    RequestToMove,
    Reserve,
)
from distributary.broker.subscriptions.subscription import scoped_id
from distributary.content import Subscription
from distributary.simulator.workload.device import Device


def test_a_client_is_moved_to_where_it_costs_least_while_content_flows() -> None:
    world = MoveWorld()
    device = world.customer("s", world.old, near=world.new)
    redirected = world.sent(Redirect)
    world.run_s(3)
    world.publish_for(10)
    world.run_s(5)
    assert device.home == world.new
    assert world.arrivals() == [("@s", world.new)]
    assert redirected
    assert len(world.got("s")) == 40
    assert world.violations() == []
    assert world.leftovers() == []
    assert world.core(world.old).subscriptions.clients() == []
    assert world.core(world.new).subscriptions.clients() == ["@s"]


def test_a_client_that_has_moved_does_not_go_back_and_forth() -> None:
    world = MoveWorld()
    device = world.customer("s", world.old, near=world.new)
    neighbour = world.customer("t", world.new, near=world.old)
    world.run_s(3)
    world.publish_for(30, every_s=0.5)
    assert (device.home, neighbour.home) == (world.new, world.old)
    assert sorted(world.arrivals()) == [("@s", world.new), ("@t", world.old)]
    assert world.violations() == []


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("wait_s", [0.0, 3.0])
def test_one_that_subscribed_while_content_flowed_gets_nothing_older_when_it_moves(
    seed: int, wait_s: float
) -> None:
    """Roots have what was published just before, and clocks leave open what was first."""
    world = MoveWorld(seed=seed)
    world.run_s(3)
    world.publish_for(6)
    device = world.subscribe("s", world.old)
    world.publish_for(wait_s)
    world.register(device, world.new)
    world.publish_for(16)
    world.run_s(3)
    assert device.home == world.new
    assert world.violations() == []


def test_what_saves_less_than_the_threshold_is_no_reason_to_move() -> None:
    keen = replace(MOVING.migration, threshold=0.999)
    world = MoveWorld(settings=replace(MOVING, migration=keen))
    asked = world.sent(Reserve)
    device = world.customer("s", world.old, near=world.new)
    world.run_s(3)
    world.publish_for(10)
    assert device.home == world.old
    assert asked == []


def test_a_client_that_declines_stays_and_misses_nothing() -> None:
    world = MoveWorld()
    device = world.customer("s", world.old, near=world.new)
    decline(device)
    requests = world.sent(RequestToMove)
    world.run_s(3)
    world.publish_for(8)
    world.run_s(2)
    assert requests
    assert device.home == world.old
    assert len(world.core(world.new).migration.arrivals) == 0
    assert world.violations() == []


def test_a_client_that_does_not_answer_is_left_alone() -> None:
    world = MoveWorld()
    device = world.customer("s", world.old, near=world.new)
    device.handle(RequestToMove, lambda _: None)
    world.run_s(3)
    world.publish_for(2)
    world.run_s(4)
    assert not world.core(world.old).migration.departures.has_left("@s")
    assert len(world.core(world.new).migration.arrivals) == 0
    assert world.violations() == []


def test_a_broker_that_is_full_takes_nobody() -> None:
    full = replace(MOVING.migration, capacity=1)
    world = MoveWorld(settings=replace(MOVING, migration=full))
    device = world.customer("s", world.old, near=world.new)
    resident = world.subscribe("t", world.new)
    requests = world.sent(RequestToMove)
    world.run_s(3)
    world.publish_for(8)
    assert requests == []
    assert device.home == world.old
    # As soon as there is room it goes.
    resident.unsubscribe("t")
    world.publish_for(8)
    world.run_s(3)
    assert device.home == world.new
    assert world.violations() == []


def test_room_is_kept_for_one_client_at_a_time() -> None:
    full = replace(MOVING.migration, capacity=1)
    world = MoveWorld(settings=replace(MOVING, migration=full))
    devices = [world.customer(name, world.old, near=world.new) for name in ("s", "t")]
    world.run_s(3)
    world.publish_for(10)
    world.run_s(3)
    assert sorted(device.home for device in devices) == sorted([world.old, world.new])
    assert world.violations() == []


def test_clients_with_the_same_id_meet_at_one_home() -> None:
    world = MoveWorld()
    device = world.customer("s", world.old, near=world.new)
    resident = world.subscribe("s", world.new, client="resident")
    world.run_s(3)
    world.publish_for(10)
    world.run_s(5)
    assert (device.home, resident.home) == (world.new, world.new)
    assert len(world.got("s")) == 2 * 40
    assert world.violations() == []
    assert world.leftovers() == []


def test_a_client_whose_subscription_is_still_ending_at_the_target_stays() -> None:
    """It had one of that id there, which covers one of somebody else."""
    world = MoveWorld()
    never = Device(world.world, "never", world.new)
    never.handle(messages.Subscribed, lambda _: None)
    earlier = json.dumps({"id": "s", "filters": [{"prefix": {"type": "noth"}}]})
    covered = json.dumps({"id": "s", "filters": [{"exact": {"type": "nothing"}}]})
    world.world.tell(world.new, messages.Subscribe(earlier), sender="@s")
    world.run_s(1)
    never.send(messages.Subscribe(covered))
    world.run_s(1)
    device = world.customer("s", world.old, near=world.new)
    end = messages.Unsubscribe("s")
    answers = world.sent(Replicated)
    world.on_first(Replicate, lambda: world.world.tell(world.new, end, sender="@s"))
    world.run_s(3)
    world.publish_for(10)
    world.run_s(3)
    assert answers[0] == Replicated("@s", stored=False)
    assert device.home == world.new, "the next time it is welcome"
    assert len(world.got("s")) == 40
    assert world.violations() == []


def test_covered_subscriptions_move_without_those_that_cover_them() -> None:
    world = MoveWorld()
    world.subscribe("wide", world.old)
    world.run_s(1)
    narrow = [{"exact": {"type": "map"}}]
    device = world.customer("narrow", world.old, near=world.new, filters=narrow)
    world.run_s(2)
    local = world.core(world.old).subscriptions.get(scoped_id("@narrow", "narrow"))
    assert local is not None
    assert local.coverer == scoped_id("@wide", "wide")
    world.publish_for(10)
    world.run_s(5)
    assert device.home == world.new
    assert world.subscribers["wide"].home == world.old
    assert len(world.got("narrow")) == len(world.got("wide")) == 40
    assert world.violations() == []


def test_those_that_a_client_covered_stay_when_it_moves() -> None:
    world = MoveWorld()
    device = world.customer("wide", world.old, near=world.new)
    world.run_s(1)
    world.subscribe("narrow", world.old, [{"exact": {"type": "map"}}])
    world.run_s(2)
    world.publish_for(10)
    world.run_s(5)
    assert device.home == world.new
    assert world.subscribers["narrow"].home == world.old
    assert len(world.got("narrow")) == len(world.got("wide")) == 40
    assert world.violations() == []


def test_one_that_changes_its_coverer_while_it_leaves_gets_everything() -> None:
    world = MoveWorld()
    first = world.subscribe("first", world.old)
    world.subscribe("second", world.old, [{"prefix": {"type": "m"}}])
    world.run_s(1)
    narrow = [{"exact": {"type": "map"}}]
    device = world.customer("narrow", world.old, near=world.new, filters=narrow)
    world.run_s(2)
    world.on_first(Replicated, lambda: first.unsubscribe("first"))
    world.publish_for(10)
    world.run_s(5)
    assert device.home == world.new
    assert len(world.got("narrow")) == 40
    assert world.violations() == []


def test_nothing_comes_for_a_subscription_that_is_ended_at_the_new_home() -> None:
    slow = replace(MOVING.migration, redirect_s=6.0)
    world = MoveWorld(settings=replace(MOVING, migration=slow))
    device = world.customer("s", world.old, near=world.new)
    world.subscribe("other", world.old)
    world.run_s(3)
    world.publish_for(2)
    assert device.home == world.new
    assert world.core(world.old).migration.departures.has_left("@s")
    device.unsubscribe("s")
    world.publish_for(1)
    before = len(world.got("s"))
    world.publish_for(10)
    assert len(world.got("s")) == before
    assert world.violations() == []


def test_a_publisher_that_moves_keeps_its_order_and_its_numbers() -> None:
    world = MoveWorld()
    world.subscribe("s", world.far)
    world.run_s(2)
    offers = world.sent(Offer)
    world.publish_for(3, home=world.old)
    device = world.publishers["/maps"]
    world.register(device, world.new)
    world.publish_for(10, home=world.old)
    world.run_s(5)
    assert device.home == world.new
    assert {offer.item.home for offer in offers} == {world.old, world.new}
    assert len({offer.item.series for offer in offers}) == 1
    assert {offer.item.number for offer in offers} == set(range(1, 53))
    assert [name for name, _ in world.got("s")] == [f"{k:04d}" for k in range(1, 53)]
    assert world.violations() == []
    assert not any(key.startswith("publishing/") for key in world.world.nodes[world.old].journal)


def test_advertisements_move_along() -> None:
    world = MoveWorld()
    world.publish("first", world.old, media_type=None)
    world.run_s(1)
    device = world.publishers["/maps"]
    cell = next(iter(world.ledger.published.values())).cell
    device.advertise(((cell, 1.0),))
    world.run_s(2)
    world.register(device, world.new)
    # Wanted for as long as it takes to move.
    reader = world.subscribe("s", world.far)
    world.publish_for(10, home=world.old)
    assert device.home == world.new
    reader.unsubscribe("s")
    world.run_s(10)
    now_ns = world.world.now_ns
    assert world.core(world.old).rendezvous.advertisements.rates(device.address) == {}
    assert world.core(world.new).rendezvous.advertisements.rates(device.address) == {cell: 1.0}
    assert not world.core(world.old).rendezvous.unwanted(cell, now_ns)
    assert world.core(world.new).rendezvous.unwanted(cell, now_ns)
    offers = world.sent(Offer)
    world.publish_for(1)
    assert offers == []
    world.subscribe("t", world.far)
    world.run_s(8)
    world.publish_for(1)
    world.run_s(2)
    assert len(world.got("t")) == 4
    assert world.violations() == []


QUOTES = [{"exact": {"type": "quote"}}]
TOLERANCE = {"value": "/v", "divergence": "absolute", "amount": 0.5}


def announced(world: MoveWorld, name: str, home: str) -> Device:
    """Have a client announce an object."""
    device = Device(world.world, name, home)
    device.handle(messages.Announced, lambda _: device.answered("announce"))
    event = {"specversion": "1.0", "id": "0", "source": "/q", "type": "quote", "subject": "a"}
    device.request(messages.Announce(json.dumps(event)), "announce")
    return device


def test_a_client_that_follows_streams_moves_and_goes_on_following() -> None:
    world = MoveWorld()
    publisher = announced(world, "quotes", world.far)
    device = world.customer("s", world.old, near=world.new)
    heard: list[tuple[str, float]] = []
    device.handle(messages.Updated, lambda update: heard.append((device.home, update.values[0][1])))
    document = {"id": "q", "filters": QUOTES, "tolerance": TOLERANCE}
    device.subscribe(Subscription.parse(document))

    def change(value: int) -> None:
        now_ns = world.world.now_ns
        publisher.send(messages.Changed("/q", "a", value, now_ns, (("/v", float(value)),)))

    for k in range(1, 36):
        world.world.at(k * SECOND // 2, change, k)
    world.run_s(3)
    world.publish_for(10)
    world.run_s(6)
    assert device.home == world.new
    assert {home for home, _ in heard} == {world.old, world.new}
    values = [value for _, value in heard]
    assert values == sorted(values)
    assert values[-1] == 35.0
    # While it changes homes it may miss versions, but no longer than it takes to follow anew.
    assert max(b - a for a, b in pairwise(values)) <= 3.0
    assert world.core(world.old).streams.trees() == ()
    assert world.violations() == []


def test_a_client_that_announces_streams_is_not_moved() -> None:
    world = MoveWorld()
    device = world.customer("s", world.old, near=world.new)
    event = {"specversion": "1.0", "id": "0", "source": "/q", "type": "quote", "subject": "a"}
    device.handle(messages.Announced, lambda _: None)
    announce = messages.Announce(json.dumps(event))
    reserves = world.sent(Reserve)
    world.run_s(2)
    device.send(announce)
    world.run_s(1)
    world.publish_for(8)
    assert device.home == world.old
    assert reserves == []


def test_a_client_that_announces_a_stream_when_asked_to_move_stays() -> None:
    world = MoveWorld()
    device = world.customer("s", world.old, near=world.new)
    event = {"specversion": "1.0", "id": "0", "source": "/q", "type": "quote", "subject": "a"}
    device.handle(messages.Announced, lambda _: None)
    announce = messages.Announce(json.dumps(event))
    world.on_first(
        RequestToMove, lambda: world.world.tell(world.old, announce, sender=device.address)
    )
    moves = world.sent(MoveNow)
    world.run_s(3)
    world.publish_for(8)
    assert device.home == world.old
    assert moves == []
    assert len(world.core(world.new).migration.arrivals) == 0
    assert world.violations() == []
