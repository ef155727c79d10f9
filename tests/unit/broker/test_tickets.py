"""What a broker asks of its host is answered in the end, and by no answer to something else."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.broker_overlays import SECOND
from tests.content_worlds import JPEG, PDF, SETTINGS, TEXT

from distributary.broker.addresses import HOST
from distributary.broker.blob import Blob
from distributary.broker.broker import Broker
from distributary.broker.dissemination.messages import ConversionLost, Item, Portion
from distributary.broker.effects import (
    ConversionRefused,
    Convert,
    Converted,
    Effect,
    Erase,
    Persist,
)
from distributary.broker.encoding import decode, encode
from distributary.broker.host import ContentHeld, Surroundings
from distributary.broker.membership.messages import Gossip, News, Status
from distributary.broker.plan_part import NOTHING_BEFORE, PlanNode, PlanPart
from distributary.broker.settings import ContentSettings, Settings
from distributary.errors import PeerMisbehaved
from distributary.simulator.conversions import Converter

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


class Hosted:
    """One broker, its journal, and what it has asked for."""

    def __init__(self, settings: Settings = QUICK) -> None:
        self.settings = settings
        self.journal: dict[str, object] = {}
        self.effects: list[Effect] = []
        self.now_ns = 0
        self.start()

    def start(self) -> None:
        journal = {key: encode(record) for key, record in self.journal.items()}
        self.broker = Broker.restore(OWN, self.settings, journal, rng=random.Random(1))
        self.do(self.broker.receive(Surroundings((), (OWN, ROOT)), sender=HOST, now_ns=self.now_ns))
        held = tuple((Blob.imagined(PDF, 1, name).digest, 1_000_000) for name in "0123")
        self.do(self.broker.receive(ContentHeld(held), sender=HOST, now_ns=self.now_ns))
        self.do(self.broker.start(now_ns=self.now_ns))

    def do(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                self.journal[effect.key] = effect.record
            elif isinstance(effect, Erase):
                self.journal.pop(effect.key, None)
        self.effects += effects

    def carry_out(self, given: Portion) -> None:
        """Give it a portion whose content its host has already."""
        self.do(self.broker.receive(given, sender=ROOT, now_ns=self.now_ns))

    def answer(self, answer: object) -> None:
        self.do(self.broker.receive(answer, sender=HOST, now_ns=self.now_ns))

    def pass_s(self, seconds: float) -> None:
        end_ns = self.now_ns + round(seconds * SECOND)
        while (at_ns := self.broker.wake_at_ns()) is not None and at_ns <= end_ns:
            self.now_ns = max(self.now_ns, at_ns)
            self.do(self.broker.wake(now_ns=self.now_ns))
        self.now_ns = end_ns

    def asked(self) -> list[Convert]:
        found = [effect for effect in self.effects if isinstance(effect, Convert)]
        self.effects.clear()
        return found

    def lost(self) -> list[ConversionLost]:
        kept = [r for key, r in self.journal.items() if key.startswith(f"links/out/{ROOT}/")]
        found = [decode(record.message) for record in kept]  # type: ignore[attr-defined]
        return [message for message in found if isinstance(message, ConversionLost)]


def test_no_ticket_of_one_life_is_that_of_another() -> None:
    host = Hosted()
    tickets: list[int] = []
    for life in range(4):
        host.carry_out(portion(name=f"{life}"))
        tickets += [convert.ticket for convert in host.asked()]
        host.start()
    assert len(tickets) > 4
    assert len(set(tickets)) == len(tickets)


def test_an_answer_to_a_life_before_is_ignored() -> None:
    host = Hosted()
    host.carry_out(portion())
    (before,) = host.asked()
    host.start()
    (again,) = host.asked()
    host.answer(Converted(before.ticket, Blob.imagined(JPEG, 10, "another")))
    assert any(key.startswith("relays/job/") for key in host.journal), "still to be made"
    host.answer(Converted(again.ticket, Blob.imagined(TEXT, 10, "t")))
    assert not any(key.startswith("relays/job/") for key in host.journal)


def test_what_is_not_answered_is_asked_again_by_the_same_ticket_ever_more_seldom() -> None:
    host = Hosted()
    host.carry_out(portion())
    (first,) = host.asked()
    host.pass_s(ASK_S - 0.1)
    assert host.asked() == []
    host.pass_s(0.2)
    assert host.asked() == [first]
    host.pass_s(ASK_S)
    assert host.asked() == []
    host.pass_s(ASK_S)
    assert host.asked() == [first]
    host.pass_s(1000)
    assert len(host.asked()) <= 1000 / (8 * ASK_S) + 2
    host.answer(Converted(first.ticket, Blob.imagined(TEXT, 10, "t")))
    host.pass_s(1000)
    assert host.asked() == []
    host.answer(Converted(first.ticket, Blob.imagined(TEXT, 10, "t")))
    assert host.lost() == []


def test_a_conversion_that_fails_for_now_is_tried_again_and_given_up_in_the_end() -> None:
    host = Hosted()
    host.carry_out(portion())
    for _ in range(2):
        (convert,) = host.asked()
        host.answer(ConversionRefused(convert.ticket, "killed", lasting=False))
        assert host.lost() == []
        assert host.asked() == []
        host.pass_s(3)
    (convert,) = host.asked()
    host.answer(ConversionRefused(convert.ticket, "killed", lasting=False))
    assert [lost.lost for lost in host.lost()] == [((TEXT, "killed"),)]
    host.pass_s(100)
    assert host.asked() == []


def test_a_conversion_that_fails_for_now_and_then_does_not_is_as_any_other() -> None:
    host = Hosted()
    host.carry_out(portion())
    (convert,) = host.asked()
    host.answer(ConversionRefused(convert.ticket, "busy", lasting=False))
    host.pass_s(3)
    (again,) = host.asked()
    host.answer(Converted(again.ticket, Blob.imagined(TEXT, 10, "t")))
    assert host.lost() == []
    assert not any(key.startswith("relays/job/") for key in host.journal)


def test_a_conversion_that_fails_for_good_is_not_tried_again() -> None:
    host = Hosted()
    host.carry_out(portion())
    (convert,) = host.asked()
    host.answer(ConversionRefused(convert.ticket, "broken"))
    assert [lost.lost for lost in host.lost()] == [((TEXT, "broken"),)]
    host.pass_s(100)
    assert host.asked() == []


def test_one_lost_answer_does_not_block_what_others_ask_for() -> None:
    """The content is the same, so that the second waits for the conversion of the first."""
    host = Hosted()
    host.carry_out(portion())
    (convert,) = host.asked()
    host.carry_out(replace(portion(), attempt=2))
    assert host.asked() == []
    host.pass_s(ASK_S + 1)
    (again,) = host.asked()
    assert again == convert
    host.answer(Converted(again.ticket, Blob.imagined(TEXT, 10, "t")))
    assert not any(key.startswith("relays/job/") for key in host.journal)


def test_a_life_that_a_peer_makes_up_does_not_make_tickets_too_long() -> None:
    """Numbers of eight bytes are the longest that can be sent."""
    host = Hosted()
    for power in range(20, 51):
        news = Gossip((News(OWN, 1 << power, Status.ALIVE),))
        host.do(host.broker.receive(news, sender=ROOT, now_ns=0))
    news = Gossip((News(OWN, 1 << 51, Status.ALIVE),))
    with pytest.raises(PeerMisbehaved, match="impossible news"):
        host.broker.receive(news, sender=ROOT, now_ns=0)
    host.start()
    host.carry_out(portion(name="2"))
    for convert in host.asked():
        encode(Converted(convert.ticket, convert.blob))


def test_a_converter_does_not_begin_again_what_it_is_asked_for_again() -> None:
    converter = Converter()
    assert converter.ask(7, 10.0, now_ns=0) == 10 * SECOND
    assert converter.ask(7, 10.0, now_ns=5 * SECOND) is None
    assert converter.ask(8, 1.0, now_ns=5 * SECOND) == 11 * SECOND
    assert converter.is_done(7, 10 * SECOND)
    assert not converter.is_done(7, 10 * SECOND), "answered once"
    assert converter.ask(7, 10.0, now_ns=12 * SECOND) == 22 * SECOND, "made again"


def test_a_converter_that_is_restarted_has_forgotten_everything() -> None:
    converter = Converter()
    converter.ask(7, 10.0, now_ns=0)
    converter.ask(8, 10.0, now_ns=0)
    assert converter.restart() == (7, 8)
    assert not converter.is_done(7, 10 * SECOND)
    assert converter.ask(8, 10.0, now_ns=SECOND) == 11 * SECOND


def test_a_converter_whose_broker_stops_finishes_what_it_has_begun() -> None:
    converter = Converter()
    converter.ask(7, 10.0, now_ns=0)
    converter.ask(8, 10.0, now_ns=0)
    converter.abandon(now_ns=SECOND)
    assert converter.is_done(7, 10 * SECOND)
    assert not converter.is_done(8, 20 * SECOND)
    assert converter.ask(9, 1.0, now_ns=2 * SECOND) == 11 * SECOND
