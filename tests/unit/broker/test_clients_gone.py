"""A client that is gone is sent nothing until it is back, and then everything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.broker_overlays import SECOND, Overlay
from tests.broker_subscribers import Subscriber, core_of
from tests.content_worlds import SETTINGS, ContentWorld
from tests.unit.broker.test_streams_announced import BROKERS, Town

from distributary.broker.addresses import HOST
from distributary.broker.client import (
    Acknowledge,
    AskStatus,
    Delivery,
    Ended,
    ListSubscriptions,
    Unsubscribe,
)
from distributary.broker.host import ClientBack, ClientGone
from distributary.errors import PeerMisbehaved

ALARM = {"exact": {"type": "alarm"}}


def gone_world(**config: float) -> tuple[ContentWorld, Subscriber]:
    """A client that is gone since a second, and acknowledges nothing by itself."""
    subscriptions = replace(SETTINGS.subscriptions, window_items=3)
    world = ContentWorld(4, settings=replace(SETTINGS, subscriptions=subscriptions))
    client = Subscriber(world.overlay, "@a", world.members[0])
    client.subscribe("s", config=config)
    world.run_s(2)
    publish(world, "before")
    tell(world, ClientGone("@a"))
    world.run_s(1)
    client.received.clear()
    return world, client


def tell(world: ContentWorld, message: object) -> None:
    world.world.tell(world.members[0], message, sender=HOST)


def publish(world: ContentWorld, *names: str) -> None:
    for name in names:
        world.publish(name, world.members[1], media_type=None)
    world.run_s(3)


def numbers(client: Subscriber) -> list[int]:
    return sorted({delivery.number for delivery in client.answers(Delivery)})


def test_nothing_is_sent_to_a_client_that_is_gone() -> None:
    world, client = gone_world()
    publish(world, "1", "2")
    world.run_s(60)
    assert client.received == []
    waking = core_of(world.overlay, world.members[0]).timers
    assert not [one for *_, one in waking._heap if one.call and one.call.__name__ == "_repeat"]


@pytest.mark.parametrize(
    "said", [ClientBack("@a"), Acknowledge("s", 0), AskStatus("s"), ListSubscriptions(1)]
)
def test_what_has_waited_is_sent_when_it_is_back(said: object) -> None:
    world, client = gone_world()
    publish(world, "1", "2", "3", "4")
    if isinstance(said, ClientBack):
        tell(world, said)
    else:
        client.tell(said)
    world.run_s(0.2)
    assert numbers(client) == [1, 2, 3], "at once, and within the window"
    client.tell(Acknowledge("s", 3))
    world.run_s(0.2)
    assert numbers(client) == [1, 2, 3, 4, 5]


def test_a_restarted_broker_knows_it_from_its_host() -> None:
    world, client = gone_world()
    publish(world, "1")
    home = world.members[0]
    world.world.crash(home)
    world.run_s(1)
    world.world.restart(home, world.overlay.surroundings(home), ClientGone("@a"))
    world.run_s(30)
    publish(world, "2")
    assert client.received == []
    tell(world, ClientBack("@a"))
    world.run_s(1)
    assert numbers(client) == [1, 2, 3]


@pytest.mark.parametrize("config", [{"queue_s": 20.0}, {"queue_bytes": 100}])
def test_the_limits_of_queues_apply_and_the_notice_comes_when_it_is_back(
    config: dict[str, float],
) -> None:
    world, client = gone_world(**config)
    publish(world, "1")
    world.run_s(30)
    assert client.received == []
    client.tell(AskStatus("s"))
    world.run_s(10)
    notice = client.answers(Ended)[0]
    assert (notice.id, notice.count, notice.last) == ("s", 2, 2)
    client.tell(Unsubscribe("s"))
    world.run_s(1)
    # Of whom there is nothing here nothing is known.
    tell(world, ClientGone("@a"))
    assert core_of(world.overlay, world.members[0]).gone == set()


def test_a_client_that_never_comes_back_is_forgotten() -> None:
    subscriptions = replace(SETTINGS.subscriptions, queue_s=10.0)
    world = ContentWorld(2, settings=replace(SETTINGS, subscriptions=subscriptions))
    Subscriber(world.overlay, "@a", world.members[0]).subscribe("s")
    world.run_s(2)
    tell(world, ClientGone("@a"))
    core = core_of(world.overlay, world.members[0])
    publish(world, "1")
    assert core.gone == {"@a"}
    # Its subscription ends, then the notice is given up.
    world.run_s(400)
    assert core.gone == set()


def test_others_are_not_concerned() -> None:
    world, client = gone_world()
    other = Subscriber(world.overlay, "@b", world.members[0])
    other.subscribe("s")
    world.run_s(2)
    publish(world, "1")
    assert numbers(other) == [1]
    assert client.received == []


def test_a_host_names_clients() -> None:
    overlay = Overlay(2)
    broker = overlay.broker(overlay.members[0])
    for kind in (ClientGone, ClientBack):
        with pytest.raises(PeerMisbehaved, match="not the address of a client"):
            broker.receive(kind(overlay.members[1]), sender=HOST, now_ns=SECOND)
        with pytest.raises(PeerMisbehaved, match="only hosts say that"):
            broker.receive(kind("@a"), sender="@b", now_ns=SECOND)


def test_a_broken_message_does_not_bring_a_client_back() -> None:
    world, client = gone_world()
    broker = world.overlay.broker(world.members[0])
    with pytest.raises(PeerMisbehaved):
        broker.receive(ClientBack("@a"), sender="@a", now_ns=world.world.now_ns)
    assert broker.core.gone == {"@a"}
    assert client.received == []


def test_a_client_that_follows_an_object_is_brought_up_to_date() -> None:
    """Clients do not answer updates: the last one was repeated for a while, and then no more."""
    town = Town("tree-each")
    listener = town.follow("@f", BROKERS[5], 0.5)
    town.announce(BROKERS[0])
    town.change(BROKERS[0], 1.0)
    town.world.tell(BROKERS[5], ClientGone("@f"), sender=HOST)
    listener.heard.clear()
    for value in (2.0, 3.0, 3.2):
        town.change(BROKERS[0], value)
    town.run(100.0)
    assert listener.heard == []
    town.world.tell(BROKERS[5], ClientBack("@f"), sender=HOST)
    town.run(0.1)
    assert listener.values() == [3.0], "3.2 is within its tolerance of that"
