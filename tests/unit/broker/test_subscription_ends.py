"""A subscription lives until it is ended, until it expires, or until too much waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.broker_overlays import SECOND, Overlay
from tests.broker_subscribers import (
    Subscriber,
    cell_of,
    core_of,
    event,
    holders,
    matching,
    settings_with,
)
from tests.content_worlds import SETTINGS, ContentWorld

from distributary.broker.client import (
    Acknowledge,
    Delivery,
    Ended,
    Refused,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from distributary.broker.settings import SubscriptionSettings
from distributary.broker.subscriptions.subscription import LocalSubscription
from distributary.simulator.node import Torn

ALARM = {"exact": {"type": "alarm"}}


def matched(overlay: Overlay, home: str) -> list[str]:
    found: list[LocalSubscription] = matching(core_of(overlay, home).subscriptions, event("alarm"))
    return [local.subscription.id for local in found]


def test_a_subscription_of_a_client_that_says_nothing_stays() -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(1_000)
    assert matched(overlay, home) == ["s"]
    assert client.received == [Subscribed("s")]
    assert len(holders(overlay, home, "s", cell_of(overlay, event("alarm")))) == 2


def test_what_is_idle_is_not_written_again() -> None:
    """Renewing 400 registrations took 28 durable operations per second."""
    overlay = Overlay(8, settings=settings_with(registration_s=10.0))
    for number in range(40):
        client = Subscriber(overlay, f"@{number}", overlay.members[number % 8])
        for kind in range(10):
            client.subscribe(f"s{kind}", {"exact": {"type": f"{number} {kind}"}})
    # So long that every registration has been renewed with all that is known of it.
    overlay.run_s(30)
    written: list[str] = []

    def count(writes: Mapping[str, bytes | None]) -> None:
        written.extend(writes)

    for node in overlay.world.nodes.values():
        node.at_commit = count
    overlay.run_s(200)
    assert written == []
    kept = [(one, core_of(overlay, one).rendezvous._table) for one in overlay.members]
    besides = sum(entry.key[0] != one for one, table in kept for entry in table)
    assert besides == 2 * 400, "at two brokers besides the home"


@pytest.mark.parametrize("seed", range(3))
def test_renewals_that_get_lost_lose_no_registration(seed: int) -> None:
    overlay = Overlay(6, seed=seed, settings=settings_with(registration_s=5.0, confirm_s=0.5))
    home = overlay.members[0]
    Subscriber(overlay, "@a", home).subscribe("s", {"sql": "EXISTS type"})
    overlay.run_s(5)
    overlay.network.loss = 0.4
    overlay.run_s(120)
    root_tables = [core_of(overlay, one).rendezvous for one in overlay.members]
    cells = {c for r in root_tables for entry in r._table for c in entry.cells}
    assert len(cells) > 60


def test_what_a_root_has_too_much_is_not_renewed() -> None:
    """One that its home has withdrawn somewhere else, as after a long partition."""
    overlay = Overlay(4, settings=settings_with(registration_s=5.0))
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(2)
    core = core_of(overlay, home)
    (local,) = core.subscriptions.of_client("@a")
    # Forgotten by its home, and by nobody else.
    core.subscriptions._lifecycle.registrar.abandon(f"s/{local.registration}")
    client.subscribe("t", ALARM, profile={"accept": ["image/jpeg"]})
    overlay.run_s(40)
    cell = cell_of(overlay, event("alarm"))
    assert holders(overlay, home, "s", cell) == []
    assert len({*holders(overlay, home, "t", cell)} - {home}) == 2


@pytest.mark.parametrize("written", [10.0, "1970-01-01T00:00:10Z"])
def test_a_subscription_that_expires_ends_with_a_notice(written: object) -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM, config={"expires": written})
    overlay.run_s(9)
    assert matched(overlay, home) == ["s"]
    overlay.run_s(2)
    assert matched(overlay, home) == []
    # Until it is answered.
    assert client.answers(Ended) == [Ended("s", "expired", 0, 0, 0)] * 2
    client.tell(Unsubscribe("s"))
    overlay.run_s(1)
    client.received.clear()
    overlay.run_s(30)
    assert client.received == []
    assert holders(overlay, home, "s", cell_of(overlay, event("alarm"))) == []
    keys = [key for key in overlay.world.nodes[home].journal if key.startswith("subscriptions/")]
    assert keys == ["subscriptions/version"]


def test_a_change_in_time_keeps_a_subscription_that_would_expire() -> None:
    """Though its roots cannot be reached before it would have."""
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", {"exact": {"type": "other"}}, config={"expires": 10.0})
    overlay.run_s(9)
    overlay.network.apart = frozenset({home, "@a"})
    client.subscribe("s", ALARM, revision=1, config={"expires": 40.0})
    overlay.run_s(1.5)
    overlay.network.apart = frozenset()
    overlay.run_s(10)
    assert client.answers(Ended) == []
    assert client.answers(Subscribed)[-1] == Subscribed("s", 1)
    assert matched(overlay, home) == ["s"]
    overlay.run_s(20)
    assert {(one.id, one.reason) for one in client.answers(Ended)} == {("s", "expired")}


def test_it_is_the_clock_of_the_home_that_counts() -> None:
    overlay = Overlay(4)
    home = overlay.members[0]
    overlay.world.nodes[home].skew_ns = 3 * SECOND
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM, config={"expires": 13.0})
    overlay.run_s(9.5)
    assert matched(overlay, home) == ["s"]
    overlay.run_s(1)
    assert matched(overlay, home) == []


def test_what_expires_while_the_home_is_away_ends_when_it_is_back() -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM, config={"expires": 10})
    client.subscribe("t", ALARM, config={"expires": 100})
    overlay.run_s(5)
    overlay.world.crash(home)
    overlay.run_s(10)
    overlay.restart(home)
    overlay.run_s(1)
    assert matched(overlay, home) == ["t"]
    assert client.answers(Ended)[0] == Ended("s", "expired", 0, 0, 0)


def test_an_end_can_be_put_off_or_brought_forward() -> None:
    overlay = Overlay(4)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM, config={"expires": 10})
    client.subscribe("t", ALARM)
    overlay.run_s(5)
    client.subscribe("s", ALARM, revision=1, config={"expires": 30})
    client.subscribe("t", ALARM, revision=1, config={"expires": 20})
    overlay.run_s(10)
    assert matched(overlay, home) == ["s", "t"]
    overlay.run_s(10)
    assert matched(overlay, home) == ["s"]
    overlay.run_s(10)
    assert matched(overlay, home) == []


def test_what_has_expired_cannot_be_asked_for() -> None:
    overlay = Overlay(2)
    client = Subscriber(overlay, "@a", overlay.members[0])
    overlay.run_s(20)
    client.subscribe("s", ALARM, config={"expires": 10})
    overlay.run_s(1)
    assert client.received == [
        Refused("subscription", "config.expires is a time that has passed", id="s")
    ]


def test_those_that_an_expired_subscription_covered_are_registered() -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("wide", {"sql": "EXISTS type"}, config={"expires": 10})
    overlay.run_s(1)
    client.subscribe("narrow", ALARM)
    overlay.run_s(1)
    cell = cell_of(overlay, event("alarm"))
    assert holders(overlay, home, "narrow", cell) == []
    overlay.run_s(10)
    assert matched(overlay, home) == ["narrow"]
    assert len(holders(overlay, home, "narrow", cell)) == 2
    assert holders(overlay, home, "wide", cell) == []


# Queues.


def queueing(queue_s: float = 1e6, **config: float) -> tuple[ContentWorld, Subscriber]:
    """A client that acknowledges nothing by itself."""
    subscriptions = SubscriptionSettings(registration_s=10.0, queue_s=queue_s)
    world = ContentWorld(4, settings=replace(SETTINGS, subscriptions=subscriptions))
    client = Subscriber(world.overlay, "@a", world.members[0])
    client.subscribe("s", config=config)
    world.run_s(2)
    return world, client


def test_a_queue_that_grows_too_large_ends_its_subscription() -> None:
    world, client = queueing(queue_bytes=2_500_000)
    world.publish("1", world.members[1])
    world.run_s(2)
    client.tell(Acknowledge("s", 1))
    for name in ("2", "3"):
        world.publish(name, world.members[1])
    world.run_s(3)
    assert client.answers(Ended) == []
    world.publish("4", world.members[1])
    world.run_s(3)
    assert set(client.answers(Ended)) == {Ended("s", "bytes", 3, 2, 4)}
    client.tell(Unsubscribe("s"))
    world.run_s(1)
    home = world.world.nodes[world.members[0]]
    assert not [key for key in home.journal if key.startswith("deliveries/entry")]
    client.received.clear()
    world.publish("5", world.members[1])
    world.run_s(20)
    assert client.received == []


@pytest.mark.parametrize("where", ["subscription", "settings"])
def test_a_queue_that_grows_too_old_ends_its_subscription(where: str) -> None:
    world, client = queueing(queue_s=20.0) if where == "settings" else queueing(queue_s=1e6)
    if where == "subscription":
        client.subscribe("s", revision=1, config={"queue_s": 20.0})
    world.publish("1", world.members[1])
    world.run_s(15)
    client.tell(Acknowledge("s", 1))
    world.publish("2", world.members[1])
    world.run_s(18)
    assert client.answers(Ended) == []
    world.run_s(4)
    assert set(client.answers(Ended)) == {Ended("s", "age", 1, 2, 2)}


def test_a_subscription_cannot_ask_for_more_than_brokers_allow() -> None:
    world, client = queueing(queue_s=10.0)
    client.subscribe("s", revision=1, config={"queue_s": 1e5})
    world.publish("1", world.members[1])
    world.run_s(13)
    assert set(client.answers(Ended)) == {Ended("s", "age", 1, 1, 1)}


@pytest.mark.parametrize("durable", [False, True])
def test_a_crash_at_an_end_leaves_either_the_subscription_or_the_notice(durable: bool) -> None:
    world, client = queueing(queue_s=10.0)
    home = world.members[0]
    for name in ("1", "2"):
        world.publish(name, world.members[1])
    world.run_s(8)
    node = world.world.nodes[home]

    def torn(writes: Mapping[str, bytes | None]) -> Torn | None:
        return Torn(durable) if any("/n/" in key for key in writes) else None

    node.at_commit = torn
    world.run_s(4)
    assert node.broker is None
    node.at_commit = None
    world.overlay.restart(home)
    world.run_s(12)
    assert {(notice.reason, notice.last) for notice in client.answers(Ended)} == {("age", 2)}
    client.tell(Unsubscribe("s"))
    world.run_s(5)
    left = [key for key in node.journal if key.split("/")[1] in ("s", "n", "w", "entry", "cursor")]
    assert left == []


def test_an_id_can_be_used_again_after_a_notice() -> None:
    world, client = queueing(queue_s=10.0)
    world.publish("1", world.members[1])
    world.run_s(15)
    assert client.answers(Ended)
    client.subscribe("s")
    world.run_s(2)
    client.received.clear()
    world.publish("2", world.members[1])
    world.run_s(3)
    assert client.answers(Ended) == []
    assert {(one.number, '"id":"2"' in one.event) for one in client.answers(Delivery)} == {
        (1, True)
    }


def test_a_notice_is_not_kept_for_ever() -> None:
    world, client = queueing(queue_s=10.0)
    world.publish("1", world.members[1])
    world.run_s(12)
    assert client.answers(Ended)
    world.run_s(30)
    client.received.clear()
    world.run_s(60)
    assert client.received == []


def test_who_ends_a_subscription_gets_no_notice() -> None:
    world, client = queueing(queue_s=10.0)
    world.publish("1", world.members[1])
    world.run_s(3)
    client.unsubscribe("s")
    world.run_s(30)
    assert client.answers(Ended) == []
    assert client.answers(Unsubscribed) == [Unsubscribed("s")]
