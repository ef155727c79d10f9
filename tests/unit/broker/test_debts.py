"""A root keeps so much for homes that are away, and then gives up the one that is owed most."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker_subscribers import Subscriber
from tests.content_worlds import SETTINGS, ContentWorld

from distributary.broker.client import Delivery, Ended, Subscribed, Unsubscribe
from distributary.broker.dissemination.audience import Debts
from distributary.broker.dissemination.dissemination import Dissemination
from distributary.broker.dissemination.messages import Item, ItemId, Missed
from distributary.broker.dissemination.task import ContentRecord, Task
from distributary.broker.settings import ContentSettings, Settings
from distributary.errors import PeerMisbehaved


def narrow(items: int, size_bytes: int = 2**40, **fields: Any) -> Settings:
    content = replace(SETTINGS.content, absent_items=items, absent_bytes=size_bytes, **fields)
    membership = replace(SETTINGS.membership, lost_s=300.0)
    return replace(SETTINGS, content=content, membership=membership)


class Absence:
    """Three brokers beside the root: the first is away, and the second for a while."""

    def __init__(self, settings: Settings, *, filters: tuple[object, ...] = ()) -> None:
        self.world = ContentWorld(5, settings=settings)
        self.root = self.world.root_of()
        others = [member for member in self.world.members if member != self.root]
        self.away, self.other, self.there, self.publisher = others
        self.clients = {
            name: Subscriber(self.world.overlay, f"@{name}", home)
            for name, home in (("a", self.away), ("o", self.other), ("t", self.there))
        }
        for client in self.clients.values():
            client.subscribe("s", *filters)
        self.world.run_s(3)
        self._count = 0

    def go(self, *homes: str) -> None:
        for home in homes:
            self.world.world.crash(home)
        self.world.run_s(6)

    def back(self, *homes: str) -> None:
        for home in homes:
            self.world.overlay.restart(home)
        self.world.run_s(10)

    def publish(self, count: int, **fields: Any) -> None:
        for _ in range(count):
            self._count += 1
            self.world.publish(str(self._count), self.publisher, media_type=None, **fields)
            self.world.run_s(0.2)
        self.world.run_s(3)

    @property
    def part(self) -> Dissemination:
        broker = self.world.world.nodes[self.root].broker
        assert broker is not None
        return broker.core.dissemination

    def kept(self) -> int:
        """How many items the root has not settled."""
        return sum(1 for _ in self.part._open)

    def got(self, name: str) -> set[int]:
        return {delivery.number for delivery in self.clients[name].answers(Delivery)}

    def ends(self, name: str) -> list[Ended]:
        return self.clients[name].answers(Ended)


def test_the_home_owed_most_is_given_up_and_told_when_it_is_back() -> None:
    absence = Absence(narrow(10))
    absence.go(absence.away)
    absence.publish(5)
    absence.go(absence.other)
    absence.publish(4)
    assert absence.kept() == 9
    absence.publish(4)
    # What only the first was owed is settled, and what the second is owed is kept.
    assert absence.kept() == 8
    absence.back(absence.away, absence.other)
    assert absence.got("t") == set(range(1, 14))
    assert absence.got("o") == set(range(1, 14))
    assert absence.ends("o") == absence.ends("t") == []
    assert absence.got("a") == set()
    notice = absence.ends("a")[0]
    assert (notice.id, notice.reason, notice.count) == ("s", "missed", 0)
    # Those that were given up, and those that came after that.
    assert notice.missed == 13


def test_who_has_missed_something_begins_anew_by_subscribing() -> None:
    absence = Absence(narrow(3))
    absence.go(absence.away)
    absence.publish(6)
    absence.back(absence.away)
    client = absence.clients["a"]
    assert absence.ends("a")
    client.tell(Unsubscribe("s"))
    absence.world.run_s(5)
    client.received.clear()
    client.subscribe("s")
    absence.world.run_s(3)
    assert client.answers(Subscribed)
    absence.publish(3)
    assert [one.number for one in client.answers(Delivery)][:3] == [1, 2, 3]
    assert absence.ends("a") == []
    absence.world.run_s(130)
    records = absence.world.world.nodes[absence.root].journal
    assert [key for key in records if "missed" in key] == []
    assert absence.part._absent.forgone._by_home == {}


def away_twice(count: int, there_s: float) -> Absence:
    """A home misses something, its client subscribes anew, and it is away again."""
    absence = Absence(narrow(3))
    absence.go(absence.away)
    absence.publish(6)
    absence.back(absence.away)
    client = absence.clients["a"]
    client.tell(Unsubscribe("s"))
    absence.world.run_s(5)
    client.subscribe("s")
    absence.world.run_s(there_s)
    client.received.clear()
    absence.go(absence.away)
    absence.publish(count)
    absence.world.run_s(10)
    absence.back(absence.away)
    return absence


@pytest.mark.parametrize("there_s", [2, 32], ids=["remembered", "forgotten meanwhile"])
def test_a_home_that_is_away_again_is_told_what_it_has_missed_since(there_s: float) -> None:
    """Whether the root still remembers what it gave up before, or forgets that meanwhile."""
    absence = away_twice(6, there_s)
    assert absence.got("a") == set()
    assert absence.ends("a")[0].missed == 6
    assert absence.part._absent.forgone._noting == {}


def test_who_subscribes_anew_and_misses_nothing_gets_everything() -> None:
    absence = away_twice(2, 2)
    assert absence.got("a") == {1, 2}
    assert absence.ends("a") == []


def test_only_subscriptions_that_missed_something_end() -> None:
    absence = Absence(narrow(3), filters=({"exact": {"type": "map"}},))
    client = absence.clients["a"]
    client.subscribe("u", {"exact": {"type": "other"}})
    # It is registered nowhere by itself, and misses what the other one misses.
    client.subscribe("covered", {"all": [{"exact": {"type": "map"}}, {"exact": {"id": "x"}}]})
    absence.world.run_s(3)
    absence.go(absence.away)
    absence.publish(6)
    absence.back(absence.away)
    assert {(one.id, one.reason) for one in absence.ends("a")} == {
        ("s", "missed"),
        ("covered", "missed"),
    }


@pytest.mark.parametrize("crashed", [1.0, 0.0011, 0.0], ids=["before", "between", "at once"])
def test_a_root_that_crashes_remembers_whom_it_has_given_up(crashed: float) -> None:
    absence = Absence(narrow(3))
    absence.go(absence.away)
    absence.publish(3)
    absence.world.publish("last", absence.publisher, media_type=None)
    absence.world.run_s(0.2 + crashed)
    absence.world.world.crash(absence.root)
    absence.world.run_s(0.5)
    absence.world.overlay.restart(absence.root)
    absence.world.run_s(6)
    absence.back(absence.away)
    (missed, *_) = {one.missed for one in absence.ends("a")} or {0}
    # Either everything, or nothing and a notice: never a part of it without one.
    assert missed == 4 or absence.got("a") == {1, 2, 3, 4}
    assert absence.got("t") == {1, 2, 3, 4}


def test_nobody_is_given_up_who_would_not_understand_it() -> None:
    """While an overlay is upgraded, some brokers do not know what `Missed` means."""
    absence = Absence(narrow(3))
    absence.part.core.version = 1
    assert absence.part.core.membership.version == 1
    absence.go(absence.away)
    absence.publish(6)
    assert absence.kept() == 6
    assert absence.part._absent._relief is None


def test_bytes_count_too() -> None:
    absence = Absence(narrow(10**6, 3_000))
    absence.go(absence.away)
    absence.publish(1, kind="map")
    assert absence.kept() == 1
    absence.publish(40)
    sizes = [
        len(record.item.event)
        for record in absence.world.world.nodes[absence.root].records().values()
        if isinstance(record, ContentRecord)
    ]
    assert len(sizes) == 41
    assert absence.kept() == 0
    absence.back(absence.away)
    assert absence.ends("a")[0].missed == 41


def test_a_home_that_is_lost_for_good_is_told_nothing() -> None:
    settings = replace(narrow(3), membership=replace(SETTINGS.membership, lost_s=20.0))
    absence = Absence(settings)
    absence.go(absence.away)
    absence.publish(6)
    assert absence.part._absent.forgone._by_home
    absence.world.run_s(40)
    assert absence.part._absent.forgone._by_home == {}
    root = absence.world.world.nodes[absence.root]
    assert [key for key in root.journal if "missed" in key] == []


def test_no_turn_gives_up_everything_at_once() -> None:
    """However much a home is owed: the rest waits for the next turn."""
    absence = Absence(narrow(200))
    absence.go(absence.away)
    publishers = absence.world
    for number in range(201):
        publishers.publish(f"x{number}", absence.publisher, media_type=None, source=f"/{number}")
    turns: list[int] = []
    root = absence.world.world.nodes[absence.root]

    def count(writes: Any) -> None:
        turns.append(sum(key.startswith("dissemination/progress/") for key in writes))

    root.at_commit = count
    absence.world.run_s(8)
    assert absence.kept() == 0
    assert max(turns) <= 128


def test_a_broker_that_says_missed_must_name_something() -> None:
    world = ContentWorld(2)
    home, other = world.members
    for broken in (Missed((("s", -1),), 0), Missed((("s", 1),), -(2**63) + 1)):
        broker = world.world.nodes[home].broker
        assert broker is not None
        with pytest.raises(PeerMisbehaved):
            broker.receive(broken, sender=other, now_ns=world.world.now_ns)


def task(number: int, size_bytes: int) -> Task:
    event = "x" * size_bytes
    item = Item("/s", str(number), 0, 1, number, "aa", 0, event, "text/plain", size_bytes, True)
    return Task(item, None)


@given(
    st.lists(
        st.tuples(st.sampled_from("oosc"), st.sampled_from("abc"), st.integers(0, 9)), max_size=60
    ),
    st.integers(1, 8),
    st.integers(1, 60),
)
def test_debts_are_what_their_slow_twin_counts(
    steps: list[tuple[str, str, int]], items: int, size_bytes: int
) -> None:
    """A step owes a home an item, settles an item, or clears a home."""
    debts = Debts(ContentSettings(absent_items=items, absent_bytes=size_bytes))
    tasks = [task(number, 3 * number) for number in range(10)]
    owed: set[tuple[str, int]] = set()
    for step, home, number in steps:
        if step == "o":
            debts.owe(home, tasks[number])
            owed.add((home, number))
        elif step == "s":
            debts.settled(tasks[number])
            owed = {one for one in owed if one[1] != number}
        else:
            assert debts.clear(home) == {ItemId("", "/s", str(n)) for h, n in owed if h == home}
            owed = {one for one in owed if one[0] != home}
        numbers = {n for _, n in owed}
        assert (debts.items, debts.bytes) == (len(numbers), sum(3 * n for n in numbers))
        if len(numbers) <= items and debts.bytes <= size_bytes:
            assert debts.owed_most() is None
        else:
            bytes_of = {h: sum(3 * n for g, n in owed if g == h) for h, _ in owed}
            most = debts.owed_most()
            assert most is not None
            assert bytes_of[most] == max(bytes_of.values())
