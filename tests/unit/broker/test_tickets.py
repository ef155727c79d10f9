"""What a broker asks of its host is answered in the end, and by no answer to something else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.broker_overlays import SECOND
from tests.content_worlds import JPEG, PDF, SETTINGS, TEXT
from tests.hosted_brokers import Hosted

from distributary.broker.addresses import Blob
from distributary.broker.core import Tickets
from distributary.broker.dissemination.messages import ConversionLost, Item, Portion
from distributary.broker.encoding import decode, encode
from distributary.broker.host import (
    ConversionRefused,
    Convert,
    Converted,
    Fetch,
    Surroundings,
    Turn,
)
from distributary.broker.links.link import Kept
from distributary.broker.membership.roster import Gossip, MemberStatus, News
from distributary.broker.plan_part import NOTHING_BEFORE, PlanNode, PlanPart
from distributary.broker.settings import ContentSettings
from distributary.broker.timers import Timers
from distributary.errors import PeerMisbehaved
from distributary.simulator.conversions import ConversionQueue

OWN = "1234"
ROOT = "abcd"
ASK_S = 5.0
QUICK = replace(SETTINGS, content=ContentSettings(ask_s=ASK_S, conversion_tries=3))


def portion(target: int = 2, name: str = "1") -> Portion:
    formats = (PDF, JPEG, TEXT)
    made, grants = ((0, target),), (("s", target),)
    nodes = (PlanNode(OWN, 0, 1.0, 1.0, (0,), made, NOTHING_BEFORE, grants),)
    blob = Blob.imagined(PDF, 1_000_000, name)
    event = f'{{"specversion":"1.0","source":"/s","type":"map","id":"{name}"}}'
    item = Item("/s", name, 0, 1, 1, ROOT, 0, event, PDF, 1_000_000, inline=False)
    plan = PlanPart(formats, (1.0, 0.5, 0.1), ((0, target, 1.0),), nodes)
    return Portion(item, ROOT, 1, PDF, plan, (blob,))


def hosted() -> Hosted:
    """A broker whose host has the content of the first portions already."""
    host = Hosted(OWN, QUICK, Surroundings((), (OWN, ROOT)))
    host.store |= {Blob.imagined(PDF, 1, name).digest: 1_000_000 for name in "0123"}
    host.start()
    return host


def lost(host: Hosted) -> list[ConversionLost]:
    """What it has to tell the root that nobody can make."""
    sent = [decode(kept.message) for kept in host.records(Kept)]
    return [message for message in sent if isinstance(message, ConversionLost)]


def test_no_ticket_of_one_life_is_that_of_another() -> None:
    host = hosted()
    tickets: list[int] = []
    for life in range(4):
        host.tell(portion(name=f"{life}"), ROOT)
        tickets += [convert.ticket for convert in host.asked(Convert)]
        host.start()
    assert len(tickets) > 4
    assert len(set(tickets)) == len(tickets)


def test_an_answer_to_a_life_before_is_ignored() -> None:
    host = hosted()
    host.tell(portion(), ROOT)
    (before,) = host.asked(Convert)
    host.start()
    (again,) = host.asked(Convert)
    host.tell(Converted(before.ticket, Blob.imagined(JPEG, 10, "another")))
    assert any(key.startswith("relays/job/") for key in host.journal), "still to be made"
    host.tell(Converted(again.ticket, Blob.imagined(TEXT, 10, "t")))
    assert not any(key.startswith("relays/job/") for key in host.journal)


def test_what_is_not_answered_is_asked_again_by_the_same_ticket_ever_more_seldom() -> None:
    host = hosted()
    host.tell(portion(), ROOT)
    (first,) = host.asked(Convert)
    host.run_s(ASK_S - 0.1)
    assert host.asked(Convert) == []
    host.run_s(0.2)
    assert host.asked(Convert) == [first]
    host.run_s(ASK_S)
    assert host.asked(Convert) == []
    host.run_s(ASK_S)
    assert host.asked(Convert) == [first]
    host.run_s(1000)
    assert len(host.asked(Convert)) <= 1000 / (8 * ASK_S) + 2
    host.tell(Converted(first.ticket, Blob.imagined(TEXT, 10, "t")))
    host.run_s(1000)
    assert host.asked(Convert) == []
    host.tell(Converted(first.ticket, Blob.imagined(TEXT, 10, "t")))
    assert lost(host) == []


def test_a_broker_is_woken_once_for_all_that_was_answered_meanwhile() -> None:
    """Nearly everything is answered in time: to look after each would be as many turns again."""
    timers = Timers()
    tickets = Tickets(timers, QUICK.content)
    blob = Blob.imagined(PDF, 1, "0")
    for number in range(20):
        turn = Turn(number * SECOND // 10)
        ticket = tickets.ask(turn, lambda ticket: Fetch(ticket, blob, ROOT), lambda _: None, ())
        tickets.answer(ticket, turn=turn)
    woken = 0
    while (at_ns := timers.next_ns()) is not None:
        turn = Turn(at_ns)
        timers.run(turn)
        woken += 1
        assert turn.effects == []
    assert woken == 1


def test_a_conversion_that_fails_for_now_is_tried_again_and_given_up_in_the_end() -> None:
    host = hosted()
    host.tell(portion(), ROOT)
    for _ in range(2):
        (convert,) = host.asked(Convert)
        host.tell(ConversionRefused(convert.ticket, "killed", lasting=False))
        assert lost(host) == []
        assert host.asked(Convert) == []
        host.run_s(3)
    (convert,) = host.asked(Convert)
    host.tell(ConversionRefused(convert.ticket, "killed", lasting=False))
    assert [lost.lost for lost in lost(host)] == [((TEXT, "killed"),)]
    host.run_s(100)
    assert host.asked(Convert) == []


def test_a_conversion_that_fails_for_now_and_then_does_not_is_as_any_other() -> None:
    host = hosted()
    host.tell(portion(), ROOT)
    (convert,) = host.asked(Convert)
    host.tell(ConversionRefused(convert.ticket, "busy", lasting=False))
    host.run_s(3)
    (again,) = host.asked(Convert)
    host.tell(Converted(again.ticket, Blob.imagined(TEXT, 10, "t")))
    assert lost(host) == []
    assert not any(key.startswith("relays/job/") for key in host.journal)


def test_a_conversion_that_fails_for_good_is_not_tried_again() -> None:
    host = hosted()
    host.tell(portion(), ROOT)
    (convert,) = host.asked(Convert)
    host.tell(ConversionRefused(convert.ticket, "broken"))
    assert [lost.lost for lost in lost(host)] == [((TEXT, "broken"),)]
    host.run_s(100)
    assert host.asked(Convert) == []


def test_one_lost_answer_does_not_block_what_others_ask_for() -> None:
    """The content is the same, so that the second waits for the conversion of the first."""
    host = hosted()
    host.tell(portion(), ROOT)
    (convert,) = host.asked(Convert)
    host.tell(replace(portion(), attempt=2), ROOT)
    assert host.asked(Convert) == []
    host.run_s(ASK_S + 1)
    (again,) = host.asked(Convert)
    assert again == convert
    host.tell(Converted(again.ticket, Blob.imagined(TEXT, 10, "t")))
    assert not any(key.startswith("relays/job/") for key in host.journal)


def test_a_life_that_a_peer_makes_up_does_not_make_tickets_too_long() -> None:
    """Numbers of eight bytes are the longest that can be sent."""
    host = hosted()
    for power in range(20, 51):
        news = Gossip((News(OWN, 1 << power, MemberStatus.ALIVE),))
        host.tell(news, ROOT)
    news = Gossip((News(OWN, 1 << 51, MemberStatus.ALIVE),))
    with pytest.raises(PeerMisbehaved, match="impossible news"):
        host.tell(news, ROOT)
    host.start()
    host.tell(portion(name="2"), ROOT)
    for convert in host.asked(Convert):
        encode(Converted(convert.ticket, convert.blob))


def test_a_converter_does_not_begin_again_what_it_is_asked_for_again() -> None:
    converter = ConversionQueue()
    assert converter.ask(7, 10.0, now_ns=0) == 10 * SECOND
    assert converter.ask(7, 10.0, now_ns=5 * SECOND) is None
    assert converter.ask(8, 1.0, now_ns=5 * SECOND) == 11 * SECOND
    assert converter.is_done(7, 10 * SECOND)
    assert not converter.is_done(7, 10 * SECOND), "answered once"
    assert converter.ask(7, 10.0, now_ns=12 * SECOND) == 22 * SECOND, "made again"


def test_a_converter_that_is_restarted_has_forgotten_everything() -> None:
    converter = ConversionQueue()
    converter.ask(7, 10.0, now_ns=0)
    converter.ask(8, 10.0, now_ns=0)
    assert converter.restart() == (7, 8)
    assert not converter.is_done(7, 10 * SECOND)
    assert converter.ask(8, 10.0, now_ns=SECOND) == 11 * SECOND


def test_a_converter_whose_broker_stops_finishes_what_it_has_begun() -> None:
    converter = ConversionQueue()
    converter.ask(7, 10.0, now_ns=0)
    converter.ask(8, 10.0, now_ns=0)
    converter.abandon(now_ns=SECOND)
    assert converter.is_done(7, 10 * SECOND)
    assert not converter.is_done(8, 20 * SECOND)
    assert converter.ask(9, 1.0, now_ns=2 * SECOND) == 11 * SECOND
