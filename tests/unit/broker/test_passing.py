"""Brokers that a message only passes store nothing, and acknowledge it when others have."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.broker_overlays import MS, Overlay
from tests.letters_part import Letters, Note, Post

from distributary.broker.encoding import encode
from distributary.broker.host import Turn
from distributary.broker.links.link import LinkState, Passage
from distributary.broker.links.messages import (
    Acknowledgement,
    Gathered,
    Hop,
    HopAck,
    Routed,
    Step,
)

KEYS = [f"{digit:x}777" for digit in range(16)]


def letters(overlay: Overlay, identity: str) -> Letters:
    return cast("Letters", overlay.broker(identity).core.parts["letters"])


class Way:
    """An overlay with a message that passes one broker, or more, on its way to a root."""

    def __init__(self, *, seed: int = 1, count: int = 24) -> None:
        self.overlay = Overlay(count, seed=seed, parts={"letters": Letters})
        walks = (
            (key, self.overlay.walk(start, key)) for key in KEYS for start in self.overlay.members
        )
        self.key, self.walk = max(walks, key=lambda found: len(found[1]))
        assert len(self.walk) >= 3
        self.start, self.relay, *_, self.root = self.walk
        self.hops: list[tuple[str, str]] = []
        self.told: list[tuple[str, str]] = []
        self.overlay.world.listeners.append(self._listen)

    def _listen(self, sender: str, to: str, message: object, now_ns: int) -> None:
        if isinstance(message, Hop):
            self.hops.append((sender, to))
        elif isinstance(message, HopAck) or (
            isinstance(message, Gathered) and message.acknowledgements
        ):
            self.told.append((sender, to))

    def post(self, *texts: str) -> None:
        self.overlay.world.tell(self.start, Post(self.key, texts, routed=True), sender="!")

    @property
    def arrived(self) -> set[str]:
        return {text for _, text in letters(self.overlay, self.root).received}

    @property
    def outstanding(self) -> bool:
        return not self.overlay.broker(self.start).core.links.idle

    def written(self, identity: str) -> list[str]:
        return [key for key in self.overlay.world.nodes[identity].journal if key[:6] == "links/"]


def test_a_broker_that_a_message_passes_writes_nothing() -> None:
    way = Way()
    before = {broker: dict(way.overlay.world.nodes[broker].journal) for broker in way.walk[1:-1]}
    commits: list[str] = []
    for broker in before:
        way.overlay.world.nodes[broker].at_commit = lambda writes: commits.extend(writes)
    way.post("hello")
    way.overlay.run_s(0.4)
    assert way.arrived == {"hello"}
    assert not way.outstanding
    assert [key for key in commits if key.startswith("links/")] == []
    assert [way.written(broker) for broker in before] == [[] for _ in before]


def test_nobody_on_the_way_acknowledges_before_the_last_has_stored_it() -> None:
    way = Way()
    way.overlay.network.apart = frozenset({way.root})
    way.post("hello")
    way.overlay.run_s(0.6)
    assert way.told == []
    assert way.outstanding
    way.overlay.network.apart = frozenset()
    way.overlay.run_s(3)
    assert way.arrived == {"hello"}
    assert not way.outstanding
    # From the root back to where it began.
    chain = list(zip(way.walk[:0:-1], way.walk[-2::-1], strict=True))
    assert [told for told in way.told if told in chain][: len(chain)] == chain


def test_what_is_passing_is_not_handed_on_again_when_it_comes_again() -> None:
    way = Way()
    assert len(way.walk) >= 3
    way.overlay.network.apart = frozenset({way.root})
    way.post("hello")
    way.overlay.run_s(0.1)
    (hop,) = (
        Hop(number, number, envelope.message, 0, kept=envelope.kept)
        for number, envelope in way.overlay.broker(way.start)
        .core.links._outboxes[way.relay]
        .flight.items()
    )
    handed_on = len([one for one in way.hops if one[0] == way.relay])
    for _ in range(3):
        way.overlay.world.tell(way.relay, hop, sender=way.start)
    assert len([one for one in way.hops if one[0] == way.relay]) == handed_on
    way.overlay.network.apart = frozenset()
    way.overlay.run_s(3)
    assert letters(way.overlay, way.root).received == {(way.start, "hello"): 1}
    # Afterwards it is acknowledged at once: it has arrived.
    told = len(way.told)
    way.overlay.world.tell(way.relay, hop, sender=way.start)
    way.overlay.run_s(0.1)
    assert way.told[told:] == [(way.relay, way.start)]
    assert letters(way.overlay, way.root).received == {(way.start, "hello"): 1}


def test_what_passes_a_broker_that_crashes_is_sent_again() -> None:
    way = Way()
    way.overlay.network.apart = frozenset({way.root})
    way.post("hello")
    way.overlay.run_s(0.2)
    way.overlay.world.crash(way.relay)
    way.overlay.network.apart = frozenset()
    way.overlay.restart(way.relay)
    way.overlay.run_s(6)
    assert way.arrived == {"hello"}
    assert not way.outstanding


def test_what_passes_takes_another_way_when_the_next_broker_goes_down() -> None:
    way = Way()
    way.overlay.world.crash(way.walk[2])
    way.post("hello")
    way.overlay.run_s(0.3)
    assert way.outstanding
    way.overlay.run_s(10)
    root = way.overlay.walk(way.start, way.key)[-1]
    assert (way.start, "hello") in letters(way.overlay, root).received
    assert not way.outstanding


def test_what_cannot_leave_at_once_is_stored_and_acknowledged() -> None:
    """Windows that wait for each other in a circle would never move on."""
    way = Way()
    way.overlay.network.apart = frozenset({way.root})
    relay = way.walk[-2]
    way.overlay.world.tell(
        relay, Post(way.root, tuple(f"full {number}" for number in range(256))), sender="!"
    )
    way.post("hello")
    way.overlay.run_s(0.4)
    assert len([key for key in way.written(relay) if "/out/" in key]) == 257
    assert not way.outstanding
    way.overlay.network.apart = frozenset()
    way.overlay.run_s(5)
    assert "hello" in way.arrived
    assert not [key for key in way.written(relay) if "/out/" in key]


def test_a_message_that_comes_round_again_is_stored() -> None:
    way = Way()
    relay = way.relay
    own = Step(relay, 1.0, 1.0)
    path = (Step(way.start, 0.0, 1.0), own, Step(way.start, 1.0, 1.0))
    routed = Routed(way.key, way.start, encode(Note("round")), path)
    way.overlay.network.apart = frozenset({way.walk[2]})
    way.overlay.world.tell(relay, Hop(1 << 40, 1 << 40, encode(routed)), sender=way.start)
    assert [key for key in way.written(relay) if "/out/" in key]
    way.overlay.run_s(0.1)
    assert (relay, way.start) in way.told


def test_what_is_handed_on_to_several_is_acknowledged_when_all_have_it() -> None:
    overlay = Overlay(4, parts={"letters": Letters})
    one, relay, first, second = overlay.members
    told: list[str] = []
    overlay.world.listeners.append(
        lambda sender, to, message, now_ns: (
            told.append(to) if sender == relay and isinstance(message, Gathered) else None
        )
    )
    links = overlay.broker(relay).core.links
    passage = Passage(one, 7, 0, 7, 0)

    def hand_on(turn: Turn) -> None:
        links._passage = passage
        for peer in (first, second):
            links.pass_on(peer, Note("x"), turn)
        links._passage = None
        links._passages.add(passage)

    overlay.network.apart = frozenset({second})
    overlay.in_turn(relay, hand_on)
    overlay.run_s(0.3)
    assert (relay, "x") in letters(overlay, first).received
    assert one not in told
    overlay.network.apart = frozenset()
    overlay.run_s(3)
    assert one in told
    assert 7 in links._seen[one]


@given(
    seed=st.integers(0, 50),
    crashes=st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 9)), max_size=5),
    away_ms=st.sampled_from([0, 30, 700]),
)
@settings(max_examples=10)
def test_what_passes_arrives_under_loss_repetition_overtaking_and_crashes(
    seed: int, crashes: list[tuple[int, int]], away_ms: int
) -> None:
    way = Way(seed=seed, count=16) if seed % 2 else Way(seed=seed)
    overlay, network = way.overlay, way.overlay.network
    network.loss, network.repeats, network.spread_ns = 0.2, 0.2, 300 * MS

    def crash(place: int) -> None:
        broker = way.walk[1 + place % (len(way.walk) - 2)]
        if overlay.world.nodes[broker].broker is not None:
            overlay.world.crash(broker)
            overlay.world.at(overlay.world.now_ns + away_ms * MS, overlay.restart, broker)

    texts = [f"note {number}" for number in range(5)]
    way.post(*texts)
    for time_ms, place in crashes:
        overlay.world.at(time_ms * MS, crash, place)
    overlay.run_s(8)
    network.loss = 0.0
    # Whatever was lost several times in a row is sent again after up to eight seconds, by each
    # broker on the way.
    overlay.run_s(40)
    got = {text for broker in overlay.members for _, text in letters(overlay, broker).received}
    assert got == set(texts)
    assert not way.outstanding


# What is gathered.


def test_many_messages_are_acknowledged_by_one() -> None:
    overlay = Overlay(2, parts={"letters": Letters})
    one, other = overlay.members
    told: list[object] = []
    overlay.world.listeners.append(
        lambda sender, to, message, now_ns: (
            told.append(message) if isinstance(message, Gathered | HopAck) else None
        )
    )
    overlay.world.tell(one, Post(other, tuple("abcdef")), sender="!")
    overlay.run_s(1)
    (message,) = told
    assert isinstance(message, Gathered)
    assert len(message.acknowledgements) == 6
    assert all(held.held_ns >= 20 * MS for held in message.acknowledgements)
    assert overlay.broker(one).core.links.idle


def test_nothing_waits_in_vain_twice_and_what_comes_together_is_gathered_again() -> None:
    overlay = Overlay(2, parts={"letters": Letters})
    one, other = overlay.members
    # When a letter is handled, and when it is acknowledged.
    handled: list[int] = []
    told: list[tuple[int, int]] = []

    def listen(sender: str, to: str, message: object, now_ns: int) -> None:
        if isinstance(message, Hop):
            handled.append(now_ns + overlay.network.delay_ns(one, other))
        elif isinstance(message, Gathered | HopAck):
            count = len(message.acknowledgements) if isinstance(message, Gathered) else 1
            told.append((now_ns, count))

    overlay.world.listeners.append(listen)

    def post(*texts: str) -> list[tuple[int, int]]:
        handled.clear()
        told.clear()
        for text in texts:
            overlay.world.tell(one, Post(other, (text,)), sender="!")
            overlay.run_s(0.01)
        overlay.run_s(1)
        return [(now_ns - handled[0], count) for now_ns, count in told]

    wait_ns = 20 * MS
    assert post("a") == [(wait_ns, 1)]
    assert post("b") == [(0, 1)]
    assert post("c") == [(0, 1)]
    # One leaves at once, and as another follows it pays to wait from now on.
    assert post("d", "e", "f") == [(0, 1), (10 * MS + wait_ns, 2)]
    assert post("g", "h") == [(wait_ns, 2)]
    # Until nothing has come in time.
    assert post("i") == [(wait_ns, 1)]
    assert post("j") == [(0, 1)]


def test_those_who_do_not_know_of_gathering_are_told_one_by_one() -> None:
    overlay = Overlay(2, parts={"letters": Letters})
    one, other = overlay.members
    told: list[object] = []
    overlay.world.listeners.append(
        lambda sender, to, message, now_ns: (
            told.append(message) if isinstance(message, Gathered | HopAck) else None
        )
    )
    overlay.world.tell(one, Post(other, tuple("ab")), sender="!")
    overlay.run_s((overlay.network.delay_ns(one, other) + 10 * MS) / 1e9)
    # As if somebody of the version before had come while they wait.
    overlay.broker(other).core.version = 1
    overlay.world.tell(one, Post(other, tuple("cd")), sender="!")
    overlay.run_s(1)
    assert [type(message) for message in told] == [HopAck] * 4
    assert overlay.broker(one).core.links.idle


def test_what_is_too_large_to_be_gathered_goes_over_the_link() -> None:
    overlay = Overlay(2, parts={"letters": Letters})
    one, other = overlay.members
    note = Note("x" * 100_000)
    overlay.in_turn(one, lambda turn: overlay.broker(one).core.links.tell_soon(other, note, turn))
    assert [key for key in overlay.world.nodes[one].journal if key.startswith("links/out/")]
    overlay.run_s(1)
    assert letters(overlay, other).received == {(one, note.text): 1}


def test_no_more_is_gathered_than_a_peer_can_handle_in_a_turn() -> None:
    """A home that is back confirms thousands of items at once, for each of which a root writes."""
    overlay = Overlay(2, parts={"letters": Letters})
    one, other = overlay.members
    told: list[Gathered] = []
    overlay.world.listeners.append(
        lambda sender, to, message, _: (
            told.append(message) if sender == one and isinstance(message, Gathered) else None
        )
    )

    def tell(turn: Turn) -> None:
        for number in range(1000):
            overlay.broker(one).core.links.tell_soon(other, Note(str(number)), turn)

    overlay.in_turn(one, tell)
    overlay.run_s(1)
    assert letters(overlay, other).received == {(one, str(number)): 1 for number in range(1000)}
    assert max(len(message.messages) for message in told) <= 128
    assert len(told) <= 1000 // 128 + 1


def test_a_sender_learns_how_long_the_way_is_and_sends_nothing_twice() -> None:
    way = Way()
    way.overlay.network.byte_ns = 100_000
    for number in range(40):
        way.post(f"{number} {'x' * 2000}")
        way.overlay.run_s(2)
    assert len(way.arrived) == 40
    hops = [hop for hop in way.hops if hop == (way.start, way.relay)]
    assert len(hops) <= 42


def test_what_was_stuck_further_on_does_not_make_its_sender_wait_as_long_for_what_is_lost() -> None:
    overlay = Overlay(2, parts={"letters": Letters})
    one, other = overlay.members
    links = overlay.broker(one).core.links
    overlay.run_s(60)
    overlay.network.apart = frozenset({other})
    overlay.in_turn(one, lambda turn: links.send(other, Note("first"), turn))
    (envelope,) = links._outboxes[other].flight.values()
    envelope.sent_ns = envelope.posted_ns = overlay.world.now_ns - 60_000 * MS
    told = Acknowledgement(envelope.number, envelope.sent_ns, 59_900 * MS)
    overlay.world.tell(one, Gathered((told,), ()), sender=other)
    assert links._outboxes[other].timeout_ns <= 1.1 * links._retry_ns_max


@pytest.mark.parametrize("inner", [Gathered((), ()), Hop(1, 1, b""), HopAck(1)])
def test_nothing_that_carries_others_is_gathered(inner: object) -> None:
    overlay = Overlay(2, parts={"letters": Letters})
    one, other = overlay.members
    refused = overlay.world.refused
    overlay.world.send(one, other, Gathered((), (encode(inner), encode(Note("x")))))
    overlay.run_s(1)
    assert overlay.world.refused == refused + 1
    assert letters(overlay, other).received == {(one, "x"): 1}


@pytest.mark.parametrize("hops", [1, 2])
def test_what_may_be_stuck_further_on_does_not_count_as_on_its_way(hops: int) -> None:
    """Whoever waits for it may then try another way; a peer alone sends it again and again."""
    way = Way()
    links = way.overlay.broker(way.start).core.links
    way.overlay.network.apart = frozenset({way.relay})
    way.overlay.in_turn(
        way.start,
        lambda turn: links.send(way.relay, Note("hello"), turn, hops=hops, about=("hello",)),
    )
    assert links.carries("hello")
    way.overlay.run_s(1.2)
    assert links._outboxes[way.relay].state is LinkState.OPEN
    assert links.carries("hello") == (hops == 1)
    way.overlay.network.apart = frozenset()
    way.overlay.run_s(10)
    assert not links.carries("hello")
    assert letters(way.overlay, way.relay).received == {(way.start, "hello"): 1}
