"""What is too large for a message goes in parts, and arrives once and in one piece."""

from __future__ import annotations

import json
import random
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.broker_overlays import Overlay
from tests.content_worlds import ContentWorld
from tests.letters_part import Letters, Note, Post

from distributary.broker.addresses import HOST
from distributary.broker.broker import Broker
from distributary.broker.client import Publish, Refused
from distributary.broker.encoding import MESSAGE_BYTES_MAX, decode, encode
from distributary.broker.host import Send, Surroundings
from distributary.broker.links import messages
from distributary.broker.links.messages import (
    FRAGMENT_BYTES,
    Fragment,
    Gathered,
    Hop,
    Parcel,
    Reassembly,
)
from distributary.broker.membership.roster import Gossip, Join, Members, MemberStatus, News
from distributary.broker.planning import PUBLICATION_BYTES_MAX
from distributary.broker.telemetry import Misbehaved
from distributary.errors import PeerMisbehaved

LARGE = "x" * (3 * FRAGMENT_BYTES)


def overlay_of(count: int, *, seed: int = 1) -> Overlay:
    return Overlay(count, seed=seed, parts={"letters": Letters})


def letters(overlay: Overlay, identity: str) -> Letters:
    return cast("Letters", overlay.broker(identity).core.parts["letters"])


def post(overlay: Overlay, sender: str, to: str, *texts: str, routed: bool = False) -> None:
    overlay.world.tell(sender, Post(to, texts, routed=routed), sender=HOST)


def kept(overlay: Overlay, identity: str) -> list[str]:
    journal = overlay.world.nodes[identity].journal
    return [key for key in journal if key.startswith(("links/out/", "links/part/"))]


@given(st.binary(max_size=40), st.integers(1, 10), st.randoms())
def test_parts_in_any_order_make_the_message(message: bytes, size: int, rng: random.Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "FRAGMENT_BYTES", size)
        parcel, parts = Parcel.split(message or b"x", 5)
        rng.shuffle(parts)
        reassembly = Reassembly()
        for part in parts:
            reassembly.check(part, part.first + part.index)
        found = [reassembly.add(part) for part in parts]
        assert found[:-1] == [None] * (len(parts) - 1)
        assert found[-1] == parcel.message == (message or b"x")
        assert reassembly.numbers() == []


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 1000), st.booleans())
def test_large_messages_arrive_once_over_a_bad_network(seed: int, crash: bool) -> None:
    overlay = overlay_of(3, seed=seed)
    overlay.network.loss, overlay.network.repeats = 0.2, 0.2
    overlay.network.spread_ns = 50_000_000
    one, other, _ = overlay.members
    post(overlay, one, other, LARGE, "small", LARGE + "y")
    if crash:
        for identity in (other, one):
            overlay.run_s(0.1)
            overlay.world.crash(identity)
            overlay.run_s(0.2)
            overlay.restart(identity)
    overlay.run_s(60)
    received = letters(overlay, other).received
    assert received == {(one, LARGE): 1, (one, "small"): 1, (one, LARGE + "y"): 1}
    assert kept(overlay, one) == kept(overlay, other) == []


def test_no_message_is_larger_than_messages_may_be() -> None:
    """The world looks at everything that brokers send each other."""
    overlay = overlay_of(4)
    sizes: list[int] = []
    overlay.world.listeners.append(lambda a, b, message, now_ns: sizes.append(len(encode(message))))
    one, key = overlay.members[0], overlay.members[3]
    post(overlay, one, key, LARGE, routed=True)
    overlay.run_s(5)
    assert letters(overlay, key).received == {(one, LARGE): 1}
    assert 0.9 * MESSAGE_BYTES_MAX < max(sizes) <= MESSAGE_BYTES_MAX


def test_a_large_message_to_a_broker_that_is_lost_comes_back_in_one_piece() -> None:
    overlay = overlay_of(4)
    one, other = overlay.members[:2]
    overlay.network.loss = 0.5
    post(overlay, one, other, LARGE)
    overlay.run_s(0.2)
    overlay.world.crash(other)
    overlay.network.loss = 0.0
    overlay.run_s(40)
    assert letters(overlay, one).returned == [(LARGE, other)]
    assert kept(overlay, one) == []


def test_parts_that_are_not_all_there_after_a_crash_are_forgotten() -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    overlay.network.loss = 1.0
    post(overlay, one, other, LARGE)
    overlay.world.crash(one)
    del overlay.world.nodes[one].journal[kept(overlay, one)[-1]]
    overlay.network.loss = 0.0
    overlay.restart(one)
    overlay.run_s(5)
    assert kept(overlay, one) == kept(overlay, other) == []
    assert letters(overlay, other).received == {}


def test_a_message_that_its_sender_has_given_up_is_forgotten() -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    part = encode(Fragment(5, 0, 3, b"abc"))
    overlay.world.tell(one, Hop(5, 5, part), sender=other)
    assert kept(overlay, one) == [f"links/part/{other}/5"]
    overlay.world.tell(one, Hop(9, 8, encode(Fragment(9, 0, 2, b"abc"))), sender=other)
    assert kept(overlay, one) == [f"links/part/{other}/9"]


