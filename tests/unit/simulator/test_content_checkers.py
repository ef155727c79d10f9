"""The checkers of content: each sees what it is for, and nothing else."""

from __future__ import annotations

from functools import partial

import pytest
from tests.unit.simulator.ledgers import GRAPH, Book, settings

from distributary.broker.dissemination.messages import ItemId
from distributary.broker.settings import Settings
from distributary.content import Publication
from distributary.simulator.checkers.deliveries import (
    EndsCheck,
    ExactlyOnceCheck,
    OrderCheck,
    SelectionCheck,
)
from distributary.simulator.checkers.ledger import PublishedEvent


def test_what_is_owed_and_made_once_is_all_right() -> None:
    book = Book()
    checker = ExactlyOnceCheck(book.ledger)
    book.subscribe("s")
    book.publish("1")
    book.deliver("s", "1")
    checker.finish(book.now_ns)
    assert checker.violations == []
    assert (checker.owed, checker.made, checker.duplicates, checker.extra) == (1, 1, 0, 0)


def test_a_ledger_is_complete_when_all_was_taken_and_all_that_is_owed_has_come() -> None:
    book = Book()
    book.subscribe("s")
    assert book.ledger.is_complete()
    for name in ("1", "2"):
        book.publish(name)
    book.deliver("s", "2")
    assert not book.ledger.is_complete()
    book.deliver("s", "1")
    assert book.ledger.is_complete()
    book.publish("3", accepted=False)
    book.deliver("s", "3")
    assert not book.ledger.is_complete()
    book.ledger.accepted(ItemId("", "/p", "3"), book.now_ns)
    assert book.ledger.is_complete()


def test_what_was_published_after_a_confirmation_and_never_came_is_missing() -> None:
    book = Book()
    checker = ExactlyOnceCheck(book.ledger)
    book.subscribe("s")
    book.publish("1")
    checker.finish(book.now_ns)
    (violation,) = checker.violations
    assert "s of @s was owed /p 1" in violation.what
    assert (checker.owed, checker.made) == (1, 0)


def test_many_missing_deliveries_are_counted_rather_than_listed() -> None:
    book = Book()
    checker = ExactlyOnceCheck(book.ledger)
    for k in range(30):
        book.subscribe(f"s{k:02d}")
    book.publish("1")
    checker.finish(book.now_ns)
    assert len(checker.violations) == 21
    assert checker.violations[-1].what == "10 more owed deliveries were never made"


def test_a_second_copy_under_another_number_is_a_duplicate() -> None:
    book = Book()
    checker = ExactlyOnceCheck(book.ledger)
    book.subscribe("s")
    book.publish("1")
    book.deliver("s", "1")
    book.deliver("s", "1")
    assert checker.duplicates == 1
    assert ["twice" in violation.what for violation in checker.violations] == [True]


def test_before_the_confirmation_a_delivery_is_allowed_and_not_owed() -> None:
    book = Book()
    checker = ExactlyOnceCheck(book.ledger)
    book.subscribe("s", confirmed=False)
    book.publish("1")
    book.publish("2")
    book.deliver("s", "1")
    checker.finish(book.now_ns)
    assert checker.violations == []
    assert (checker.owed, checker.made, checker.extra) == (0, 0, 1)


def test_nothing_is_owed_once_a_client_has_begun_to_end_its_subscription() -> None:
    book = Book()
    checker = ExactlyOnceCheck(book.ledger)
    book.subscribe("s")
    book.ledger.ending("s of @s", book.now_ns)
    book.publish("1")
    checker.finish(book.now_ns)
    assert checker.violations == []
    assert checker.owed == 0


def test_a_publication_that_nobody_ever_accepts_is_a_fault_but_not_owed() -> None:
    book = Book()
    checker = ExactlyOnceCheck(book.ledger)
    book.subscribe("s")
    book.publish("1", accepted=False)
    checker.finish(book.now_ns)
    assert [v.what for v in checker.violations] == ["/p 1 was sent and never accepted"]
    assert checker.owed == 0


