"""What clients do: filters that match as often as asked, and devices that repeat themselves."""

from __future__ import annotations

import random
from typing import Any

import pytest

from distributary.broker import client as messages
from distributary.broker.addresses import Address, Blob
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.migration import messages as migration
from distributary.broker.settings import Settings, ns
from distributary.content import ContentSpace, DeviceProfile, Publication, Subscription
from distributary.filters import Filter
from distributary.simulator.checkers.deliveries import SourcesCheck
from distributary.simulator.checkers.ledger import Ledger
from distributary.simulator.workload.interests import Interests, profile, written_time
from distributary.simulator.workload.publisher import Publisher
from distributary.simulator.workload.streams import Walk
from distributary.simulator.workload.subscriber import Subscriber
from distributary.simulator.world import World

EVENT = Publication.parse({"specversion": "1.0", "id": "1", "source": "/p", "type": "t"})


class Wire:
    """A network that writes down what passes, and delivers nothing."""

    def __init__(self) -> None:
        self.passed: list[tuple[float, str]] = []

    def arrivals(
        self, sender: Address, to: Address, size_bytes: int, now_ns: int
    ) -> tuple[int, ...]:
        self.passed.append((now_ns / 1e9, to))
        return ()


def quiet_world() -> tuple[World, Wire, list[object]]:
    wire = Wire()
    world = World(Settings(), wire, seed=0)
    sent: list[object] = []
    world.listeners.append(lambda sender, to, message, now_ns: sent.append(message))
    return world, wire, sent


