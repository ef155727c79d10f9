"""Publishers wait while their homes, the roots or the ways between them have too much to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.content_worlds import SETTINGS, ContentWorld
from tests.publishing_homes import Home, numbered

from distributary.broker.client import Accepted, Busy, Publish
from distributary.broker.dissemination.messages import Deferred, Item, Offer, Portion
from distributary.broker.encoding import decode
from distributary.broker.links.messages import Hop, Routed
from distributary.broker.publishing.publications import Kept, Offers
from distributary.broker.settings import PublishingSettings, Settings, ns
from distributary.broker.timers import Backoff, Pacing

EVENT = '{"specversion": "1.0", "id": "%s", "source": "%s", "type": "%s"}'


def limited(**fields: Any) -> Settings:
    names = PublishingSettings.__dataclass_fields__
    publishing = {name: value for name, value in fields.items() if name in names}
    content = {name: value for name, value in fields.items() if name not in names}
    return replace(
        SETTINGS,
        publishing=replace(SETTINGS.publishing, **publishing),
        content=replace(SETTINGS.content, **content),
    )


class Flood:
    """A world of four brokers, and a client that publishes at one that is not the root."""

    def __init__(self, settings: Settings, parts: Any = None) -> None:
        self.world = ContentWorld(4, settings=settings, parts=parts)
        self.root = self.world.root_of()
        others = [member for member in self.world.members if member != self.root]
        self.home, self.other, self.third = others
        self.heard: list[Any] = []
        self.said: list[tuple[str, str, Any]] = []
        self.world.world.clients["@p"] = self
        self.world.world.listeners.append(self._listen)
        self.world.run_s(3)

    def receive(self, message: object, *, sender: str, now_ns: int) -> None:
        self.heard.append(message)

    def _listen(self, sender: str, to: str, message: object, now_ns: int) -> None:
        while isinstance(message, Hop | Routed):
            message = decode(message.message)
        self.said.append((sender, to, message))

    def publish(self, first: int, last: int, kind: str = "map", session: str = "a") -> list[Any]:
        """Publish and return the answers to it."""
        before = len(self.heard)
        for number in range(first, last + 1):
            text = EVENT % (f"{session}{number}", f"/{session}", kind)
            self.world.world.send("@p", self.home, Publish(text, None, session, number, 1))
        self.world.run_s(0.1)
        return self.heard[before:]

    def sent(self, kind: type, by: str | None = None) -> list[Any]:
        return [m for sender, _, m in self.said if isinstance(m, kind) and by in (None, sender)]

    def part(self, broker: str, name: str) -> Any:
        running = self.world.world.nodes[broker].broker
        assert running is not None
        return getattr(running.core, name)


def slow(flood: Flood, broker: str, message_s: float) -> None:
    """Have a broker take some time over every message."""
    flood.world.world.nodes[broker].message_ns = ns(message_s)


# What a home has offered, and the root has not taken.


def test_a_home_whose_root_is_slow_is_busy_and_says_for_how_long() -> None:
    flood = Flood(limited(untaken_items=10))
    slow(flood, flood.root, 0.4)
    flood.publish(1, 3)
    flood.world.run_s(8)
    answers = flood.publish(4, 40)
    accepted = [one.number for one in answers if isinstance(one, Accepted)]
    busy = [one for one in answers if isinstance(one, Busy)]
    assert accepted == list(range(4, 14))
    assert [one.number for one in busy] == list(range(14, 41))
    assert {one.reason for one in busy} == {"the broker that its content goes by has much to do"}
    # Between what one message takes and what all do.
    assert ns(0.1) <= busy[0].wait_ns <= ns(10.0)
    # The root takes a time over each that is drawn at random.
    answer = busy[0]
    for _ in range(3):
        flood.world.run_s(answer.wait_ns / 1e9)
        (answer,) = flood.publish(14, 14)
        if isinstance(answer, Accepted):
            break
    assert isinstance(answer, Accepted)


def test_others_publish_by_another_root_as_before() -> None:
    flood = Flood(limited(untaken_items=5))
    kinds = [kind for kind in "abcdefgh" if flood.world.root_of(kind) not in (flood.root,)]
    slow(flood, flood.root, 5.0)
    answers = flood.publish(1, 20)
    assert any(isinstance(one, Busy) for one in answers)
    assert all(isinstance(one, Accepted) for one in flood.publish(1, 4, kinds[0], session="b"))


def test_what_is_moved_to_another_root_counts_there() -> None:
    flood = Flood(limited(untaken_items=5))
    flood.world.world.crash(flood.root)
    assert len([one for one in flood.publish(1, 20) if isinstance(one, Accepted)]) == 5
    flood.world.run_s(8)
    assert flood.world.root_of() != flood.root
    offers = flood.part(flood.home, "publishing")._offers
    assert sum(one.items for one in offers._by_root.values()) == 0
    assert len([one for one in flood.publish(6, 8) if isinstance(one, Accepted)]) == 3


def test_an_outbox_that_is_full_slows_who_publishes_into_it() -> None:
    flood = Flood(replace(SETTINGS, links=replace(SETTINGS.links, outbox_items=8)))
    slow(flood, flood.root, 5.0)
    answers = flood.publish(1, 20)
    assert len([one for one in answers if isinstance(one, Accepted)]) == 8
    outbox = flood.part(flood.home, "links")._outboxes[flood.root]
    assert outbox.size_bytes == sum(len(envelope.message) for envelope in outbox)
    busy = [one for one in answers if isinstance(one, Busy)]
    assert {one.reason for one in busy} == {"the broker that its content goes by has much to do"}


# How long to wait.


@pytest.mark.parametrize("limit", [{"items_max": 5}, {"bytes_max": 300}, {"identities_max": 5}])
def test_a_home_that_is_full_says_when_there_is_room(limit: dict[str, int]) -> None:
    home = Home(
        replace(SETTINGS, publishing=PublishingSettings(**limit, dedupe_s=20.0, busy_s_max=300.0))
    )
    answers = [answer for number in range(1, 8) for answer in home.tell(numbered(number))]
    busy = next(one for one in answers if isinstance(one, Busy))
    accepted = sum(isinstance(one, Accepted) for one in answers)
    assert accepted >= 4
    before = busy.wait_ns / 1e9 - 1.5
    home.run_s(before)
    again = numbered(busy.number, first=busy.number)
    assert isinstance(home.tell(again)[0], Busy), "not before"
    home.run_s(busy.wait_ns / 1e9 - before)
    assert isinstance(home.tell(again)[0], Accepted)


def test_who_ignores_busy_does_not_make_others_wait_longer() -> None:
    flood = Flood(limited(untaken_items=5))
    slow(flood, flood.root, 0.4)
    flood.publish(1, 3)
    flood.world.run_s(8)
    first = next(one for one in flood.publish(4, 20) if isinstance(one, Busy))
    for _ in range(50):
        again = [one for one in flood.publish(first.number, 20) if isinstance(one, Busy)]
    assert all(one.wait_ns <= first.wait_ns + ns(2.0) for one in again)


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**8))),
    st.integers(1, 10**8),
    st.integers(10**9, 10**10),
)
def test_those_who_wait_come_one_after_the_other(
    steps: list[tuple[int, int, int]], shortest_ns: int, longest_ns: int
) -> None:
    """The property: not before there is room, each a gap after the last, within bounds."""
    pacing, now_ns, last_ns = Pacing(shortest_ns, longest_ns), 0, 0
    for step_ns, free_ns, gap_ns in steps:
        now_ns += step_ns
        wait_ns = pacing.wait_ns(now_ns, free_ns=now_ns + free_ns, gap_ns=gap_ns)
        assert shortest_ns <= wait_ns <= longest_ns
        if wait_ns < longest_ns:
            assert now_ns + wait_ns >= max(now_ns + free_ns, last_ns)
        last_ns = max(last_ns, now_ns + wait_ns)


# What waits in the own outbox is not offered again.


def test_what_waits_in_the_own_outbox_is_not_offered_again() -> None:
    flood = Flood(limited(repeat_s=1.0))
    flood.publish(1, 5)
    flood.world.run_s(5)
    slow(flood, flood.root, 1e6)
    flood.said.clear()
    flood.publish(6, 9)
    publishing = flood.part(flood.home, "publishing")
    repeats = {kept.item.id: kept.repeats for kept in publishing._kept.values()}
    flood.world.run_s(20)
    assert flood.part(flood.home, "links").snapshot()["outboxes"][0]["messages"] == 4
    assert {kept.item.id: kept.repeats for kept in publishing._kept.values()} == repeats


def test_nor_after_a_restart() -> None:
    flood = Flood(limited(repeat_s=1.0))
    flood.world.overlay.network.apart = frozenset((flood.root,))
    flood.world.overlay.network.loss = 0.0
    flood.publish(1, 6)
    flood.world.world.crash(flood.home)
    flood.world.overlay.restart(flood.home)
    assert flood.part(flood.home, "links").snapshot()["outboxes"][0]["messages"] == 6
    flood.world.overlay.network.apart = frozenset()
    flood.world.run_s(5)
    kept = flood.part(flood.home, "publishing")._kept.values()
    assert {one.state.name for one in kept} == {"SETTLED"}


def test_a_root_does_not_send_again_what_waits_in_its_outbox() -> None:
    flood = Flood(limited(repeat_s=1.0))
    flood.world.subscribe("s", flood.other)
    flood.world.run_s(3)
    slow(flood, flood.other, 1e6)
    flood.publish(1, 4)
    flood.world.run_s(20)
    part = flood.part(flood.root, "dissemination")
    assert {task.attempt for task in part._tasks.values()} == {1}
    attempts = {one.attempt for one in flood.sent(Portion, by=flood.root)}
    assert attempts == {1}


# Roots.


def test_a_root_that_is_full_defers_what_it_is_offered() -> None:
    flood = Flood(limited(repeat_s=5.0, retention_s=20.0))
    part = flood.part(flood.root, "dissemination")
    part._room._items_max = 6
    flood.publish(1, 10)
    flood.world.run_s(2)
    assert len(part._tasks) == 6
    (deferred, *_) = flood.sent(Deferred, by=flood.root)
    assert ns(10.0) < deferred.wait_ns <= ns(25.0)
    flood.world.run_s(60)
    kept = list(flood.part(flood.home, "publishing")._kept.values())
    assert [one for one in kept if not one.settled] == []
    # Each was sent twice at most, however often others were.
    offers = [one.item.id for one in flood.sent(Offer, by=flood.home)]
    assert max(map(offers.count, offers)) <= 3


def test_a_root_says_taken_when_what_it_has_taken_is_on_its_way() -> None:
    flood = Flood(limited(open_items=3, repeat_s=1e6))
    flood.world.subscribe("s", flood.other)
    flood.world.run_s(3)
    slow(flood, flood.other, 1.0)
    flood.publish(1, 10)
    flood.world.run_s(0.5)
    under_way = flood.part(flood.root, "dissemination")._open
    assert len(under_way) == 10
    kept = flood.part(flood.home, "publishing")._kept.values()
    # Whether much is on its way, and whether the home knows of anything that it is taken.
    seen: set[tuple[bool, bool]] = set()
    for _ in range(120):
        flood.world.run_s(0.5)
        seen.add((len(under_way) > 3, any(one.state.name == "TAKEN" for one in kept)))
    assert (True, False) in seen
    assert (False, True) in seen
    assert (True, True) not in seen
    assert {one.state.name for one in kept} == {"SETTLED"}
    assert len(flood.sent(Offer, by=flood.home)) == 10


def test_a_home_that_is_away_slows_nobody() -> None:
    flood = Flood(limited(open_items=3, untaken_items=3))
    flood.world.subscribe("s", flood.other)
    flood.world.subscribe("t", flood.third)
    flood.world.run_s(3)
    flood.world.world.crash(flood.other)
    flood.world.run_s(5)
    for number in range(1, 21):
        assert isinstance(flood.publish(number, number)[0], Accepted)
        flood.world.run_s(0.3)
    assert len(flood.part(flood.root, "dissemination")._open._tasks) == 20


@pytest.mark.parametrize("limit", [{"early_items": 4}, {"early_bytes": 300}])
def test_offers_before_their_turn_are_dropped_beyond_a_limit_and_come_again(
    limit: dict[str, int],
) -> None:
    flood = Flood(limited(**limit, repeat_s=1.0))
    lost: list[int] = []
    arrivals = flood.world.overlay.network.arrivals

    def lose_first(sender: str, to: str, size_bytes: int, now_ns: int) -> tuple[int, ...]:
        if (sender, to) == (flood.home, flood.root) and size_bytes > 150 and not lost:
            lost.append(size_bytes)
            return ()
        return arrivals(sender, to, size_bytes, now_ns)

    flood.world.overlay.network.arrivals = lose_first  # type: ignore[method-assign]
    flood.publish(1, 20)
    flood.world.run_s(0.1)
    part = flood.part(flood.root, "dissemination")
    (sequence,) = part._sequences.values()
    assert lost
    assert 0 < len(sequence._early) <= 4
    flood.world.run_s(30)
    kept = flood.part(flood.home, "publishing")._kept.values()
    assert {one.state.name for one in kept} == {"SETTLED"}
    assert part._early_offers.items == part._early_offers.bytes == 0


def test_estimates_follow_how_long_others_take() -> None:
    """Who needs longer than `repeat_s` to answer is not asked again all the time."""
    flood = Flood(limited(repeat_s=1.0, untaken_items=40))
    slow(flood, flood.root, 0.2)
    number = asked = 0
    while number < 100 and asked < 300:
        asked += 1
        for answer in flood.publish(number + 1, number + 1):
            if isinstance(answer, Accepted):
                number += 1
            else:
                flood.world.run_s(answer.wait_ns / 1e9)
    assert number == 100
    offers = [one.item.id for one in flood.sent(Offer, by=flood.home)]
    assert len(offers) <= 1.05 * 100


def test_a_root_whose_answers_come_together_is_as_fast_as_it_is() -> None:
    """Whoever is sent away comes back when there is room, and not seconds after that.

    What a root says is gathered on the way: many together, then one, then none for a while. By
    the times between them it would take one in fifty milliseconds, and not one in one.
    """
    offers = Offers(PublishingSettings(), Backoff(ns(1.0), ns(8.0)))
    waiting = [
        Kept("client", Item("/source", str(number), 0, 1, number, "0a", 0, "", "", 0, True), None)
        for number in range(2_000)
    ]
    now_ns = 0
    for kept in waiting:
        offers.enter(kept, "0b", now_ns)
    for count in (199, 1, 199, 1, 199, 1):
        now_ns += ns(0.1)
        for _ in range(count):
            offers.taken(waiting.pop(), "0b", now_ns)
    assert ns(0.0005) < offers.gap_ns("0b", now_ns + ns(0.09)) < ns(0.002)