@pytest.mark.parametrize(
    ("home", "brought", "kept", "owed"),
    [
        ("lost", False, True, 1),
        ("lost", False, False, 0),
        ("other", False, False, 1),
        ("other", True, True, 1),
        ("other", True, False, 0),
    ],
)
def test_a_lost_broker_takes_only_what_it_alone_had_stored(
    home: str, brought: bool, kept: bool, owed: int
) -> None:
    """Also what its publisher has sent to its home before, and then brought here."""
    book = Book()
    checker = ExactlyOnceCheck(book.ledger)
    book.subscribe("s")
    book.publish("1", home=home)
    book.ledger.broker_lost("lost", set(), is_kept_elsewhere=lambda _: kept, had=lambda _: brought)
    checker.finish(book.now_ns)
    assert checker.owed == owed
    assert len(checker.violations) == owed
    assert book.ledger.excused == 1 - owed


def test_the_clients_of_a_lost_broker_are_owed_nothing_until_they_attach_again() -> None:
    book = Book()
    checker = ExactlyOnceCheck(book.ledger)
    book.subscribe("s")
    book.publish("1")
    book.ledger.broker_lost("lost", {"@s"}, is_kept_elsewhere=lambda _: True)
    book.publish("2")
    book.ledger.registered("s of @s", book.now_ns)
    book.publish("3")
    checker.finish(book.now_ns)
    assert ["/p 3" in violation.what for violation in checker.violations] == [True]


def test_what_is_another_tenants_is_seen() -> None:
    book = Book()
    checker = SelectionCheck(book.ledger, settings(), lambda _: ())
    book.subscribe("s")
    book.publish("1", tenant="t")
    # It asks for nothing of anybody else, and to itself it seems that nobody published this.
    assert book.ledger.published[ItemId("t", "/p", "1")].owed == set()
    book.deliver("s", "1")
    checker.finish(book.now_ns)
    (violation,) = checker.violations
    assert "nobody made the publication" in violation.what


def test_another_event_of_the_same_source_and_id_is_seen() -> None:
    book = Book()
    checker = SelectionCheck(book.ledger, settings(), lambda _: ())
    book.subscribe("s")
    book.publish("1")
    event = book.ledger.published[ItemId("", "/p", "1")].publication
    for subject in (None, "another"):
        attributes = dict(event.attributes) | ({} if subject is None else {"type": "u"})
        book.deliver("s", "1", event=Publication(attributes, None))
    (violation,) = checker.violations
    assert "attributes that its publisher did not give it" in violation.what


def test_what_a_filter_does_not_ask_for_is_seen() -> None:
    book = Book()
    checker = SelectionCheck(book.ledger, settings(), lambda _: ())
    book.subscribe("s")
    book.publish("1", kind="other")
    book.deliver("s", "1")
    (violation,) = checker.violations
    assert "which its filter does not ask for" in violation.what


def test_what_nobody_published_or_subscribed_to_is_seen() -> None:
    book = Book()
    checker = SelectionCheck(book.ledger, settings(), lambda _: ())
    book.subscribe("s")
    book.deliver("s", "1")
    book.publish("2")
    book.deliver("stranger", "2")
    checker.finish(book.now_ns)
    assert ["publication" in v.what for v in checker.violations] == [True, False]
    assert ["nobody made" in v.what for v in checker.violations] == [True, True]


def test_a_refusal_of_what_is_right_is_seen() -> None:
    book = Book()
    checker = SelectionCheck(book.ledger, settings(), lambda _: ())
    book.ledger.refusals.append((3, "@s was refused s: no"))
    checker.finish(book.now_ns)
    assert [violation.at_ns for violation in checker.violations] == [3]


@pytest.mark.parametrize(
    ("accept", "media_type", "failing", "right"),
    [
        (None, "a/a", (), True),
        (None, "b/b", (), False),
        (["b/b", "c/c;q=0.5"], "b/b", (), True),
        (["b/b", "c/c;q=0.5"], "c/c", (), False),
        (["b/b", "c/c;q=0.5"], "c/c", ("b/b",), True),
        (["b/b", "c/c;q=0.5"], "b/b", ("b/b",), True),
        (["b/b"], None, ("b/b",), True),
        (["b/b"], None, (), False),
        (["e/e"], None, (), True),
        # What can be made by way of a refused format alone cannot be made.
        (["d/d", "c/c;q=0.5"], "c/c", ("b/b",), True),
        (["d/d"], None, ("b/b",), True),
        (["d/d", "c/c;q=0.5"], "c/c", (), False),
    ],
)
def test_a_format_must_be_the_first_that_can_be_made(
    accept: list[str] | None, media_type: str | None, failing: tuple[str, ...], right: bool
) -> None:
    book = Book()
    checker = SelectionCheck(book.ledger, settings(), lambda _: failing)
    book.subscribe("s", accept=accept)
    book.publish("1")
    book.deliver("s", "1", media_type)
    assert (checker.violations == []) == right


