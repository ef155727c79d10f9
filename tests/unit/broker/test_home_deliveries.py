"""Clients get what is theirs, numbered, until they have acknowledged it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.broker_overlays import SECOND
from tests.content_worlds import JPEG, PDF, SETTINGS, ContentWorld

from distributary.broker.addresses import Blob
from distributary.broker.client import Acknowledge, Delivery, Subscribe, Unsubscribe
from distributary.broker.deliveries.deliveries import Deliveries
from distributary.broker.deliveries.finished import Arrival
from distributary.broker.deliveries.queues import Queue, Queued
from distributary.broker.dissemination.messages import (
    AskOwed,
    AskServed,
    Item,
    ItemId,
    Owed,
    Served,
)
from distributary.broker.encoding import decode, encode
from distributary.broker.host import Send, Turn
from distributary.broker.migration.messages import Connect, Connected
from distributary.broker.plan_part import NOTHING_BEFORE, After, Grant
from distributary.broker.subscriptions.subscription import scoped_id
from distributary.content import parse_event
from distributary.content.publication import ORIGINAL_TYPE

SLOW = scoped_id("@slow", "s")
MAPS = ({"exact": {"type": "map"}},)


class Slow:
    """A client that notes what it gets, and acknowledges only when it is told to."""

    def __init__(self, world: ContentWorld, home: str, *, renews: bool = True) -> None:
        self.world, self.home = world, home
        self.got: list[Any] = []
        world.world.clients["@slow"] = self

    def receive(self, message: object, *, sender: str, now_ns: int) -> None:
        self.got.append(message)

    def say(self, message: object) -> None:
        self.world.world.send("@slow", self.home, message)

    def deliveries(self) -> list[Delivery]:
        return [message for message in self.got if isinstance(message, Delivery)]


def part_of(world: ContentWorld, broker: str) -> Deliveries:
    running = world.world.nodes[broker].broker
    assert running is not None
    return running.core.deliveries


def queued(part: Deliveries) -> list[int]:
    return [number for _, queue in part._queues for number in sorted(queue.waiting)]


def slow_world(subscription: str = '{"id": "s", "filters": []}') -> tuple[ContentWorld, Slow]:
    world = ContentWorld(4)
    client = Slow(world, world.members[0])
    client.say(Subscribe(subscription))
    world.run_s(3)
    return world, client


def entries(world: ContentWorld, broker: str) -> list[tuple[str, int]]:
    journal = world.world.nodes[broker].records()
    kept = [record for record in journal.values() if isinstance(record, Queued)]
    return sorted((queued.subscription, queued.number) for queued in kept)


def test_deliveries_are_numbered_and_sent_until_they_are_acknowledged() -> None:
    world, client = slow_world()
    for number in range(3):
        world.publish(f"map {number}", world.members[1])
    world.run_s(5)
    numbers = [delivery.number for delivery in client.deliveries()]
    assert sorted(set(numbers)) == [1, 2, 3]
    assert len(numbers) > 3
    client.say(Acknowledge("s", 2))
    world.run_s(1)
    client.got.clear()
    world.run_s(20)
    assert {delivery.number for delivery in client.deliveries()} == {3}
    assert entries(world, world.members[0]) == [(SLOW, 3)]
    client.say(Acknowledge("s", 3))
    world.run_s(1)
    client.got.clear()
    world.run_s(20)
    assert client.deliveries() == []
    assert entries(world, world.members[0]) == []


@pytest.mark.parametrize("acknowledged", [0, 1])
def test_numbers_of_a_lost_home_mean_nothing_at_the_next(acknowledged: int) -> None:
    """A client that has lost its home may say late what it had received from there.

    Once it was believed, and what waited here under these numbers was taken for received.
    """
    world, client = slow_world()
    for number in range(2):
        world.publish(f"map {number}", world.members[1])
    world.run_s(3)
    client.say(Acknowledge("s", acknowledged))
    world.run_s(1)
    client.got.clear()
    client.say(Connect((("s", 2),)))
    world.run_s(1)
    (connected,) = (message for message in client.got if isinstance(message, Connected))
    # Who has acknowledged something of this home counts by its numbers.
    received = 2 if acknowledged else 0
    assert connected.received == (("s", received),)
    assert {one.number for one in client.deliveries()} == {1, 2} - set(range(received + 1))


def test_what_a_client_brings_along_was_not_sent_to_its_next_home() -> None:
    """Once that home confirmed to a root what only the last one had been sent, and lost it."""
    world, _ = slow_world()
    world.publish("map 0", world.members[1])
    world.run_s(3)
    last, following = (part_of(world, world.members[k]) for k in (0, 2))
    moved = last.export_client("@slow")
    following.adopt_client(moved, world.members[0], Turn(world.world.now_ns))
    known = last._items.get(moved.finished[0].identity)
    assert known is not None
    for part, answers in ((last, 1), (following, 0)):
        turn = Turn(world.world.now_ns)
        part._asked(AskServed(known.identity, known.attempt), known.root, turn)
        assert len(turn.effects) == answers


def test_numbers_go_on_after_a_crash() -> None:
    world, client = slow_world()
    home = world.members[0]
    world.publish("map 0", world.members[1])
    world.run_s(3)
    client.say(Acknowledge("s", 1))
    world.publish("map 1", world.members[1])
    world.run_s(3)
    world.world.crash(home)
    world.run_s(1)
    client.got.clear()
    world.overlay.restart(home)
    world.publish("map 2", world.members[1])
    world.run_s(8)
    events = {d.number: parse_event(d.event).id for d in client.deliveries()}
    assert events == {2: "map 1", 3: "map 2"}


def test_nobody_acknowledges_for_another_or_more_than_there_is() -> None:
    world, client = slow_world()
    world.publish("map 0", world.members[1])
    world.run_s(3)
    world.world.send("@stranger", world.members[0], Acknowledge("s", 1))
    world.run_s(1)
    assert entries(world, world.members[0]) == [(SLOW, 1)]
    client.say(Acknowledge("s", 7))
    world.run_s(1)
    world.publish("map 1", world.members[1])
    world.run_s(3)
    assert entries(world, world.members[0]) == [(SLOW, 2)]


def test_what_waits_for_a_subscription_that_has_ended_is_forgotten() -> None:
    world, client = slow_world()
    world.publish("map 0", world.members[1])
    world.run_s(3)
    client.say(Unsubscribe("s"))
    world.run_s(20)
    assert entries(world, world.members[0]) == []


def test_converted_content_comes_beside_an_event_that_says_what_it_was() -> None:
    world, client = slow_world('{"id": "s", "filters": [], "profile": {"accept": ["image/jpeg"]}}')
    world.publish("map", world.members[1])
    world.run_s(6)
    delivery = client.deliveries()[0]
    event = parse_event(delivery.event)
    assert delivery.blob is not None
    assert delivery.blob.media_type == JPEG
    assert event.media_type == JPEG
    assert event.attributes[ORIGINAL_TYPE] == PDF
    assert event.identity == ("/maps", "map")


def test_a_home_says_again_that_it_has_been_served_when_it_is_asked() -> None:
    world, _ = slow_world()
    world.publish("map", world.members[1])
    world.run_s(3)
    part, root = part_of(world, world.members[0]), world.root_of()
    known = part._items.get(ItemId("", "/maps", "map"))
    assert known is not None
    turn = Turn(world.world.now_ns)
    part._asked(AskServed(ItemId("", "/maps", "map"), known.attempt), root, turn)
    part._asked(AskServed(ItemId("", "/maps", "map"), known.attempt + 1), root, turn)
    part._asked(AskServed(ItemId("", "/maps", "map"), known.attempt), "another", turn)
    part._asked(AskServed(ItemId("", "/maps", "unheard of"), 1), root, turn)
    (effect,) = turn.effects
    assert effect.message == Served(ItemId("", "/maps", "map"), known.attempt, (SLOW,))  # type: ignore[union-attr]


def test_who_subscribes_after_a_publication_does_not_get_it() -> None:
    world = ContentWorld(4)
    world.subscribe("before", world.members[0], MAPS)
    world.run_s(3)
    world.publish("map", world.members[1])
    world.run_s(5)
    world.subscribe("after", world.members[0], MAPS)
    world.subscribe("elsewhere", world.members[2], MAPS)
    # The root is another one for a while, and is offered the publication again.
    world.world.crash(world.root_of())
    world.run_s(30)
    assert world.got("before") == [("map", PDF)]
    assert world.got("after") == []
    assert world.got("elsewhere") == []


def test_subscriptions_that_another_covers_get_theirs() -> None:
    world = ContentWorld(4)
    home = world.members[0]
    world.subscribe("wide", home, MAPS, client="one")
    world.run_s(3)
    low = [*MAPS, {"range": {"level": {"max": 10}}}]
    world.subscribe("narrow", home, low, client="two")
    world.run_s(3)
    world.publish("low", world.members[1], level=3)
    world.publish("high", world.members[1], level=30)
    world.run_s(5)
    assert world.got("narrow") == [("low", PDF)]
    world.subscribers["one"].unsubscribe("wide")
    world.publish("low too", world.members[1], level=4)
    world.run_s(10)
    assert world.got("narrow") == [("low", PDF), ("low too", PDF)]
    assert world.violations() == []


def test_a_client_takes_its_queue_and_what_it_has_got_along() -> None:
    world, client = slow_world()
    old, new = world.members[0], world.members[2]
    for number in range(3):
        world.publish(f"map {number}", world.members[1])
    world.run_s(3)
    client.say(Acknowledge("s", 1))
    world.run_s(1)
    record = decode(encode(part_of(world, old).export_client("@slow")))
    assert [waiting.number for waiting in record.queues[0][3]] == [2, 3]
    part = part_of(world, new)
    turn = Turn(world.world.now_ns)
    subscriptions = part_of(world, old).core.subscriptions.export_client("@slow")
    part.core.subscriptions.adopt_client(subscriptions, turn)
    part.adopt_client(record, old, turn)
    assert part_of(world, old).export_client("@nobody").queues == ()
    again = Queued("@slow", SLOW, 0, "/maps", "map 1", "{}", None, PDF, None)
    fresh = Queued("@slow", SLOW, 0, "/maps", "map 9", "{}", None, PDF, None)
    cell, publisher, series, number = part.place_of(ItemId("", "/maps", "map 2"))
    assert number == 3, "where it stands among what its publisher has sent is known here as well"
    part.hand(SLOW, again, (cell, publisher, series, 1), turn, doubtful=False)
    for _ in range(2):
        part.hand(SLOW, fresh, (cell, publisher, series, 9), turn, doubtful=False)
    older = Queued("@slow", SLOW, 0, "/maps", "map late", "{}", None, PDF, None)
    part.hand(SLOW, older, (cell, publisher, series, 0), turn, doubtful=True)
    assert queued(part) == [2, 3, 4]
    part.resume(SLOW, "@slow", 3, turn)
    assert queued(part) == [4]
    part.resume(SLOW, "@another", 4, turn)
    assert queued(part) == [4]
    dropped = Turn(world.world.now_ns)
    part_of(world, old).drop_client("@slow", dropped)
    assert list(part_of(world, old)._queues) == []
    assert len(dropped.effects) == 3


def test_what_a_crash_has_left_in_a_queue_counts_as_got() -> None:
    """Effects are carried out one by one, and a crash can come between any two."""
    world, _ = slow_world()
    home = world.members[0]
    world.publish("map", world.members[1])
    world.run_s(3)
    world.world.crash(home)
    journal = world.world.nodes[home].journal
    for key in [key for key in journal if key.startswith("deliveries/item/")]:
        del journal[key]
    world.overlay.restart(home)
    known = part_of(world, home)._items.get(ItemId("", "/maps", "map"))
    assert known is not None
    assert known.subscriptions == (SLOW,)


def test_who_has_got_what_is_known_for_longer_than_roots_send_it() -> None:
    world, client = slow_world()
    home = world.members[0]
    world.publish("map", world.members[1])
    world.run_s(3)
    client.say(Acknowledge("s", 1))
    kept_s = 2 * (SETTINGS.membership.lost_s + SETTINGS.content.retention_s)
    world.run_s(kept_s - 5)
    assert part_of(world, home)._items.get(ItemId("", "/maps", "map")) is not None
    world.run_s(5)
    assert part_of(world, home)._items.get(ItemId("", "/maps", "map")) is None


@pytest.mark.parametrize("away_s", [10.0, 40.0, 55.0])
def test_a_root_that_comes_back_does_not_serve_again_what_another_has_seen_to(
    away_s: float,
) -> None:
    """However long it was away, if it was not lost. Seen with `lost-root.toml`, seed 70308."""
    membership = replace(SETTINGS.membership, lost_s=60.0)
    content = replace(SETTINGS.content, retention_s=5.0)
    world = ContentWorld(6, settings=replace(SETTINGS, membership=membership, content=content))
    root = world.root_of()
    home, publisher = [name for name in world.members if name != root][:2]
    world.subscribe("s", home)
    world.run_s(3)
    world.publish("map", publisher)
    while part_of(world, home)._items.get(ItemId("", "/maps", "map")) is None:
        world.run_s(0.0005)
    # What the home says to the root is still on its way.
    world.world.crash(root)
    world.run_s(away_s)
    assert world.root_of() != root
    world.overlay.restart(root)
    world.run_s(30)
    assert world.got("s") == [("map", PDF)]
    assert world.violations() == []


@pytest.mark.parametrize("asks", [False, True])
def test_what_a_root_still_sends_is_not_forgotten(asks: bool) -> None:
    """Another root has served it, and this one gets no answer as long as it must wait here.

    Once it was forgotten meanwhile, and came a second time: this root did still wait for it.
    """
    world, _ = slow_world()
    home, root = world.members[:2]
    part = part_of(world, home)
    event = '{"specversion": "1.0", "id": "both", "source": "/maps", "type": "map"}'
    item = Item("/maps", "both", 0, 1, 2, root, world.world.now_ns, event, "text/plain", 0, True)
    grants = (Grant(SLOW, "text/plain"),)
    first = Arrival(item, "another", 1, "text/plain", NOTHING_BEFORE, grants, {})
    part.receive(first, Turn(world.world.now_ns))
    kept_s = 2 * (SETTINGS.membership.lost_s + SETTINGS.content.retention_s)
    for attempt in range(1, 4):
        world.run_s(0.75 * kept_s)
        turn = Turn(world.world.now_ns)
        if asks:
            part.core.handle(AskServed(item.identity, attempt), root, turn)
        else:
            again = Arrival(item, root, attempt, "text/plain", (1, 1, 1), grants, {})
            part.receive(again, turn)
        assert turn.effects == []
        assert part._items.get(item.identity) is not None
    world.run_s(1.25 * kept_s)
    assert part._items.get(item.identity) is None
    assert part._sent_ns == {}


@pytest.mark.parametrize("after", [NOTHING_BEFORE, (1, 1, 1)])
def test_what_comes_late_waits_only_for_what_the_root_still_waits_for(after: After) -> None:
    """What it was to come after, when it was planned, may be done and forgotten by now.

    Conversions that took longer than anything is remembered once held it up with each attempt.
    """
    world, _ = slow_world()
    home, root = world.members[:2]
    part = part_of(world, home)
    event = '{"specversion": "1.0", "id": "late", "source": "/maps", "type": "map"}'
    item = Item("/maps", "late", 0, 1, 2, root, world.world.now_ns, event, "text/plain", 0, True)
    world.run_s(3 * SETTINGS.content.retention_s)
    turn = Turn(world.world.now_ns)
    part.receive(
        Arrival(item, root, 1, "text/plain", (1, 1, 1), (Grant("s", "text/plain"),), {}), turn
    )
    assert turn.effects == [Send(root, AskOwed(item.identity, 1))]
    part.core.handle(Owed(item.identity, 1, ("s",), after), root, turn)
    assert (part._items.get(item.identity) is not None) == (after == NOTHING_BEFORE)


@pytest.mark.parametrize("by_skew", [0.5, 1.5])
def test_what_clocks_leave_open_comes_behind_nothing_later(by_skew: float) -> None:
    """A publisher's clock that is fast dates what came before a confirmation after it.

    The root of a client that moves goes through what it still has, and sends that too.
    """
    world, _ = slow_world()
    home, root = world.members[:2]
    part = part_of(world, home)
    (local,) = part.core.subscriptions.of_client("@slow")
    skew_ns = round(SETTINGS.subscriptions.clock_skew_s * SECOND)
    published_ns = local.since_ns + round(by_skew * skew_ns)
    event = '{"specversion": "1.0", "id": "%s", "source": "/maps", "type": "map"}'
    grants = (Grant(local.registration, "text/plain"),)
    for number in (2, 1, 3):
        place = (0, 1, number, root, published_ns)
        item = Item("/maps", str(number), *place, event % number, "text/plain", 0, True)
        arrival = Arrival(item, root, 1, "text/plain", NOTHING_BEFORE, grants, {"text/plain": None})
        part.receive(arrival, Turn(world.world.now_ns))
    ((_, queue),) = part._queues
    got = [one.identity.id for one in queue.waiting.values()]
    assert got == (["2", "3"] if by_skew < 1 else ["2", "1", "3"])


@pytest.mark.parametrize("number", [0, 1, 2, 9])
def test_a_queue_forgets_what_is_acknowledged(number: int) -> None:
    queue = Queue("@slow")
    for place in (1, 2, 3):
        queue.put(Queued("@slow", SLOW, place, "/s", str(place), "{}", None, PDF, None))
    done = queue.acknowledge(number)
    assert [one.number for one in done] == [place for place in (1, 2, 3) if place <= number]
    assert sorted(queue.waiting) == [place for place in (1, 2, 3) if place > number]
    assert queue.last == max(3, number)


def test_a_client_that_is_slow_is_asked_less_and_less_often() -> None:
    world, client = slow_world()
    world.publish("map", world.members[1])
    world.run_s(10)
    early = len(client.deliveries())
    world.run_s(60)
    late = len(client.deliveries()) - early
    assert early >= 4
    assert late <= 60 / SETTINGS.links.retry_s_max + 1
    assert world.world.now_ns > 70 * SECOND


@pytest.mark.parametrize("late", [False, True], ids=["held back", "doubted"])
def test_what_gives_way_to_others_refers_to_no_content_any_more(late: bool) -> None:
    """Of what waits for an item before it the oldest give way, for a root's answer the latest."""
    settings = replace(SETTINGS, content=replace(SETTINGS.content, early_items=3))
    world = ContentWorld(2, settings=settings)
    home, root = world.members
    part = part_of(world, home)
    published_ns = world.world.now_ns
    world.run_s(3 * SETTINGS.content.retention_s if late else 1.0)
    event = '{"specversion": "1.0", "id": "%s", "source": "/maps", "type": "map"}'
    blobs = [Blob.of("text/plain", bytes([number])) for number in range(8)]
    turn = Turn(world.world.now_ns)
    for number, blob in enumerate(blobs):
        # Each waits for another one.
        place = (0, number + 1, 2, root, published_ns)
        item = Item("/maps", str(number), *place, event % number, "text/plain", 1, False)
        grants, after = (Grant("s", "text/plain"),), (number + 1, 1, 1)
        arrival = Arrival(item, root, 1, "text/plain", after, grants, {"text/plain": blob})
        for _ in range(2):
            part.receive(arrival, turn)
    assert part._items.held_items == (0 if late else 3)
    assert len(part._doubted) == (3 if late else 0)
    known = part.core.content._known
    referred = [
        sum(known[blob.digest].references.values()) for blob in blobs if blob.digest in known
    ]
    assert referred == ([1] * 3 if late else [0] * 5 + [1] * 3)


