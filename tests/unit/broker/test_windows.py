"""No more deliveries are under way than a window allows, and the client moves it on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker_subscribers import Subscriber
from tests.content_worlds import SETTINGS, ContentWorld

from distributary.broker.addresses import HOST
from distributary.broker.client import Acknowledge, Delivery, Received
from distributary.broker.deliveries.queues import Queue, Queued
from distributary.broker.host import ClientBack, ClientGone


def windowed(items: int, size_bytes: int = 2**30) -> tuple[ContentWorld, Subscriber]:
    """A client that acknowledges nothing by itself."""
    subscriptions = replace(
        SETTINGS.subscriptions, window_items=items, window_bytes=size_bytes, queue_s=1e6
    )
    world = ContentWorld(4, settings=replace(SETTINGS, subscriptions=subscriptions))
    client = Subscriber(world.overlay, "@a", world.members[0])
    client.subscribe("s")
    world.run_s(2)
    return world, client


def numbers(client: Subscriber) -> set[int]:
    return {delivery.number for delivery in client.answers(Delivery)}


def publish(world: ContentWorld, count: int, megabytes: float | None = None) -> None:
    for k in range(count):
        if megabytes is None:
            world.publish(f"{world.world.now_ns} {k}", world.members[1], media_type=None)
        else:
            world.publish(f"{world.world.now_ns} {k}", world.members[1], megabytes=megabytes)
    world.run_s(4)


def test_what_exceeds_the_window_waits_until_the_client_acknowledges() -> None:
    world, client = windowed(3)
    publish(world, 8)
    assert numbers(client) == {1, 2, 3}
    client.tell(Acknowledge("s", 2))
    world.run_s(1)
    assert numbers(client) == {1, 2, 3, 4, 5}
    client.tell(Acknowledge("s", 5))
    world.run_s(1)
    assert numbers(client) == set(range(1, 9))
    client.tell(Acknowledge("s", 8))
    world.run_s(1)
    publish(world, 1)
    assert numbers(client) == set(range(1, 10))


def test_repeats_stay_within_the_window_too() -> None:
    world, client = windowed(3)
    publish(world, 8)
    client.received.clear()
    world.run_s(60)
    assert numbers(client) == {1, 2, 3}
    assert len(client.answers(Delivery)) > 9


@pytest.mark.parametrize("size_bytes", [2_500_000, 1])
def test_bytes_count_too_and_one_is_always_sent(size_bytes: int) -> None:
    world, client = windowed(100, size_bytes)
    publish(world, 4, megabytes=1.0)
    first = 2 if size_bytes > 1 else 1
    assert numbers(client) == set(range(1, first + 1))
    client.tell(Acknowledge("s", 1))
    world.run_s(1)
    assert numbers(client) == set(range(1, first + 2))


def test_nothing_is_repeated_to_a_client_that_acknowledges_steadily() -> None:
    """However long it takes in all: the time to wait begins anew with every answer."""
    world, client = windowed(2)
    publish(world, 1)
    client.received.clear()
    for number in range(1, 21):
        client.tell(Acknowledge("s", number))
        world.publish(f"steady {number}", world.members[1], media_type=None)
        world.publish(f"and {number}", world.members[1], media_type=None)
        world.run_s(0.3)
    sent = [delivery.number for delivery in client.answers(Delivery)]
    assert sent == list(range(2, 23))


def test_a_restart_begins_with_what_was_not_acknowledged() -> None:
    world, client = windowed(3)
    publish(world, 12)
    client.tell(Acknowledge("s", 2))
    world.run_s(1)
    world.world.crash(world.members[0])
    world.run_s(1)
    client.received.clear()
    world.overlay.restart(world.members[0])
    world.run_s(10)
    assert numbers(client) == {3, 4, 5}
    # It may have been sent that before the crash, and have said so.
    client.tell(Acknowledge("s", 9))
    world.run_s(1)
    assert numbers(client) == {3, 4, 5, 10, 11, 12}


def test_windows_of_subscriptions_do_not_share_anything() -> None:
    world, client = windowed(2)
    client.subscribe("t")
    world.run_s(2)
    publish(world, 4)
    client.tell(Acknowledge("t", 2))
    world.run_s(1)
    got = {(one.subscription, one.number) for one in client.answers(Delivery)}
    assert got == {("s", 1), ("s", 2), *(("t", number) for number in range(1, 5))}


@given(
    st.lists(st.one_of(st.integers(0, 50), st.integers(0, 30).map(lambda n: -n - 1)), max_size=60),
    st.integers(1, 4),
    st.integers(1, 60),
    st.data(),
)
def test_a_queue_sends_what_its_slow_twin_does(
    steps: list[int], items: int, size_bytes: int, data: st.DataObject
) -> None:
    """A step puts something of so many bytes in, or acknowledges up to a number."""
    queue, sizes, acknowledged, sent = Queue("@a"), list[int](), 0, 0
    for step in steps:
        if step >= 0:
            sizes.append(step)
            queue.put(Queued("@a", "s", len(sizes), "/s", "1", "x" * step, None, "", None))
        elif data.draw(st.booleans(), label="resumed"):
            queue.begin()
            sent = acknowledged
        else:
            acknowledged = max(acknowledged, min(-step - 1, len(sizes)))
            queue.acknowledge(acknowledged)
            sent = max(sent, acknowledged)
        while (entry := queue.next_within(items, size_bytes)) is not None:
            queue.sent(entry)
            sent += 1
            assert entry.number == sent
            under_way = sizes[acknowledged:sent]
            assert len(under_way) == 1 or (len(under_way) <= items and sum(under_way) <= size_bytes)
        under_way = sizes[acknowledged : sent + 1]
        assert sent == len(sizes) or len(under_way) > items or sum(under_way) > size_bytes
        assert queue.under_way == sent - acknowledged
        assert queue.size_bytes == sum(sizes[acknowledged:])


def test_what_was_received_makes_room_and_is_kept_until_it_is_acknowledged() -> None:
    world, client = windowed(3)
    publish(world, 8)
    assert numbers(client) == {1, 2, 3}
    client.tell(Received("s", 2))
    world.run_s(1)
    assert numbers(client) == {1, 2, 3, 4, 5}
    # Nobody has received what was not sent.
    client.tell(Received("s", 1_000))
    world.run_s(1)
    assert numbers(client) == set(range(1, 9))
    client.tell(Received("s", 8))
    client.received.clear()
    world.run_s(60)
    assert client.answers(Delivery) == []
    client.tell(Acknowledge("s", 4))
    world.run_s(1)
    for message in (ClientGone("@a"), ClientBack("@a")):
        world.world.tell(world.members[0], message, sender=HOST)
    world.run_s(1)
    assert numbers(client) == {5, 6, 7}


@given(st.data())
def test_a_window_counts_what_is_neither_received_nor_acknowledged(data: st.DataObject) -> None:
    """Against sets of numbers, whatever is said in which order."""
    queue = Queue("@a")
    sent: set[int] = set()
    received = acknowledged = 0
    for _ in range(data.draw(st.integers(0, 30))):
        step = data.draw(st.sampled_from(("put", "send", "receive", "acknowledge", "begin")))
        number = data.draw(st.integers(0, queue.last + 2))
        if step == "put":
            queue.put(Queued("@a", "s", queue.last + 1, "/s", "i", "e", None, "", None))
        elif step == "send":
            entry = queue.next_within(10**9, 10**9)
            if entry is not None:
                queue.sent(entry)
                sent.add(entry.number)
        elif step == "receive":
            queue.receive(number)
            run = [one for one in range(acknowledged + 1, number + 1) if one not in sent]
            received = max(received, min([number, queue.last, *(one - 1 for one in run)]))
        elif step == "acknowledge":
            number = min(number, queue.last)
            queue.acknowledge(number)
            acknowledged = max(acknowledged, number)
        else:
            queue.begin()
            sent, received = set(), 0
        waiting = list(range(acknowledged + 1, queue.last + 1))
        assert list(queue.waiting) == waiting
        under_way = [one for one in waiting if one in sent and one > received]
        assert queue.under_way == len(under_way)
        kept = queue.size_bytes - queue.unsent_bytes - queue.received_bytes
        assert kept == len(under_way)