def test_events_of_one_session_and_cell_must_keep_their_order() -> None:
    book = Book()
    checker = OrderCheck(book.ledger)
    book.subscribe("s")
    for identifier in ("1", "2", "3"):
        book.publish(identifier)
    book.deliver("s", "1")
    book.deliver("s", "3")
    assert checker.violations == []
    book.deliver("s", "2")
    (violation,) = checker.violations
    assert "number 2 of its session, after number 3" in violation.what


def test_what_a_session_publishes_under_two_sources_is_in_order_too() -> None:
    book = Book()
    checker = OrderCheck(book.ledger)
    book.subscribe("s")
    for number, source in enumerate(("/p", "/q", "/p")):
        event = {"specversion": "1.0", "id": str(number), "source": source, "type": "t"}
        book.ledger.sent(Publication.parse(event), 1, "h", number, session="one")
    deliver = partial(book.ledger.delivered, "s of @s", media_type="a/a", now_ns=9)
    for source, name in (("/p", "0"), ("/p", "2")):
        deliver(ItemId("", source, name))
    assert checker.violations == []
    deliver(ItemId("", "/q", "1"))
    assert len(checker.violations) == 1


def test_what_two_clients_publish_has_no_place_in_the_order() -> None:
    book = Book()
    checker = OrderCheck(book.ledger)
    book.subscribe("s")
    book.ledger.has_twin(ItemId("", "/p", "2"))
    for identifier in ("1", "2", "3"):
        book.publish(identifier)
    for identifier in ("3", "2"):
        book.deliver("s", identifier)
    assert checker.violations == []
    book.deliver("s", "1")
    assert len(checker.violations) == 1


@pytest.mark.parametrize(
    ("home", "at_hand", "late"),
    [("lost", False, True), ("lost", True, False), ("other", False, False)],
)
def test_what_only_brokers_that_are_down_have_of_a_lost_one_has_no_place_in_the_order(
    home: str, at_hand: bool, late: bool
) -> None:
    book = Book()
    checker = OrderCheck(book.ledger)
    book.subscribe("s")
    book.publish("1", home=home)
    book.ledger.out_of_reach("lost", is_at_hand=lambda _: at_hand, had=lambda _: False)
    book.publish("2")
    book.deliver("s", "2")
    book.deliver("s", "1")
    assert (checker.violations == []) == late


def test_events_of_different_cells_may_overtake_each_other() -> None:
    book = Book()
    checker = OrderCheck(book.ledger)
    book.subscribe("s", kind="t")
    book.subscribe("r", kind="u")
    book.publish("1", kind="t")
    book.publish("2", kind="u")
    book.deliver("r", "2")
    book.deliver("s", "1")
    assert checker.violations == []


def test_after_its_end_a_subscription_gets_nothing_new() -> None:
    book = Book()
    checker = EndsCheck(book.ledger)
    book.subscribe("s")
    book.publish("before")
    book.ledger.ended("s of @s", book.now_ns)
    book.publish("after")
    book.deliver("s", "before")
    assert checker.violations == []
    book.deliver("s", "after")
    (violation,) = checker.violations
    assert "/p after" in violation.what


def _given(deciders: tuple[Settings, ...], _: PublishedEvent) -> tuple[Settings, ...]:
    return deciders


def test_the_graph_of_a_root_that_has_planned_it_says_which_format_is_right() -> None:
    """Brokers that are ahead of others have another graph; the first wish needs it."""
    older = Settings(graph=GRAPH.replace('"b/b"', '"x/x"'))
    for deciders, right in (((settings(),), {"b/b"}), ((older,), {"c/c"}), ((), {"b/b"})):
        for media_type in ("b/b", "c/c", None):
            book = Book()
            checker = SelectionCheck(
                book.ledger, settings(), lambda _: (), partial(_given, deciders)
            )
            book.subscribe("s", accept=["b/b", "c/c;q=0.5"])
            book.publish("1")
            book.deliver("s", "1", media_type)
            assert bool(checker.violations) is (media_type not in right)