@pytest.mark.parametrize("backwards", [False, True])
def test_what_all_others_wait_for_does_not_give_way_to_them(backwards: bool) -> None:
    """A root sends again what nobody has answered for, the first and what follows it."""
    settings = replace(SETTINGS, content=replace(SETTINGS.content, early_items=1))
    world = ContentWorld(2, settings=settings)
    home, root = world.members
    part = part_of(world, home)
    published_ns = world.world.now_ns
    world.subscribe("s", home)
    world.run_s(3 * SETTINGS.content.retention_s)
    event = '{"specversion": "1.0", "id": "%s", "source": "/maps", "type": "map"}'
    numbers = (3, 2, 1) if backwards else (1, 2, 3)
    before = {number: (1, number - 1, 1) if number > 1 else NOTHING_BEFORE for number in numbers}
    for _ in range(3):
        for number in numbers:
            place = (0, 1, number, root, published_ns + number)
            item = Item("/maps", str(number), *place, event % number, "text/plain", 1, True)
            after = before[number]
            grants = (Grant("1@ss", "text/plain"),)
            blobs = {"text/plain": None}
            arrival = Arrival(item, root, 1, "text/plain", after, grants, blobs)
            part.receive(arrival, Turn(world.world.now_ns))
        for number in numbers:
            owed = Owed(ItemId("", "/maps", str(number)), 1, ("1@ss",), before[number])
            part._owed(owed, root, Turn(world.world.now_ns))
    assert all(part._items.get(ItemId("", "/maps", str(number))) for number in numbers)
    assert part._doubted == {}
