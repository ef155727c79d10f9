"""Clients can ask how their subscriptions stand."""

from __future__ import annotations

import pytest
from tests.broker_overlays import Overlay
from tests.broker_subscribers import Subscriber
from tests.content_worlds import ContentWorld

from distributary.broker.client import (
    Acknowledge,
    AskStatus,
    Delivery,
    Ended,
    ListSubscriptions,
    Status,
    SubscriptionsListed,
    SubscriptionStatus,
)
from distributary.broker.encoding import MESSAGE_BYTES_MAX, encode
from distributary.broker.subscriptions.lifecycle import listed

ALARM = {"exact": {"type": "alarm"}}
LARGEST = 2**62


def standing(client: Subscriber, request: int = 1) -> list[SubscriptionStatus]:
    """What a client has been told in all parts of an answer."""
    parts = [one for one in client.answers(SubscriptionsListed) if one.request == request]
    assert [one.part for one in parts] == list(range(1, len(parts) + 1))
    assert {one.parts for one in parts} == {len(parts)}
    return [status for one in parts for status in one.subscriptions]


def test_a_client_is_told_its_own_subscriptions_and_nobody_elses() -> None:
    overlay = Overlay(4)
    home = overlay.members[0]
    clients = [Subscriber(overlay, name, home) for name in ("@a", "@b", "@t@a")]
    for number, client in enumerate(clients):
        for name in ("same", f"own {number}"):
            client.subscribe(name, ALARM, revision=number)
    overlay.run_s(2)
    for number, client in enumerate(clients):
        client.tell(ListSubscriptions(1))
        overlay.run_s(1)
        told = standing(client)
        assert [one.id for one in told] == [f"own {number}", "same"]
        assert {one.revision for one in told} == {number}
        assert {one.confirmed for one in told} == {True}
        assert {one.state for one in told} <= {"registered", "covered"}


def test_who_has_none_is_told_so() -> None:
    overlay = Overlay(2)
    client = Subscriber(overlay, "@a", overlay.members[0])
    client.tell(ListSubscriptions(7))
    client.tell(AskStatus("s"))
    overlay.run_s(1)
    assert client.received == [SubscriptionsListed(7, 1, 1, ()), Status("s", None)]


def test_one_that_has_ended_is_not_told() -> None:
    overlay = Overlay(2)
    client = Subscriber(overlay, "@a", overlay.members[0])
    for name in ("s", "t"):
        client.subscribe(name, ALARM)
    overlay.run_s(1)
    client.unsubscribe("s")
    overlay.run_s(1)
    client.tell(ListSubscriptions(1))
    client.tell(AskStatus("s"))
    overlay.run_s(1)
    assert [one.id for one in standing(client)] == ["t"]
    assert client.answers(Status) == [Status("s", None)]


def test_whoever_asks_for_one_that_has_ended_by_itself_is_told_why_before_the_answer() -> None:
    overlay = Overlay(2)
    client, other = (Subscriber(overlay, name, overlay.members[0]) for name in ("@a", "@b"))
    client.subscribe("s", ALARM, config={"expires": 10})
    # Told again and again, but less and less often.
    overlay.run_s(60)
    for one in (client, other):
        one.received.clear()
        one.tell(AskStatus("s"))
    overlay.run_s(0.2)
    assert client.received == [Ended("s", "expired", 0, 0, 0), Status("s", None)]
    assert other.received == [Status("s", None)]
    client.unsubscribe("s")
    overlay.run_s(1)
    client.received.clear()
    client.tell(AskStatus("s"))
    overlay.run_s(0.2)
    assert client.received == [Status("s", None)]


def test_the_queue_is_told_with_numbers_and_age() -> None:
    world = ContentWorld(4)
    client = Subscriber(world.overlay, "@a", world.members[0])
    client.subscribe("s")
    world.run_s(2)
    for name in ("1", "2", "3"):
        world.publish(name, world.members[1], media_type=None)
    world.run_s(3)
    client.tell(Acknowledge("s", 1))
    world.run_s(4)
    client.tell(AskStatus("s"))
    client.tell(ListSubscriptions(1))
    world.run_s(1)
    (answer,) = client.answers(Status)
    status = answer.status
    sizes = {one.number: len(one.event) for one in client.answers(Delivery)}
    assert status[:-1] == ("s", 0, "registered", True, 2, sizes[2] + sizes[3], 1, 3)
    assert 6.0 < status.oldest_s < 8.0
    assert standing(client) == [status]
    client.tell(Acknowledge("s", 3))
    client.tell(AskStatus("s"))
    world.run_s(1)
    last = client.answers(Status)[-1].status
    assert (last.waiting, last.waiting_bytes, last.acknowledged, last.last) == (0, 0, 3, 3)
    assert last.oldest_s == 0.0


def test_a_change_that_is_not_in_force_is_told_as_such() -> None:
    overlay = Overlay(4)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("s", ALARM)
    overlay.run_s(2)
    overlay.network.apart = frozenset(overlay.members[1:])
    client.subscribe("s", {"sql": "EXISTS type"}, revision=1)
    client.tell(AskStatus("s"))
    overlay.run_s(0.2)
    (answer,) = client.answers(Status)
    assert answer.status is not None
    assert (answer.status.revision, answer.status.state) == (1, "registering")
    assert not answer.status.confirmed


@pytest.mark.parametrize("name", ["s", "s" * 1000, "\N{GRINNING FACE}" * 1000])
def test_no_part_of_an_answer_is_too_large(name: str) -> None:
    """Ten thousand subscriptions with ids of 4 KB are 40 MB."""
    largest = SubscriptionStatus(
        "", LARGEST, "registering", True, LARGEST, LARGEST, LARGEST, LARGEST, 1e300
    )
    all_of = [largest._replace(id=f"{name}{k}") for k in range(10_000)]
    parts = listed(LARGEST, all_of)
    sizes = [len(encode(part)) for part in parts]
    assert max(sizes) <= MESSAGE_BYTES_MAX
    assert min(sizes[:-1]) > MESSAGE_BYTES_MAX // 2, "and none is needlessly small"
    assert [part.part for part in parts] == list(range(1, parts[0].parts + 1))
    assert [one for part in parts for one in part.subscriptions] == all_of
