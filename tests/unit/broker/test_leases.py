"""A subscription lives as long as its client renews it."""

from __future__ import annotations

from tests.broker_overlays import SECOND, Overlay
from tests.broker_subscribers import Subscriber, cell_of, core_of, event, holders, settings_with

from distributary.broker.client import Unsubscribed
from distributary.broker.subscriptions.subscription import LocalSubscription

ALARM = {"exact": {"type": "alarm"}}
SHORT = settings_with(lease_s=10.0)


def matched(overlay: Overlay, home: str) -> list[str]:
    found: list[LocalSubscription] = core_of(overlay, home).subscriptions.matching(event("alarm"))
    return [local.subscription.id for local in found]


def test_a_subscription_that_is_not_renewed_ends_as_if_it_were_unsubscribed() -> None:
    overlay = Overlay(6, settings=SHORT)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(9)
    assert matched(overlay, home) == ["s"]
    overlay.run_s(2)
    assert matched(overlay, home) == []
    assert client.answers(Unsubscribed) == [Unsubscribed("s")]
    overlay.run_s(2)
    assert holders(overlay, home, "s", cell_of(overlay, event("alarm"))) == []


def test_a_subscription_that_is_renewed_stays() -> None:
    overlay = Overlay(6, settings=SHORT)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    for _ in range(6):
        overlay.run_s(6)
        client.renew("s")
    assert matched(overlay, home) == ["s"]
    assert client.answers(Unsubscribed) == []
    overlay.run_s(11)
    assert matched(overlay, home) == []


def test_only_its_client_renews_a_subscription() -> None:
    overlay = Overlay(3, settings=SHORT)
    home = overlay.members[0]
    client, other = Subscriber(overlay, "@a", home), Subscriber(overlay, "@b", home)
    client.subscribe("s", ALARM)
    overlay.run_s(6)
    other.renew("s")
    overlay.run_s(5)
    assert matched(overlay, home) == []
    assert other.received == [Unsubscribed("s")]


def test_leases_begin_anew_when_the_home_was_away() -> None:
    """For longer than a lease, during which nobody could renew anything."""
    overlay = Overlay(6, settings=SHORT)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(5)
    overlay.world.crash(home)
    overlay.run_s(25)
    overlay.restart(home)
    overlay.run_s(9)
    assert matched(overlay, home) == ["s"]
    overlay.run_s(3)
    assert matched(overlay, home) == []
    assert holders(overlay, home, "s", cell_of(overlay, event("alarm"))) == []


def test_a_lease_is_counted_by_the_clock_of_the_home() -> None:
    overlay = Overlay(4, settings=SHORT)
    home = overlay.members[0]
    overlay.world.nodes[home].skew_ns = 3 * SECOND
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(9.5)
    assert matched(overlay, home) == ["s"]
    overlay.run_s(1)
    assert matched(overlay, home) == []


def test_those_that_an_expired_subscription_covered_are_registered() -> None:
    overlay = Overlay(6, settings=SHORT)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("wide", {"sql": "EXISTS type"})
    overlay.run_s(1)
    client.subscribe("narrow", ALARM)
    overlay.run_s(1)
    cell = cell_of(overlay, event("alarm"))
    assert holders(overlay, home, "narrow", cell) == []
    overlay.run_s(5)
    client.renew("narrow")
    overlay.run_s(5)
    assert matched(overlay, home) == ["narrow"]
    assert len(holders(overlay, home, "narrow", cell)) == 2
    assert holders(overlay, home, "wide", cell) == []
