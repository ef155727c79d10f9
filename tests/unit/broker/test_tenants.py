"""What is one tenant's no other tenant ever hears of, whatever has the same name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.content_worlds import JPEG, PDF, SETTINGS, ContentWorld

from distributary.broker.addresses import client_address
from distributary.broker.client import Accepted, Announce, Changed, Publish, Subscribe, Updated
from distributary.broker.deliveries.finished import Finished
from distributary.broker.dissemination.messages import Item, ItemId
from distributary.broker.settings import StreamSettings
from distributary.content import parse_event

MAPS: list[object] = [{"exact": {"type": "map"}}]
HIGH: list[object] = [{"exact": {"type": "map"}}, {"range": {"level": {"min": 5}}}]


def world_of(*homes: int, **options: Any) -> tuple[ContentWorld, list[str]]:
    world = ContentWorld(5, **options)
    return world, [world.members[home] for home in homes]


def ids(world: ContentWorld, subscription: str) -> list[str]:
    return [identity for identity, _ in world.got(subscription)]


@pytest.mark.parametrize("homes", [(0, 0), (0, 3)])
def test_a_filter_matches_what_its_own_tenant_publishes_and_nothing_else(
    homes: tuple[int, int],
) -> None:
    world, (one, other) = world_of(*homes)
    world.subscribe("a", one, tenant="a")
    world.subscribe("b", other, tenant="b")
    world.subscribe("nobody's", one)
    world.run_s(4)
    world.publish("of a", one, tenant="a", source="/a")
    world.publish("of b", one, tenant="b", source="/b")
    world.publish("of nobody", other, source="/c")
    world.run_s(10)
    assert (ids(world, "a"), ids(world, "b")) == (["of a"], ["of b"])
    assert ids(world, "nobody's") == ["of nobody"]
    assert world.violations() == []


@pytest.mark.parametrize("homes", [(0, 0), (0, 3)])
def test_two_tenants_may_publish_under_the_same_source_and_id(homes: tuple[int, int]) -> None:
    """Once the second of them was told that it was accepted, and nobody ever got it."""
    world, (one, other) = world_of(*homes)
    world.subscribe("a", other, tenant="a")
    world.subscribe("b", other, tenant="b")
    world.run_s(4)
    for level in range(3):
        world.publish(f"{level}", one, tenant="a", level=level)
        world.publish(f"{level}", other, tenant="b", level=level + 10)
        world.run_s(1)
    world.run_s(10)
    assert ids(world, "a") == ids(world, "b") == ["0", "1", "2"]
    assert world.violations() == []
    levels = {
        (wish, identity.id): receipt.event.attributes["level"]
        for (wish, identity), receipt in world.ledger.got.items()
        if receipt.event is not None
    }
    expected = {("a of @a@a", str(k)): k for k in range(3)}
    expected |= {("b of @b@b", str(k)): k + 10 for k in range(3)}
    assert levels == expected


def test_a_wider_subscription_of_another_tenant_covers_nothing() -> None:
    world, (home,) = world_of(0)
    world.subscribe("wide", home, MAPS, tenant="a")
    world.run_s(3)
    world.subscribe("narrow", home, HIGH, tenant="b")
    world.run_s(3)
    subscriptions = world.overlay.broker(home).core.subscriptions
    assert subscriptions.covered_by("wide") == []
    world.publish("1", world.members[2], tenant="b", level=7)
    world.run_s(5)
    assert (ids(world, "wide"), ids(world, "narrow")) == ([], ["1"])


def test_a_conversion_of_the_same_content_is_made_for_each_tenant() -> None:
    """Who could tell by the time that somebody else has the same content would know it."""
    world, (home,) = world_of(0)
    asked: list[str] = []
    honest = world.world.convert
    world.world.convert = lambda broker, blob, target: (
        asked.append(blob.digest) or honest(broker, blob, target)  # type: ignore[func-returns-value]
    )
    for tenant in ("a", "b"):
        world.subscribe(tenant, home, accept=[JPEG], tenant=tenant)
    world.run_s(4)
    for tenant in ("a", "b"):
        world.publish("map", home, tenant=tenant)
    world.run_s(10)
    assert ids(world, "a") == ids(world, "b") == ["map"]
    assert len(asked) == 2
    assert len(set(asked)) == 1


def test_what_was_dropped_for_one_tenant_is_published_by_another() -> None:
    settings = replace(SETTINGS, subscriptions=replace(SETTINGS.subscriptions, interest_s=20.0))
    world, (home,) = world_of(0, settings=settings)
    core = world.overlay.broker(home).core
    space = settings.space
    heard: dict[str, list[object]] = {"a": [], "b": []}

    class Client:
        def __init__(self, tenant: str) -> None:
            self.tenant = tenant
            self.address = client_address("c", tenant)
            world.world.clients[self.address] = self

        def receive(self, message: object, *, sender: str, now_ns: int) -> None:
            heard[self.tenant].append(message)

    event = '{"specversion":"1.0","id":"1","source":"/s","type":"map"}'
    clients = {tenant: Client(tenant) for tenant in heard}
    unwanted = core.rendezvous.advertisements._unwanted
    cell = space.cell_of(parse_event(event))
    root = core.membership.root_of(core.rendezvous.key_of(cell))
    unwanted[cell] = (root, world.world.now_ns + 10**12)
    world.world.send(clients["a"].address, home, Publish(event))
    world.run_s(0.5)
    unwanted.clear()
    world.world.send(clients["b"].address, home, Publish(event))
    world.run_s(0.5)
    assert heard == {"a": [Accepted("/s", "1")], "b": [Accepted("/s", "1")]}
    assert list(core.publishing._kept) == [ItemId("b", "/s", "1")]
    assert list(core.publishing._remembered) == [ItemId("a", "/s", "1")]


def test_items_of_two_tenants_are_kept_apart_in_every_index() -> None:
    item = Item("/s", "1", 0, 1, 1, "home", 0, "{}", PDF, 1, inline=False, tenant="a")
    other = item._replace(tenant="b")
    assert item.identity != other.identity
    assert item.sequence != other.sequence
    one, two = (Finished(i.identity, 0, 0, 1, 1, "root", 1, ()) for i in (item, other))
    assert one.sequence != two.sequence


def test_the_same_survives_a_crash_of_every_broker() -> None:
    world, (one, other) = world_of(0, 3)
    for tenant in ("a", "b"):
        world.subscribe(tenant, other, tenant=tenant)
    world.run_s(4)
    for tenant, level in (("a", 1), ("b", 2)):
        world.publish("1", one, tenant=tenant, level=level)
    world.run_s(0.05)
    for broker in world.members:
        world.world.crash(broker)
        world.run_s(0.02)
        world.overlay.restart(broker)
    world.run_s(30)
    for tenant, level in (("a", 1), ("b", 2)):
        world.publish("2", one, tenant=tenant, level=level)
    world.run_s(30)
    assert ids(world, "a") == ids(world, "b") == ["1", "2"]
    assert world.violations() == []


@pytest.mark.parametrize("approach", ["tree-each", "one-tree"])
@pytest.mark.parametrize("homes", [(0, 0), (0, 3)])
def test_a_stream_is_followed_by_its_own_tenant_only(approach: str, homes: tuple[int, int]) -> None:
    settings = replace(SETTINGS, streams=StreamSettings(approach=approach))
    world, (one, other) = world_of(*homes, settings=settings)
    heard: dict[str, list[float | str | None]] = {"a": [], "b": []}

    class Client:
        def __init__(self, name: str, tenant: str) -> None:
            self.tenant = tenant
            self.address = client_address(name, tenant)
            world.world.clients[self.address] = self

        def receive(self, message: Any, *, sender: str, now_ns: int) -> None:
            if isinstance(message, Updated):
                heard[self.tenant].append(message.values[0][1])

    event = '{"specversion":"1.0","id":"0","source":"/s","type":"quote","subject":"x"}'
    tolerance = {"value": "/v", "divergence": "absolute", "amount": 0.5}
    for tenant in heard:
        follower = Client("follower", tenant)
        document = {"id": f"s-{tenant}", "filters": [], "tolerance": tolerance}
        world.world.send(follower.address, other, Subscribe(json.dumps(document)))
    world.run_s(4)
    for tenant, value in (("a", 1.0), ("b", 101.0)):
        publisher = Client("publisher", tenant)
        world.world.send(publisher.address, one, Announce(event))
        world.run_s(3)
        for step in range(2):
            changed = Changed("/s", "x", step + 1, 0, (("/v", value + step),))
            world.world.send(publisher.address, one, changed)
            world.run_s(2)
    world.run_s(5)
    assert set(heard["a"]) == {1.0, 2.0}
    assert set(heard["b"]) == {101.0, 102.0}


def test_nobody_changes_an_object_of_another_tenant() -> None:
    world, (home,) = world_of(0)
    event = '{"specversion":"1.0","id":"0","source":"/s","type":"quote","subject":"x"}'
    world.world.send(client_address("p", "a"), home, Announce(event))
    world.run_s(3)
    changed = Changed("/s", "x", 1, 0, (("/v", 1.0),))
    world.world.send(client_address("p", "b"), home, changed)
    world.run_s(3)
    streams = world.overlay.broker(home).core.streams._forest.streams
    assert [stream.copy for stream in streams.values()] == [None]
