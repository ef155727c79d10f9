"""The checker of pressure, and clients that are away."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.content_worlds import ContentWorld
from tests.publishing_homes import Home, numbered
from tests.unit.simulator.ledgers import Book

from distributary.broker.addresses import Blob
from distributary.broker.client import (
    Acknowledge,
    AskStatus,
    Busy,
    Delivery,
    Ended,
    Publish,
    Subscribed,
    Undeliverable,
)
from distributary.broker.host import ClientBack, ClientGone, StorageLow, StorageRecovered
from distributary.broker.migration.messages import Connect
from distributary.broker.settings import (
    ContentSettings,
    PublishingSettings,
    Settings,
    SubscriptionSettings,
    ns,
)
from distributary.simulator.checkers.deliveries import DelaysCheck
from distributary.simulator.checkers.pressure import PressureCheck
from distributary.simulator.checkers.stores import StoresCheck
from distributary.simulator.disk import Disk

WINDOW = SubscriptionSettings(window_items=3, window_bytes=1_000)


def check(*messages: object, gone_ns: int | None = None) -> list[str]:
    """What is complained about when a home and its client say this, a second apart."""
    pressure = PressureCheck(WINDOW, lambda broker, client: gone_ns)
    for second, message in enumerate(messages, 1):
        said_by_client = isinstance(message, Acknowledge | Connect)
        parties = ("@a", "aa") if said_by_client else ("aa", "@a")
        pressure.listen(*parties, message, ns(second))
    return [violation.what for violation in pressure.violations]


def told(*messages: tuple[float, object], hears: bool = True) -> list[str]:
    """What is complained about when a publisher and its home say this, at these seconds."""
    pressure = PressureCheck(WINDOW, lambda broker, client: None, hears=hears)
    for second, message in messages:
        parties = ("@p", "aa") if isinstance(message, Publish) else ("aa", "@p")
        pressure.listen(*parties, message, ns(second))
    return [violation.what for violation in pressure.violations]


def test_who_is_told_to_wait_waits() -> None:
    busy = Busy(ns(10.0), session="a", number=5)
    for number, second, seen in ((5, 2.0, False), (5, 4.0, True), (4, 4.0, False), (9, 8.0, True)):
        again = Publish("", session="a", number=number)
        assert bool(told((1.0, busy), (second, again))) == seen, (number, second)
    late, other = Publish("", session="a", number=5), Publish("", session="b", number=5)
    assert told((1.0, busy), (11.0, late), (12.0, late)) == []
    assert told((1.0, busy), (5.0, other)) == []
    assert told((1.0, busy), (5.0, late), hears=False) == [], "it may not have heard of it"


def test_stores_are_held_against_the_settings() -> None:
    home = Home()
    home.tell(numbered(1))
    home.tell(numbered(2))
    for most, seen in ((2, False), (1, True)):
        limited = replace(Settings(), publishing=PublishingSettings(items_max=most))
        check = StoresCheck(limited, lambda: {"aa": home.journal})
        check.look(5)
        assert bool(check.violations) == seen
    early = ContentSettings(items_max=1, early_items=0)
    check = StoresCheck(replace(Settings(), content=early), lambda: {"aa": home.journal})
    check.look(5)
    (violation,) = check.violations
    assert violation.what == "aa keeps 2 items, more than 1"


def test_delays_of_those_who_are_not_concerned_are_compared() -> None:
    book = Book()
    check = DelaysCheck(book.ledger, 1e-9, lambda name: name == "@b")
    other = DelaysCheck(book.ledger, 1.0, lambda name: name == "h")
    for name in ("a", "b"):
        book.subscribe(name)
    book.publish("1")
    for name in ("b", "a"):
        book.deliver(name, "1")
    for one in (check, other):
        one.finish(book.now_ns)
    (violation,) = check.violations
    assert violation.what.startswith("a of @a waited 0.0 s for /p 1, although nothing was wrong")
    assert [one.what for one in other.violations] == ["everybody was concerned by a fault"]


def test_a_disk_takes_no_more_than_there_is_room_for() -> None:
    journal: dict[str, bytes] = {"old": bytes(100)}
    said: list[object] = []
    disk = Disk(journal, 100, said.append)

    def commit(**writes: bytes | None) -> bool:
        if not disk.takes(writes):
            return False
        for key, record in writes.items():
            if record is None:
                del journal[key]
            else:
                journal[key] = record
        return True

    assert commit(a=bytes(40))
    assert (said, disk.low) == ([], False)
    assert commit(b=bytes(19))
    assert said == [StorageLow()]
    assert not commit(c=bytes(60))
    assert disk.failed == 1
    assert commit(b=bytes(58)), "in the place of what was there"
    assert not commit(b=bytes(59))
    assert commit(a=None, c=bytes(35)), "what makes room always fits"
    assert commit(b=None, old=None)
    assert said == [StorageLow(), StorageRecovered()]
    disk.recover()
    assert len(said) == 2


def sent(number: int, size_bytes: int = 100) -> Delivery:
    blob = None if size_bytes <= 100 else Blob.imagined("image/png", size_bytes - 100, "x")
    return Delivery("s", number, "x" * min(size_bytes, 100), blob)


def test_as_much_as_a_window_may_be_under_way_again_and_again() -> None:
    repeated = (sent(1), sent(2), sent(3), sent(1), sent(2), sent(3))
    assert check(*repeated, Acknowledge("s", 2), sent(4), sent(5), sent(3)) == []


def test_what_a_client_was_sent_before_it_moved_does_not_count_when_it_is_back() -> None:
    """It has acknowledged that to its next home."""
    for homes, seen in ((("bb", "aa"), 0), (("aa", "aa"), 1)):
        pressure = PressureCheck(WINDOW, lambda broker, client: None)
        for number in (1, 2, 3):
            pressure.listen("aa", "@a", sent(number), ns(1))
        for home in homes:
            pressure.listen("@a", home, Connect(()), ns(2))
        pressure.listen("aa", "@a", sent(4), ns(3))
        assert len(pressure.violations) == seen, homes


def test_what_is_repeated_after_its_acknowledgement_does_not_count() -> None:
    """It may have been on its way to the home, or lost."""
    assert check(sent(1), sent(2), sent(3), Acknowledge("s", 3), sent(1), sent(2), sent(4)) == []
    repeated = (sent(1), sent(2), Acknowledge("s", 2), sent(1), sent(2), sent(3), sent(4), sent(5))
    assert check(*repeated) == []
    assert len(check(*repeated, sent(6))) == 1
    changed = (*repeated[:3], Subscribed("s", 1), *repeated[3:])
    assert check(*changed) == [], "numbers go on"
    assert len(check(*changed, sent(6))) == 1


@pytest.mark.parametrize("last", [sent(4), Undeliverable("s", 4, "/s", "1", "no")])
def test_more_than_that_is_seen(last: object) -> None:
    (what,) = check(sent(1), sent(2), sent(3), last)
    assert what.startswith("@a had 4 deliveries of s with")


def test_bytes_are_counted_unless_there_is_only_one() -> None:
    assert check(sent(1, 5_000)) == []
    assert check(sent(1, 500), sent(2, 500)) == []
    (what,) = check(sent(1, 500), sent(2, 501))
    assert "1,001 bytes" in what


@pytest.mark.parametrize(
    "anew", [Subscribed("s"), Ended("s", "age", 3, 1, 3), Connect((("s", 3),))]
)
def test_numbers_that_begin_anew_or_were_got_elsewhere_do_not_count(anew: object) -> None:
    assert check(sent(1), sent(2), sent(3), anew, sent(4), sent(5)) == []


def test_what_is_sent_to_a_client_that_is_gone_is_seen() -> None:
    assert check(sent(1), sent(2), gone_ns=0) == [], "it may have been decided before"
    (what,) = check(sent(1), sent(2), sent(3), gone_ns=0)
    assert "number 3 of s" in what


@pytest.mark.parametrize("noticed", [True, False])
@pytest.mark.parametrize("crashed", [True, False])
def test_a_client_that_was_away_gets_everything_when_it_is_back(
    noticed: bool, crashed: bool
) -> None:
    """Its host says that it is gone, also to a broker that has been down meanwhile."""
    world = ContentWorld(4)
    home = world.members[0]
    client = world.subscribe("s", home)
    world.run_s(3)
    heard: list[object] = []
    world.world.listeners.append(
        lambda sender, to, message, _: heard.append(message) if "@s" in (sender, to) else None
    )
    client.go_away()
    world.run_s(2)
    node = world.world.nodes[home]
    assert list(node.absent) == ["@s"]
    if crashed:
        world.world.crash(home)
        world.run_s(1)
        world.overlay.restart(home)
    assert (ClientGone("@s") in node.first()) == bool(node.absent)
    for name in ("1", "2"):
        world.publish(name, world.members[1], media_type=None)
    world.run_s(10)
    assert heard == []
    assert world.got("s") == []
    client.come_back(noticed=noticed)
    world.run_s(1)
    assert (AskStatus("s") in heard) == (not noticed)
    assert node.absent == {}
    assert [name for name, _ in world.got("s")] == ["1", "2"]
    assert world.violations() == []


def test_a_host_that_was_down_says_what_is_true_when_it_is_up() -> None:
    world = ContentWorld(4)
    home = world.members[0]
    client = world.subscribe("s", home)
    world.run_s(3)
    node = world.world.nodes[home]
    world.world.crash(home)
    client.go_away()
    world.run_s(2)
    assert list(node.absent) == ["@s"]
    client.come_back(noticed=True)
    world.overlay.restart(home)
    assert not any(isinstance(message, ClientGone | ClientBack) for message in node.first())