def test_more_messages_than_there_is_room_for_wait_for_those_that_have_begun() -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    acknowledged: list[int] = []
    overlay.world.listeners.append(
        lambda a, b, message, now_ns: (
            acknowledged.extend(one.number for one in message.acknowledgements)
            if isinstance(message, Gathered)
            else None
        )
    )
    count = 100
    for first in range(1, 1000, count):
        overlay.world.tell(one, Hop(first, 1, encode(Fragment(first, 0, count, b""))), sender=other)
    overlay.run_s(0.1)
    assert acknowledged == [1, 101, 201, 301, 401]
    assert len(kept(overlay, one)) == 5
    note = encode(Note("whole"))
    for number in range(2, count + 1):
        data = note if number == count else b""
        part = Fragment(1, number - 1, count, data)
        overlay.world.tell(one, Hop(number, 1, encode(part)), sender=other)
    assert letters(overlay, one).received == {(other, "whole"): 1}
    overlay.world.tell(one, Hop(501, 101, encode(Fragment(501, 0, count, b""))), sender=other)
    overlay.run_s(0.1)
    assert acknowledged[-1] == 501


@pytest.mark.parametrize(
    "part",
    [
        Fragment(5, 0, 0, b""),
        Fragment(5, 0, 1000, b""),
        Fragment(4, 0, 3, b""),
        Fragment(5, -1, 3, b""),
        Fragment(2, 3, 3, b""),
        Fragment(5, 0, 3, bytes(FRAGMENT_BYTES + 1)),
    ],
)
def test_parts_of_nothing_are_refused(part: Fragment) -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    reports: list[object] = []
    overlay.world.watchers.append(lambda broker, record, now_ns: reports.append(record))
    overlay.world.tell(one, Hop(5, 5, encode(part)), sender=other)
    assert len(reports) == 1
    assert isinstance(reports[0], Misbehaved)
    assert kept(overlay, one) == []


def test_a_part_inside_of_parts_or_alone_is_refused() -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    with pytest.raises(PeerMisbehaved, match="nobody sends"):
        overlay.broker(one).receive(Fragment(5, 0, 1, b""), sender=other, now_ns=0)
    inner = encode(Fragment(5, 0, 1, encode(Note("x"))))
    overlay.world.tell(one, Hop(5, 5, encode(Fragment(5, 0, 1, inner))), sender=other)
    assert letters(overlay, one).received == {}


def large_broker(count: int) -> tuple[Broker, tuple[str, ...]]:
    members = tuple(f"{number:06x}" for number in range(count))
    broker = Broker(members[0], Overlay(1).world.settings, rng=random.Random(1))
    broker.receive(Surroundings((), members), sender=HOST, now_ns=0)
    broker.start(now_ns=0)
    return broker, members


def test_all_members_of_a_large_overlay_are_told_in_several_messages() -> None:
    broker, members = large_broker(10_000)
    effects = broker.receive(Join(0, broker.version), sender=members[5], now_ns=0)
    told = [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, Members)]
    assert len(told) > 2
    assert max(len(encode(message)) for message in told) <= MESSAGE_BYTES_MAX
    assert [news.identity for message in told for news in message.members] == list(members)
    for identity in members[::500]:
        assert sum(message.covers(identity) for message in told) == 1


def test_a_part_of_the_members_is_answered_by_what_belongs_to_it() -> None:
    broker, members = large_broker(6_000)
    low = tuple(News(one, 0, MemberStatus.ALIVE, broker.version) for one in members[1:1000])
    part = Members(low, answer=True, after="", upto=members[1001])
    effects = broker.receive(part, sender=members[5], now_ns=0)
    (answer,) = [e.message for e in effects if isinstance(e, Send)]
    assert isinstance(answer, Members)
    assert [news.identity for news in answer.members] == [members[k] for k in (0, 1000, 1001)]


def test_news_of_a_large_overlay_are_passed_on_in_several_messages() -> None:
    broker, members = large_broker(6_000)
    news = tuple(News(one, 1, MemberStatus.ALIVE, broker.version) for one in members[1:])
    broker.receive(Members(news), sender=members[5], now_ns=0)
    passed: list[Gossip] = []
    while not passed:
        at_ns = broker.wake_at_ns()
        assert at_ns is not None
        sent = [e.message for e in broker.wake(now_ns=at_ns) if isinstance(e, Send)]
        passed = [message for message in sent if isinstance(message, Gossip)]
    assert max(len(encode(message)) for message in passed) <= MESSAGE_BYTES_MAX
    assert {one.identity for message in passed for one in message.news} == set(members[1:])


def test_an_event_that_is_too_large_is_refused_with_the_limit() -> None:
    world = ContentWorld(1)
    (home,) = world.members

    def answer(event: str) -> object:
        running = world.overlay.broker(home)
        effects = running.receive(Publish(event, None), sender="@c", now_ns=0)
        return next(e.message for e in effects if isinstance(e, Send) and e.to == "@c")

    def event(letter: str, count: int) -> str:
        document = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
        return json.dumps({**document, "data": letter * count}, ensure_ascii=False)

    fits = PUBLICATION_BYTES_MAX - len(event("", 0))
    for text in (event("x", fits + 1), event("\u00e9", fits // 2 + 1)):
        refused = answer(text)
        assert isinstance(refused, Refused)
        assert "262,144 bytes" in str(refused)
    assert not isinstance(answer(event("x", fits)), Refused)
    assert decode(encode(answer(event("\u00e9", fits // 2))))
