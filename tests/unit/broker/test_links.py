"""Messages that must arrive do, once, whatever the network does and whoever crashes."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.broker_overlays import MS, Overlay
from tests.letters_part import Letters, Note, Post

from distributary.broker.encoding import encode
from distributary.broker.host import Leave
from distributary.broker.links.link import (
    LINK,
    SPAN,
    Deduplication,
    Envelope,
    LinkEvent,
    LinkState,
    Outbox,
    link_state,
)
from distributary.broker.links.messages import Hop, HopAck, Routed, Step
from distributary.broker.membership.roster import MemberStatus
from distributary.broker.telemetry import Misbehaved
from distributary.errors import PeerMisbehaved
from distributary.topology import root_among


def overlay_of(count: int, *, seed: int = 1) -> Overlay:
    return Overlay(count, seed=seed, parts={"letters": Letters})


def letters(overlay: Overlay, identity: str) -> Letters:
    broker = overlay.world.nodes[identity].broker
    assert broker is not None
    return cast("Letters", broker.core.parts["letters"])


def post(overlay: Overlay, sender: str, to: str, *texts: str, routed: bool = False) -> None:
    overlay.world.tell(sender, Post(to, texts, routed=routed), sender="!")


def put(outbox: Outbox) -> tuple[Envelope, bool]:
    envelope = Envelope(outbox.next_number, b"x")
    return envelope, outbox.put(envelope)


def outbox_keys(overlay: Overlay, identity: str) -> list[str]:
    return [key for key in overlay.world.nodes[identity].journal if key.startswith("links/out/")]


def test_a_message_arrives_and_leaves_nothing_behind() -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    post(overlay, one, other, "hello")
    assert len(outbox_keys(overlay, one)) == 1
    overlay.run_s(1)
    assert letters(overlay, other).received == {(one, "hello"): 1}
    assert not outbox_keys(overlay, one)


def test_a_message_to_oneself_is_handled_at_once() -> None:
    overlay = overlay_of(2)
    one = overlay.members[0]
    post(overlay, one, one, "hello")
    assert letters(overlay, one).received == {(one, "hello"): 1}


def test_more_messages_than_are_sent_at_once_all_arrive() -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    texts = [f"note {number}" for number in range(700)]
    before = overlay.network.sent
    post(overlay, one, other, *texts)
    assert overlay.network.sent - before == 256
    overlay.run_s(1)
    assert letters(overlay, other).received == {(one, text): 1 for text in texts}
    assert not outbox_keys(overlay, one)


def test_messages_to_a_broker_that_is_down_wait_for_it() -> None:
    overlay = overlay_of(4)
    one, other = overlay.members[:2]
    overlay.world.crash(other)
    overlay.run_s(8)
    post(overlay, one, other, "hello")
    overlay.run_s(1)
    before = overlay.network.sent
    overlay.run_s(5)
    assert overlay.network.sent - before <= 3 * 10 * 3, "only pings"
    overlay.restart(other)
    overlay.run_s(3)
    assert letters(overlay, other).received == {(one, "hello"): 1}


def test_messages_to_a_broker_that_is_lost_come_back() -> None:
    overlay = overlay_of(4)
    one, other = overlay.members[:2]
    overlay.world.crash(other)
    post(overlay, one, other, "early")
    overlay.run_s(10)
    post(overlay, one, other, "waiting")
    overlay.run_s(25)
    assert letters(overlay, one).returned == [("early", other), ("waiting", other)]
    post(overlay, one, other, "late")
    overlay.run_s(1)
    assert letters(overlay, one).returned[2:] == [("late", other)]
    assert not outbox_keys(overlay, one)


def test_messages_to_a_broker_that_nobody_knows_come_back_in_the_end() -> None:
    overlay = overlay_of(2)
    one = overlay.members[0]
    post(overlay, one, "ffff", "hello")
    overlay.run_s(40)
    assert letters(overlay, one).returned == [("hello", "ffff")]
    assert not outbox_keys(overlay, one)


def test_a_broker_that_was_lost_gets_new_messages_when_it_returns() -> None:
    overlay = overlay_of(4)
    one, other = overlay.members[:2]
    post(overlay, one, other, "before")
    overlay.run_s(1)
    overlay.world.crash(other)
    overlay.run_s(60)
    overlay.restart(other)
    overlay.run_s(3)
    post(overlay, one, other, "after")
    post(overlay, other, one, "back")
    overlay.run_s(3)
    assert letters(overlay, other).received == {(one, "before"): 1, (one, "after"): 1}
    assert letters(overlay, one).received == {(other, "back"): 1}


def test_what_was_seen_of_a_broker_that_is_gone_is_forgotten() -> None:
    overlay = overlay_of(4)
    one, other = overlay.members[:2]
    post(overlay, other, one, "hello")
    overlay.run_s(1)
    assert f"links/seen/{other}" in overlay.world.nodes[one].journal
    overlay.world.tell(other, Leave(), sender="!")
    overlay.run_s(1)
    overlay.world.crash(other)
    overlay.run_s(30)
    assert f"links/seen/{other}" not in overlay.world.nodes[one].journal


def test_a_broker_that_leaves_still_delivers_what_it_owes() -> None:
    overlay = overlay_of(4)
    one, other = overlay.members[:2]
    overlay.network.loss = 0.5
    post(overlay, one, other, *(f"note {number}" for number in range(20)))
    overlay.world.tell(one, Leave(), sender="!")
    overlay.run_s(60)
    assert len(letters(overlay, other).received) == 20
    broker = overlay.world.nodes[one].broker
    assert broker is not None
    assert broker.core.links.idle


def test_a_message_that_breaks_the_protocol_is_reported_and_not_sent_again() -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    reports: list[tuple[str, object]] = []
    overlay.world.watchers.append(lambda broker, record, now_ns: reports.append((broker, record)))
    post(overlay, one, other, "rude", "polite")
    overlay.run_s(5)
    assert [entry for entry in reports if isinstance(entry[1], Misbehaved)] == [
        (other, Misbehaved(one, "a rude note"))
    ]
    assert letters(overlay, other).received == {(one, "polite"): 1}
    assert not outbox_keys(overlay, one)


@pytest.mark.parametrize("inner", [b"", b"\x01\xff\xff", b"\x07\x00\x1e\x90"])
def test_a_hop_with_nonsense_inside_is_reported(inner: bytes) -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    reports: list[object] = []
    overlay.world.watchers.append(lambda broker, record, now_ns: reports.append(record))
    overlay.world.tell(other, Hop(1, 1, inner), sender=one)
    assert [type(record) for record in reports] == [Misbehaved]


@pytest.mark.parametrize(
    ("message", "sender"),
    [
        (Hop(1, 2, encode(Note("x"))), "0000"),
        (Hop(1, 1, encode(Note("x"))), "@client"),
        (Hop(1, 1, encode(Note("x"))), "!"),
        (Hop(1, 1, encode(Note("x"))), "no broker"),
        (Hop(1 + SPAN, 1, encode(Note("x"))), "0000"),
        (Routed("12345", "0000", encode(Note("x")), ()), "0000"),
        (Routed("123g", "0000", encode(Note("x")), ()), "0000"),
        (Routed("1234", "0000", encode(Note("x")), ()), "@client"),
    ],
)
def test_impossible_hops_are_refused(message: object, sender: str) -> None:
    overlay = overlay_of(2)
    with pytest.raises(PeerMisbehaved):
        overlay.broker(overlay.members[0]).receive(message, sender=sender, now_ns=0)


def wrapped(depth: int, message: bytes, *, key: str) -> bytes:
    """A message in so many Routed, each in a Hop."""
    for _ in range(depth):
        message = encode(Routed(key, "0000", message, (Step("0000", 0.0, 1.0),)))
        message = encode(Hop(1, 1, message))
    return message


@pytest.mark.parametrize("depth", [1, 400])
def test_what_is_wrapped_more_often_than_brokers_do_is_reported(depth: int) -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    reports: list[object] = []
    overlay.world.watchers.append(lambda broker, record, now_ns: reports.append(record))
    inner = wrapped(depth, encode(Note("x")), key=other)
    overlay.world.send(one, other, Hop(1, 1, inner))
    overlay.run_s(1)
    assert reports == [Misbehaved(one, "a Hop inside of what carries none")]
    assert letters(overlay, other).received == {}


@pytest.mark.parametrize(
    "carried",
    [
        Hop(2**62, 2**62, encode(Note("x"))),
        HopAck(1),
        Routed("0000", "0000", encode(Note("x")), (Step("0000", 0.0, 1.0),)),
    ],
    ids=["Hop", "HopAck", "Routed"],
)
def test_nobody_acknowledges_or_sends_for_another_by_a_routed_message(carried: object) -> None:
    overlay = overlay_of(3)
    one, other, third = overlay.members
    overlay.network.apart = frozenset({other})
    post(overlay, one, other, "to", "to be acknowledged")
    routed = Routed(one, other, encode(carried), (Step(other, 0.0, 1.0),))
    overlay.world.tell(one, routed, sender=third)
    assert len(outbox_keys(overlay, one)) == 2
    overlay.network.apart = frozenset()
    post(overlay, other, one, "later")
    overlay.run_s(5)
    assert letters(overlay, one).received == {(other, "later"): 1}
    assert not outbox_keys(overlay, one)


def test_what_a_peer_makes_a_broker_remember_is_bounded() -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    broker = overlay.broker(one)
    for number in range(2, SPAN + 100, 2):
        hop = Hop(number, 1, encode(Note("x")))
        if number <= SPAN:
            broker.receive(hop, sender=other, now_ns=0)
        else:
            with pytest.raises(PeerMisbehaved):
                broker.receive(hop, sender=other, now_ns=0)
    assert len(broker.core.links._seen[other].record().above) == SPAN // 2


def test_a_routed_message_arrives_at_the_root_with_the_way_it_took() -> None:
    overlay = overlay_of(24)
    for place, key in enumerate(["0000", "1234", "89ab", "ffff"]):
        root = root_among(overlay.members, key)
        for identity in overlay.members:
            post(overlay, identity, key, f"{identity} {place}", routed=True)
        overlay.run_s(2)
        for identity in overlay.members:
            text = f"{identity} {place}"
            assert letters(overlay, root).received[identity, text] == 1
            path = letters(overlay, root).paths[text]
            assert [step.broker for step in path] == overlay.walk(identity, key)
            assert path[0] == Step(identity, 0.0, 1.0)
    assert overlay.world.nodes[overlay.members[0]].broker is not None
    for identity in overlay.members:
        broker = overlay.world.nodes[identity].broker
        assert broker is not None
        assert broker.core.links.path == ()


def test_a_routed_message_finds_another_way_when_the_next_broker_is_down() -> None:
    overlay = overlay_of(16)
    key = "7777"
    root = root_among(overlay.members, key)
    start = next(identity for identity in overlay.members if len(overlay.walk(identity, key)) > 1)
    following = overlay.walk(start, key)[1]
    overlay.world.crash(following)
    post(overlay, start, key, "hello", routed=True)
    overlay.run_s(8)
    rest = [identity for identity in overlay.members if identity != following]
    new_root = root_among(rest, key)
    assert new_root == root or following == root
    assert letters(overlay, new_root).received == {(start, "hello"): 1}


def test_a_message_that_goes_round_in_circles_is_dropped() -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    path = tuple(Step(one, 1.0, 1.0) for _ in range(65))
    overlay.world.tell(other, Routed(other, one, encode(Note("x")), path), sender=one)
    assert letters(overlay, other).received == {}


@st.composite
def schedules(draw: st.DrawFn) -> list[tuple[int, str]]:
    """What happens when, in milliseconds: one of two brokers crashes, or sends.

    The receiver can also be torn down in the middle of a turn.
    """
    events = ["crash one", "crash other", "tear other", "send"]
    times = draw(st.lists(st.integers(0, 4000), min_size=1, max_size=8))
    return [(time, draw(st.sampled_from(events))) for time in sorted(times)]


@given(
    schedule=schedules(),
    away_ms=st.sampled_from([0, 30, 700, 3000]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40)
def test_every_message_arrives_once_under_loss_repetition_overtaking_and_crashes(
    schedule: list[tuple[int, str]], away_ms: int, seed: int
) -> None:
    overlay = overlay_of(3, seed=seed)
    one, other, _ = overlay.members
    network = overlay.network
    network.loss, network.repeats, network.spread_ns = 0.2, 0.2, 300 * MS
    sent: list[str] = []

    def crash(identity: str) -> None:
        if overlay.world.nodes[identity].broker is not None:
            overlay.world.crash(identity)
            overlay.world.at(overlay.world.now_ns + away_ms * MS, overlay.restart, identity)

    def tear(identity: str) -> None:
        overlay.world.tear(
            identity,
            lambda: overlay.world.at(
                overlay.world.now_ns + away_ms * MS, overlay.restart, identity
            ),
        )

    def send() -> None:
        if overlay.world.nodes[one].broker is not None:
            texts = [f"note {len(sent) + place}" for place in range(5)]
            sent.extend(texts)
            post(overlay, one, other, *texts)

    send()
    for time_ms, event in schedule:
        if event == "send":
            overlay.world.at(time_ms * MS, send)
        else:
            what, who = event.split()
            overlay.world.at(
                time_ms * MS, crash if what == "crash" else tear, one if who == "one" else other
            )
    overlay.run_s(8)
    network.loss = 0.0
    overlay.run_s(12)
    assert letters(overlay, other).received == {(one, text): 1 for text in sent}
    assert not outbox_keys(overlay, one)


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.integers(1, 30)).map(lambda pair: (max(pair), min(pair))),
        max_size=40,
    )
)
def test_seen_knows_what_was_handled_and_what_can_no_longer_come(
    handled: list[tuple[int, int]],
) -> None:
    seen = Deduplication()
    expected: set[int] = set()
    for number, lowest in handled:
        expected |= {number, *range(1, lowest)}
        seen.add(number, lowest=lowest)
        assert {one for one in range(1, 32) if one in seen} == expected
        record = seen.record()
        assert {
            one for one in range(1, 32) if one in Deduplication(record.floor, record.above)
        } == expected
        assert record.floor + 1 not in expected


def test_messages_in_order_leave_no_trace_above_the_floor() -> None:
    seen = Deduplication()
    for number in range(1, 100):
        seen.add(number, lowest=max(1, number - 3))
        assert seen.record().above == ()


def test_an_outbox_keeps_order_and_knows_the_lowest_on_its_way() -> None:
    outbox = Outbox(LinkState.OPEN, first_number=1, timeout_ns=0)
    numbers = [put(outbox)[0].number for _ in range(300)]
    assert numbers == list(range(1, 301))
    assert outbox.lowest == 1
    assert outbox.pop(1, sent_ns=0, now_ns=0) is not None
    assert outbox.pop(1, sent_ns=0, now_ns=0) is None
    assert outbox.pop(3, sent_ns=0, now_ns=0) is not None
    assert outbox.lowest == 2
    following = outbox.following()
    assert following is not None
    assert following.number == 257
    letters = list(outbox)
    assert [envelope.number for envelope in letters] == [2, *range(4, 301)]
    assert outbox.take(letters[:10]) == 10
    assert len(outbox) == len(letters) - 10
    assert outbox.lowest == letters[10].number
    outbox.take(letters[10:])
    assert len(outbox) == 0
    assert put(outbox)[0].number == 301


def test_an_outbox_sends_nothing_far_above_what_has_not_arrived() -> None:
    """What waits for one message leaves all at once, in order, when that has arrived."""
    outbox = Outbox(LinkState.OPEN, first_number=1, timeout_ns=0)
    for number in range(1, SPAN + 1):
        assert put(outbox)[1]
        if number > 1:
            outbox.pop(number, sent_ns=0, now_ns=0)
    assert [put(outbox)[1] for _ in range(3)] == [False] * 3
    assert outbox.following() is None
    outbox.pop(1, sent_ns=0, now_ns=0)
    left = [outbox.following() for _ in range(4)]
    assert [None if one is None else one.number for one in left] == [
        SPAN + 1,
        SPAN + 2,
        SPAN + 3,
        None,
    ]


def test_more_messages_than_may_be_apart_all_arrive_under_loss() -> None:
    overlay = overlay_of(2)
    one, other = overlay.members
    texts = [f"note {number}" for number in range(SPAN + 1000)]
    overlay.network.loss = 0.05
    post(overlay, one, other, *texts)
    overlay.run_s(60)
    assert letters(overlay, other).received == {(one, text): 1 for text in texts}
    assert not outbox_keys(overlay, one)


def sent(outbox: Outbox, at_ms: int) -> Envelope:
    """A message that is sent at a time, and looked after half a second later."""
    envelope, _ = put(outbox)
    envelope.posted_ns = envelope.sent_ns = envelope.looked_ns = at_ms * MS
    envelope.due_ns = envelope.sent_ns + 500 * MS
    return envelope


def arrives(
    outbox: Outbox, envelope: Envelope, *, sent_ms: int, at_ms: int, late_ms: int = 0
) -> None:
    now_ns, late_ns = at_ms * MS, late_ms * MS
    arrived = outbox.pop(envelope.number, sent_ns=sent_ms * MS, late_ns=late_ns, now_ns=now_ns)
    assert arrived is envelope


def test_an_outbox_learns_how_long_acknowledgements_take() -> None:
    outbox = Outbox(LinkState.OPEN, first_number=1, timeout_ns=100 * MS)
    for start_ms in range(0, 30_000, 3_000):
        arrives(outbox, sent(outbox, start_ms), sent_ms=start_ms, at_ms=start_ms + 2_000)
    assert 2_000 * MS < outbox.timeout_ns < 2_500 * MS
    envelope = sent(outbox, 30_000)
    envelope.due_ns = 32_500 * MS
    for _ in range(3):
        outbox.wait_longer(envelope, longest_ns=8_000 * MS)
    assert outbox.timeout_ns == 5_000 * MS, "many that were sent together count as one"
    # Sent again, it is acknowledged as it was sent first, and then says how long that took.
    envelope.sent_ns = 32_500 * MS
    arrives(outbox, envelope, sent_ms=30_000, at_ms=32_600)
    assert 2_000 * MS < outbox.timeout_ns < 3_500 * MS


def test_what_a_peer_waits_for_others_does_not_count_as_time_on_the_link() -> None:
    """With 40 % loss a chain of passages waited for minutes: `interest.toml`, seed 800000."""
    outbox = Outbox(LinkState.OPEN, first_number=1, timeout_ns=100 * MS)
    for start_ms in range(0, 300_000, 30_000):
        envelope = sent(outbox, start_ms)
        arrives(outbox, envelope, sent_ms=start_ms, at_ms=start_ms + 30_000, late_ms=29_960)
    assert 40 * MS < outbox.timeout_ns < 60 * MS
    # More than there was is not believed.
    arrives(outbox, sent(outbox, 300_000), sent_ms=300_000, at_ms=300_040, late_ms=10**9)
    assert 40 * MS < outbox.timeout_ns < 60 * MS


def test_an_outbox_waits_in_vain_no_shorter_than_acknowledgements_take() -> None:
    """The longest wait is for peers that are silent, not for links that are slow."""
    outbox = Outbox(LinkState.OPEN, first_number=1, timeout_ns=100 * MS)
    arrives(outbox, sent(outbox, 0), sent_ms=0, at_ms=30_000)
    timeout_ns = outbox.timeout_ns
    assert timeout_ns > 30_000 * MS
    outbox.wait_longer(sent(outbox, 30_000), longest_ns=8_000 * MS)
    assert outbox.timeout_ns == timeout_ns


@pytest.mark.parametrize("claimed_ms", [-(2**62), 2**62])
def test_a_peer_that_says_nonsense_about_when_a_message_was_sent_changes_little(
    claimed_ms: int,
) -> None:
    outbox = Outbox(LinkState.OPEN, first_number=1, timeout_ns=100 * MS)
    envelope, later = sent(outbox, 1_000), sent(outbox, 2_000)
    arrives(outbox, envelope, sent_ms=claimed_ms, at_ms=3_000)
    assert outbox.timeout_ns == 3 * 2_000 * MS
    assert outbox.stands_in_line(later)


def test_of_what_stands_in_line_only_the_first_is_sent_again_when_nothing_is_heard() -> None:
    outbox = Outbox(LinkState.OPEN, first_number=1, timeout_ns=100 * MS)
    first, second, third = (sent(outbox, at_ms) for at_ms in (0, 100, 200))
    assert [outbox.stands_in_line(one) for one in (first, second, third)] == [False, True, True]
    # The first arrives as it was sent first: the others may be behind it.
    first.sent_ns = 500 * MS
    arrives(outbox, first, sent_ms=0, at_ms=600)
    assert outbox.stands_in_line(second)
    second.looked_ns = 700 * MS
    assert not outbox.stands_in_line(second), "nothing was heard since, and it is the first"
    assert outbox.stands_in_line(third)
    # The second arrives as it was sent again: the third, sent before that, is lost.
    second.sent_ns = 700 * MS
    arrives(outbox, second, sent_ms=700, at_ms=800)
    assert not outbox.stands_in_line(third)


def test_content_that_stands_in_line_both_ways_is_hardly_ever_sent_again() -> None:
    """Acknowledgements stand in line too: a line of seconds once became one of minutes."""
    overlay = overlay_of(3)
    one, other, _ = overlay.members
    overlay.network.byte_ns = 100_000
    texts = [f"note {number}".ljust(10_000) for number in range(60)]
    for text in texts:
        overlay.run_s(0.9)
        post(overlay, one, other, text)
        post(overlay, other, one, text)
    overlay.run_s(60)
    assert letters(overlay, other).received == {(one, text): 1 for text in texts}
    assert letters(overlay, one).received == {(other, text): 1 for text in texts}
    assert not outbox_keys(overlay, one)
    assert not outbox_keys(overlay, other)
    assert overlay.world.message_counts["Note"] < 1.2 * 2 * len(texts)


def test_the_state_of_a_link_follows_what_is_thought_of_the_peer() -> None:
    """Stepping through what happens ends where a link that begins then would."""
    state = LINK.initial
    for event, status in [
        (LinkEvent.DOWN, MemberStatus.DOWN),
        (LinkEvent.CAME, MemberStatus.ALIVE),
        (LinkEvent.DOWN, MemberStatus.DOWN),
        (LinkEvent.GONE, MemberStatus.LOST),
        (LinkEvent.CAME, MemberStatus.ALIVE),
        (LinkEvent.GONE, MemberStatus.LEFT),
    ]:
        following = LINK.step(state, event)
        assert following is not None
        state = following
        assert state is link_state(status)