@pytest.mark.parametrize("matching", [0.0, 0.02, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("types", [1, 12])
def test_filters_match_events_as_often_as_asked(matching: float, types: int) -> None:
    interests = Interests(matching=matching, types=types, skew=1.0, rng=random.Random(7))
    filters = [Filter.parse(interests.filters()) for _ in range(300)]
    events = [
        interests.event(source="/p", identifier=str(k), now_ns=k, media_type=None)
        for k in range(300)
    ]
    matched = sum(f.matches(event) for f in filters for event in events)
    assert matched / 90_000 == pytest.approx(matching, abs=0.02)


def test_some_types_are_far_more_frequent_than_others() -> None:
    interests = Interests(matching=0.1, types=10, skew=1.5, rng=random.Random(1))
    kinds = [
        interests.event(source="/p", identifier=str(k), now_ns=0, media_type="a/a").type
        for k in range(1000)
    ]
    assert kinds.count("report.1") > 5 * kinds.count("report.5")


def test_advertised_rates_cover_the_cells_of_all_events() -> None:
    space = ContentSpace.default()
    interests = Interests(matching=0.1, types=10, skew=1.0, rng=random.Random(1))
    rates = dict(interests.rates(space, 5.0))
    assert sum(rates.values()) == pytest.approx(5.0)
    for k in range(100):
        event = interests.event(source="/p", identifier=str(k), now_ns=0, media_type=None)
        assert space.cell_of(event) in rates


def test_a_profile_takes_some_of_the_formats() -> None:
    for seed in range(20):
        document = profile(["a/a", "b/b", "c/c", "d/d"], random.Random(seed))
        assert 1 <= len(DeviceProfile.parse(document).entries()) <= 3


def test_times_of_a_run_are_timestamps() -> None:
    assert written_time(0) == "2026-01-01T00:00:00.000000000Z"
    assert written_time(ns(86_400 + 3_723.5)) == "2026-01-02T01:02:03.500000000Z"


def test_a_walk_stays_near_its_mean_and_moves() -> None:
    walk = Walk(10.0, 0.5, random.Random(3))
    values = []
    for _ in range(2000):
        walk.step()
        values.append(walk.number)
    assert sum(values) / 2000 == pytest.approx(10.0, abs=1.0)
    assert len(set(values)) == 2000
    assert walk.text


def test_a_request_is_repeated_ever_less_often_until_it_is_answered() -> None:
    world, wire, _ = quiet_world()
    publisher = Publisher(world, "p", "aa", "/p", Ledger(lambda _: 0))
    publisher.publish(EVENT, None)
    world.run_until(ns(20.0))
    assert [at for at, _ in wire.passed] == [0.0, 1.0, 3.0, 7.0, 15.0]
    publisher.receive(messages.Accepted("/p", "1", "1", 1), sender="aa", now_ns=world.now_ns)
    world.run_until(ns(90.0))
    assert len(wire.passed) == 5


def test_a_publisher_waits_with_the_next_event_until_one_is_accepted() -> None:
    world, _, sent = quiet_world()
    ledger = Ledger(lambda _: 0)
    publisher = Publisher(world, "p", "aa", "/p", ledger)
    other = Publication.parse({**EVENT.document(), "id": "2", "datacontenttype": "a/a"})
    publisher.publish(EVENT, None)
    publisher.publish(other, Blob.imagined("a/a", 77, "x"))
    assert len(sent) == 1
    publisher.receive(messages.Accepted("/p", "1", "1", 1), sender="aa", now_ns=0)
    assert len(sent) == 2
    entry = ledger.published[ItemId("", "/p", "2")]
    assert (entry.size_bytes, entry.order, entry.accepted_ns) == (77, 2, None)


def pipelined(count: int) -> tuple[World, Ledger, Publisher, list[Any]]:
    world, _, sent = quiet_world()
    ledger = Ledger(lambda _: 0)
    publisher = Publisher(world, "p", "aa", "/p", ledger, pipeline=3)
    for number in range(1, count + 1):
        publisher.publish(Publication.parse({**EVENT.document(), "id": str(number)}), None)
    return world, ledger, publisher, sent


def under_way(sent: list[Any]) -> list[tuple[str, int, int]]:
    return [(message.session, message.number, message.first) for message in sent]


def test_a_publisher_has_several_events_under_way_and_says_what_was_not_answered() -> None:
    world, ledger, publisher, sent = pipelined(5)
    assert under_way(sent) == [("1", 1, 1), ("1", 2, 1), ("1", 3, 1)]
    sent.clear()
    publisher.receive(messages.Accepted("/p", "2", "1", 2), sender="aa", now_ns=0)
    publisher.receive(messages.Accepted("/p", "1", "1", 1), sender="aa", now_ns=0)
    assert under_way(sent) == [("1", 4, 1), ("1", 5, 3)]
    sent.clear()
    world.run_until(ns(1.0))
    assert under_way(sent) == [("1", 3, 3), ("1", 4, 3), ("1", 5, 3)]
    assert [entry.order for entry in ledger.published.values()] == [1, 2, 3, 4, 5]


def test_a_publisher_waits_as_long_as_a_busy_home_says() -> None:
    world, _, publisher, sent = pipelined(4)
    sent.clear()
    for number in (2, 3):
        publisher.receive(messages.Busy(ns(2.5), "", "", "1", number), sender="aa", now_ns=0)
    publisher.receive(messages.Accepted("/p", "1", "1", 1), sender="aa", now_ns=0)
    world.run_until(ns(2.4))
    assert sent == []
    world.run_until(ns(2.6))
    assert under_way(sent) == [("1", 2, 2), ("1", 3, 2), ("1", 4, 2)]


def test_a_publisher_that_has_forgotten_how_far_it_was_begins_another_session() -> None:
    _, ledger, publisher, sent = pipelined(4)
    publisher.receive(messages.Accepted("/p", "1", "1", 1), sender="aa", now_ns=0)
    sent.clear()
    publisher.restart()
    assert under_way(sent) == [("2", 1, 1), ("2", 2, 1), ("2", 3, 1)]
    publisher.receive(messages.Accepted("/p", "2", "1", 2), sender="aa", now_ns=0)
    assert ledger.published[ItemId("", "/p", "2")].accepted_ns is None, (
        "an answer to the session before"
    )
    twins = [entry.publication.id for entry in ledger.published.values() if entry.twin]
    assert twins == ["2", "3", "4"]


def test_who_publishes_under_a_foreign_source_is_noted_when_that_is_accepted() -> None:
    world, _, _ = quiet_world()
    ledger = Ledger(lambda _: 0)
    thief = Publisher(world, "p", "aa", "/p", ledger, pipeline=2, tenant="x")
    checker = SourcesCheck(ledger)
    for identifier in ("1", "2"):
        event = Publication.parse({**EVENT.document(), "id": identifier})
        thief.publish(event, None, foreign=True)
    no = messages.Refused("publication", "no", "/p", "1", "1", 1)
    thief.receive(no, sender="aa", now_ns=0)
    thief.receive(no, sender="aa", now_ns=0)
    assert (ledger.foreign, ledger.refusals, ledger.published) == (1, [], {})
    thief.receive(messages.Accepted("/p", "2", "1", 2), sender="aa", now_ns=0)
    checker.finish(0)
    (violation,) = checker.violations
    assert "@x@p published /p 2 of x, whose source is another tenant's" in violation.what


def test_what_an_old_home_says_is_not_heard() -> None:
    world, _, _ = quiet_world()
    ledger = Ledger(lambda _: 0)
    publisher = Publisher(world, "p", "aa", "/p", ledger)
    publisher.publish(EVENT, None)
    publisher.reattach("bb")
    publisher.receive(messages.Accepted("/p", "1", "1", 1), sender="aa", now_ns=0)
    assert ledger.published[ItemId("", "/p", "1")].accepted_ns is None
    assert ledger.published[ItemId("", "/p", "1")].home == "bb"


def subscriber() -> tuple[World, Ledger, Subscriber, list[object]]:
    world, _, sent = quiet_world()
    ledger = Ledger(lambda _: 0)
    device = Subscriber(world, "s", "aa", ledger)
    device.subscribe(Subscription.parse({"id": "s", "filters": []}))
    device.receive(messages.Subscribed("s"), sender="aa", now_ns=0)
    ledger.sent(EVENT, 0, "aa", 1)
    ledger.sent(Publication.parse({**EVENT.document(), "id": "2"}), 0, "aa", 2)
    sent.clear()
    return world, ledger, device, sent


def delivery(number: int, identifier: str) -> messages.Delivery:
    event = f'{{"specversion":"1.0","id":"{identifier}","source":"/p","type":"t"}}'
    return messages.Delivery("s", number, event)


def test_deliveries_are_taken_in_the_order_of_their_numbers_and_acknowledged() -> None:
    _, ledger, device, sent = subscriber()
    got: list[str] = []
    ledger.readers.append(lambda copy: got.append(copy.published.publication.id))
    device.receive(delivery(2, "2"), sender="aa", now_ns=0)
    assert got == []
    device.receive(delivery(1, "1"), sender="aa", now_ns=0)
    device.receive(delivery(1, "1"), sender="aa", now_ns=0)
    assert got == ["1", "2"]
    assert device.repeats == 1
    assert sent == [
        messages.Acknowledge("s", 0),
        messages.Acknowledge("s", 2),
        messages.Acknowledge("s", 2),
    ]


def test_a_client_that_is_stuck_takes_nothing_until_a_notice_comes() -> None:
    _, ledger, device, sent = subscriber()
    device.get_stuck()
    device.receive(delivery(1, "1"), sender="aa", now_ns=0)
    assert ledger.got == {}
    assert not any(isinstance(message, messages.Acknowledge) for message in sent)
    device.receive(messages.Ended("s", "age", 1, 1, 1), sender="aa", now_ns=0)
    assert sent[-1] == messages.Unsubscribe("s")
    assert ledger.wishes["s of @s"].ended_ns is not None
    assert ledger.strangers == []


def test_a_notice_that_is_not_true_is_noticed() -> None:
    _, ledger, device, _ = subscriber()
    device.receive(messages.Ended("s", "age", 2, 3, 3), sender="aa", now_ns=0)
    (unasked, untrue) = (what for _, what in ledger.strangers)
    assert "should not have: age" in unasked
    assert "had 0 and was told" in untrue


def test_a_change_counts_from_the_answer_to_it() -> None:
    _, ledger, device, _ = subscriber()
    wish = ledger.wishes["s of @s"]
    changed = Subscription.parse({"id": "s", "filters": [{"exact": {"type": "u"}}]})
    device.change(changed)
    device.receive(messages.Subscribed("s", 0), sender="aa", now_ns=0)
    assert wish.change is not None, "an answer to what it asked before"
    device.receive(messages.Subscribed("s", 1), sender="aa", now_ns=0)
    assert wish.change is None
    assert wish.subscription == changed


def test_an_end_counts_from_its_confirmation() -> None:
    _, ledger, device, _ = subscriber()
    device.unsubscribe("s")
    wish = ledger.wishes["s of @s"]
    assert wish.ending_ns is not None
    assert wish.ended_ns is None
    device.receive(messages.Unsubscribed("s"), sender="aa", now_ns=0)
    assert wish.ended_ns is not None


def test_a_client_that_is_asked_moves_and_says_what_it_has_received() -> None:
    _, _, device, sent = subscriber()
    device.receive(delivery(1, "1"), sender="aa", now_ns=0)
    device.receive(migration.RequestToMove("bb"), sender="aa", now_ns=0)
    device.receive(migration.MoveNow("bb"), sender="aa", now_ns=0)
    device.receive(migration.Connected((("s", 1),)), sender="bb", now_ns=0)
    assert (device.home, device.left) == ("bb", {"aa"})
    assert migration.AcceptMove("bb", accepted=True) in sent
    assert migration.Connect((("s", 1),)) in sent


def test_after_a_loss_a_client_asks_again_elsewhere_and_counts_from_the_beginning() -> None:
    _, ledger, device, sent = subscriber()
    device.receive(delivery(1, "1"), sender="aa", now_ns=0)
    device.reattach("bb")
    assert any(isinstance(message, messages.Subscribe) for message in sent)
    assert migration.Connect((), epoch=1, wanted=(("s", 0),)) in sent
    device.receive(migration.Connected(()), sender="bb", now_ns=0)
    device.receive(delivery(1, "2"), sender="bb", now_ns=0)
    assert {identity for _, identity in ledger.got} == {
        ItemId("", "/p", "1"),
        ItemId("", "/p", "2"),
    }


def test_after_a_loss_a_client_goes_on_where_an_earlier_home_has_kept_its_place() -> None:
    _, ledger, device, sent = subscriber()
    device.receive(delivery(1, "1"), sender="aa", now_ns=0)
    device.reattach("bb")
    device.receive(delivery(2, "2"), sender="bb", now_ns=0)
    assert len(ledger.got) == 1
    device.receive(migration.Connected((("s", 1),)), sender="bb", now_ns=0)
    device.receive(delivery(2, "2"), sender="bb", now_ns=0)
    assert {identity for _, identity in ledger.got} == {
        ItemId("", "/p", "1"),
        ItemId("", "/p", "2"),
    }
    assert sent[-1] == messages.Acknowledge("s", 2)


def test_a_client_does_not_go_back_to_a_home_that_was_lost() -> None:
    _, _, device, _ = subscriber()
    device.reattach("bb")
    device.receive(migration.MoveNow("aa"), sender="bb", now_ns=0)
    assert device.home == "bb"


def test_a_client_that_something_old_leads_astray_is_shown_home() -> None:
    _, _, device, sent = subscriber()
    device.receive(migration.MoveNow("bb", 7), sender="cc", now_ns=0)
    assert sent[-1] == migration.Connect((), moved_ns=7)
    device.receive(migration.MoveNow("aa", 5), sender="bb", now_ns=0)
    device.receive(migration.Connected(()), sender="bb", now_ns=0)
    assert device.home == "aa"


def test_a_client_that_came_by_another_move_says_that_it_has_come_by_this_one() -> None:
    _, _, device, sent = subscriber()
    device.receive(migration.MoveNow("bb", 7), sender="aa", now_ns=0)
    device.receive(migration.MoveNow("bb", 9), sender="aa", now_ns=0)
    device.receive(migration.Connected(()), sender="bb", now_ns=0)
    assert device.home == "bb"
    sent.clear()
    device.receive(migration.MoveNow("bb", 9), sender="aa", now_ns=0)
    assert sent == []
    device.receive(migration.MoveNow("bb", 11), sender="aa", now_ns=0)
    assert sent == [migration.Connect((), moved_ns=11)]


def test_a_refusal_is_written_down() -> None:
    _, ledger, device, _ = subscriber()
    device.receive(messages.Refused("subscription", "no", id="s"), sender="aa", now_ns=0)
    assert [what for _, what in ledger.refusals] == ["@s was refused s: no"]
