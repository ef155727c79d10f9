"""What a client has under way is taken in its order, once, and every answer says to what."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.content_worlds import SETTINGS, ContentWorld
from tests.publishing_homes import Home as AnyHome
from tests.publishing_homes import event, numbered

from distributary.broker.client import Accepted, Busy, Publish, Refused
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.encoding import decode, encode
from distributary.broker.host import Turn
from distributary.broker.publishing.intake import SESSION_CHARACTERS_MAX, SessionRecord
from distributary.broker.publishing.publications import KeptRecord, Remembered
from distributary.broker.settings import PublishingSettings, Settings, ns
from distributary.content import Publication
from distributary.errors import PeerMisbehaved
from distributary.simulator.workload.publisher import Publisher

MAPS = ({"exact": {"type": "map"}},)
BAD: dict[str, Any] = {"time": "yesterday"}


def limited(**changes: Any) -> Settings:
    return replace(Settings(), publishing=replace(PublishingSettings(), **changes))


class Home(AnyHome):
    """One of which it does not matter here how long it has clients wait."""

    def tell(self, message: object, sender: str = "@c") -> list[Any]:
        answers = super().tell(message, sender)
        return [replace(one, wait_ns=ns(1.0)) if isinstance(one, Busy) else one for one in answers]


def accepted(number: int, session: str = "a") -> Accepted:
    return Accepted("/p", f"{session}{number}", session, number)


def busy(number: int) -> Busy:
    return Busy(ns(1.0), "", "", "a", number)


def numbers(answers: list[Any], kind: type[Refused]) -> list[int]:
    return [answer.number for answer in answers if isinstance(answer, kind)]


@pytest.mark.parametrize("pipeline", [1, 4, 16])
def test_the_order_of_what_is_under_way_is_kept_when_the_home_is_killed(pipeline: int) -> None:
    """Without numbers what is sent again comes behind what was sent after it."""
    world = ContentWorld(6)
    home = world.members[1]
    world.subscribe("s", world.members[0], MAPS)
    world.run_s(3)
    publisher = Publisher(world.world, "p", home, "/maps", world.ledger, pipeline=pipeline)
    world.publishers["/maps"] = publisher
    for number in range(6):
        if number == 2:
            world.world.crash(home)
        if number == 4:
            world.overlay.restart(home)
        world.publish(f"map {number}", home, media_type=None)
        world.run_s(0.01)
    world.run_s(30)
    assert [name for name, _ in world.got("s")] == [f"map {number}" for number in range(6)]
    assert world.violations() == []


class Client:
    """A client that has some publications under way, over a network that does what it likes."""

    def __init__(self, home: Home, count: int, rng: random.Random) -> None:
        self.home, self.count, self.rng = home, count, rng
        self.answers: dict[int, Any] = {}
        self.flying: list[Publish] = []

    @property
    def first(self) -> int:
        return next(n for n in range(1, self.count + 2) if n not in self.answers)

    def send(self, window: int) -> None:
        for number in range(self.first, min(self.first + window, self.count + 1)):
            if number not in self.answers:
                attributes: dict[str, Any] = BAD if number % 5 == 0 else {}
                self.flying.append(numbered(number, first=self.first, **attributes))

    def arrive(self, *, lost: bool, again: bool, answered: bool) -> None:
        message = self.flying.pop(self.rng.randrange(len(self.flying)))
        if again:
            self.flying.append(message)
        if lost:
            return
        for answer in self.home.tell(message):
            if answered and not isinstance(answer, Busy):
                known = self.answers.setdefault(answer.number, answer)
                assert type(known) is type(answer)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(0, 10**9), st.sampled_from([1, 4, 64]))
def test_numbers_are_taken_in_order_whatever_is_lost_repeated_overtaken_or_killed(
    window: int, seed: int, early: int
) -> None:
    """The property: everything is answered, and what was not refused is taken once, in order."""
    count, rng = 12, random.Random(seed)
    home = Home(limited(early_max=early))
    client = Client(home, count, rng)
    for step in range(4000):
        if client.first > count:
            break
        if not client.flying:
            client.send(window)
        mild = step > 600
        client.arrive(
            lost=rng.random() < 0.2 and not mild,
            again=rng.random() < 0.2 and not mild,
            answered=rng.random() < 0.8 or mild,
        )
        if rng.random() < 0.05 and not mild:
            home.start()
    refused = [number for number in range(1, count + 1) if number % 5 == 0]
    assert numbers(list(client.answers.values()), Refused) == refused
    assert home.taken() == [number for number in range(1, count + 1) if number not in refused]


def test_what_comes_early_waits_for_its_turn() -> None:
    home = Home()
    assert home.tell(numbered(3)) == []
    assert home.tell(numbered(3)) == []
    assert home.tell(numbered(2)) == []
    assert home.part._intake.sessions.early_bytes > 0
    assert home.tell(numbered(1)) == [accepted(1), accepted(2), accepted(3)]
    assert home.part._intake.sessions.early_bytes == 0
    assert home.taken() == [1, 2, 3]


def test_after_busy_everything_above_is_refused_until_it_comes_again() -> None:
    home = Home(limited(early_max=2))
    assert home.tell(numbered(3)) == []
    assert home.tell(numbered(4)) == [busy(4)], "only two wait"
    assert home.tell(numbered(5)) == [busy(5)]
    assert home.tell(numbered(1)) == [accepted(1)]
    assert home.tell(numbered(5)) == [busy(5)], "number 4 has not come again"
    assert home.tell(numbered(2)) == [accepted(2), accepted(3)]
    assert home.tell(numbered(5)) == [busy(5)]
    assert home.tell(numbered(4)) == [accepted(4)]
    assert home.tell(numbered(5)) == [accepted(5)]
    assert home.taken() == [1, 2, 3, 4, 5]


def test_a_home_that_keeps_too_much_is_busy_and_goes_on_where_it_was() -> None:
    changes = limited(items_max=2, busy_s=1.0)
    home = Home(replace(changes, content=replace(changes.content, retention_s=30.0)))
    for number in (1, 2):
        home.tell(numbered(number))
    assert home.tell(numbered(4)) == [busy(4)]
    assert home.tell(numbered(3)) == [replace(busy(3))]
    assert home.tell(numbered(5)) == [busy(5)]
    assert home.tell(Publish(event("x"))) == [Busy(ns(1.0), "/p", "x")]
    assert home.tell(numbered(1)) == [accepted(1)], "what is known is no burden"
    home.run_s(31)
    assert home.tell(numbered(4)) == [busy(4)], "number 3 has not come again"
    assert home.tell(numbered(3)) == [accepted(3)]
    assert home.tell(numbered(4)) == [accepted(4)]
    assert home.taken() == [3, 4]


def test_what_waited_behind_a_publication_that_is_put_off_is_put_off_too() -> None:
    home = Home(limited(items_max=1))
    for number in (2, 3):
        assert home.tell(numbered(number)) == []
    assert home.tell(numbered(1)) == [accepted(1), busy(2), busy(3)]
    assert home.part._intake.sessions.early_bytes == 0


@pytest.mark.parametrize(
    "limits",
    [{"items_max": 1}, {"bytes_max": 50}, {"identities_max": 1}],
    ids=lambda limits: next(iter(limits)),
)
def test_items_bytes_and_identities_are_limited(limits: dict[str, int]) -> None:
    home = Home(limited(**limits))
    assert home.tell(numbered(1)) == [accepted(1)]
    assert home.tell(numbered(2)) == [busy(2)]
    home.start()
    assert home.tell(numbered(2)) == [busy(2)], "what is on the disk counts"


def test_a_refusal_uses_up_its_number_and_stays_one() -> None:
    home = Home()
    (first,) = home.tell(numbered(1, **BAD))
    assert isinstance(first, Refused)
    assert (first.what, first.source, first.id, first.session, first.number) == (
        "publication", "/p", "a1", "a", 1,
    )  # fmt: skip
    assert home.tell(numbered(2)) == [accepted(2)]
    home.start()
    assert home.tell(numbered(1, **BAD)) == [first]
    (other,) = home.tell(numbered(1))
    assert "number: 1 of the session was used before" in other.reason
    assert home.tell(numbered(3, first=3)) == [accepted(3)]
    assert home.taken() == [2, 3]


def test_a_refusal_is_known_after_a_crash() -> None:
    home = Home()
    home.tell(numbered(1, **BAD))
    home.start()
    assert isinstance(home.tell(numbered(1))[0], Refused)
    assert home.tell(numbered(2)) == [accepted(2)]


@pytest.mark.parametrize(
    ("text", "source", "identifier"),
    [
        (event("x", time="yesterday"), "/p", "x"),
        ('{"id": 1, "source": "/p"}', "/p", ""),
        ('{"id": "\\ud800", "source": "/p"}', "/p", ""),
        ("[]", "", ""),
        ("not JSON", "", ""),
    ],
)
def test_a_refusal_names_what_it_refuses_as_far_as_it_can_be_read(
    text: str, source: str, identifier: str
) -> None:
    (refused,) = Home().tell(Publish(text, None, "a", 1, 1))
    assert isinstance(refused, Refused)
    assert (refused.source, refused.id) == (source, identifier)
    assert (refused.session, refused.number) == ("a", 1)
    assert decode(encode(refused)) == refused


def test_a_publication_without_a_number_is_taken_by_itself() -> None:
    home = Home()
    home.tell(numbered(2))
    assert home.tell(Publish(event("x"))) == [Accepted("/p", "x")]
    assert home.tell(Publish(event("x"))) == [Accepted("/p", "x")]
    assert home.taken("") == [0]


def test_a_home_that_does_not_know_a_session_begins_where_the_client_is() -> None:
    home = Home()
    assert home.tell(numbered(8, first=7)) == [], "number 7 is under way"
    assert home.tell(numbered(7, first=7)) == [accepted(7), accepted(8)]
    assert home.tell(numbered(12, first=12)) == [accepted(12)], "9 to 11 were answered elsewhere"
    assert home.taken() == [7, 8, 12]


def test_what_was_answered_elsewhere_is_not_waited_for_and_not_taken_late() -> None:
    home = Home(limited(early_max=3))
    home.tell(numbered(1))
    assert home.tell(numbered(3)) == []
    assert home.tell(numbered(9)) == [busy(9)]
    assert home.tell(numbered(11, first=10)) == []
    assert home.part._intake.sessions.early_bytes > 0
    assert home.tell(numbered(10, first=10)) == [accepted(10), accepted(11)]
    assert home.part._intake.sessions.early_bytes == 0
    assert home.taken() == [1, 10, 11]


def test_sessions_and_clients_do_not_wait_for_each_other() -> None:
    home = Home()
    assert home.tell(numbered(2, session="a")) == []
    assert home.tell(numbered(1, session="b")) == [accepted(1, "b")]
    assert home.tell(numbered(1, session="a", id="d"), "@d") == [Accepted("/p", "d", "a", 1)]
    assert home.tell(numbered(1, session="a")) == [accepted(1), accepted(2)]


def test_a_client_that_has_forgotten_how_far_it_was_begins_another_session() -> None:
    """What it publishes again is known by source and id."""
    home = Home()
    for number in (1, 2, 3):
        home.tell(numbered(number))
    again = [home.tell(numbered(number, session="b", id=f"a{number + 1}")) for number in (1, 2, 3)]
    assert again == [
        [Accepted("/p", f"a{number + 1}", "b", number)] for number in (1, 2, 3)
    ]  # fmt: skip
    assert (home.taken("a"), home.taken("b")) == ([1, 2, 3], [3])
    home.start()
    assert home.tell(numbered(4, first=4, session="b")) == [accepted(4, "b")]


def test_sessions_are_few_and_are_forgotten_in_time() -> None:
    home = Home(limited(sessions_max=2, dedupe_s=100.0))
    for name in ("a", "b", "c"):
        home.tell(numbered(1, session=name, **BAD))
        home.tell(numbered(3, session=name))
    assert [record.session for record in home.records(SessionRecord)] == ["b", "c"]
    early = home.part._intake.sessions.early_bytes
    home.run_s(60)
    home.tell(numbered(2, session="b", **BAD))
    assert home.part._intake.sessions.early_bytes == early // 2
    home.run_s(60)
    assert [record.session for record in home.records(SessionRecord)] == ["b"]
    assert home.part._intake.sessions.early_bytes == 0
    home.run_s(60)
    assert home.records(SessionRecord) == []
    assert list(home.part._intake.sessions.of_client("@c")) == []


def test_a_restart_gives_clients_time_to_come_back() -> None:
    home = Home(limited(dedupe_s=100.0))
    home.tell(numbered(1, **BAD))
    home.run_s(90)
    home.start()
    home.run_s(90)
    assert len(home.records(SessionRecord)) == 1
    home.run_s(20)
    assert home.records(SessionRecord) == []


def test_a_client_that_moves_goes_on_where_it_was() -> None:
    old, new = Home(), Home()
    for number in (1, 2):
        old.tell(numbered(number))
    old.tell(numbered(3, **BAD))
    old.tell(numbered(5))
    moved = decode(encode(old.part.export_client("@c")))
    for home, turn in ((new, Turn(new.now_ns)), (old, Turn(old.now_ns))):
        if home is new:
            home.part.adopt_client(moved, "00bb", turn)
        else:
            home.part.drop_client("@c", turn)
        home.do(turn.effects)
    assert not [key for key in old.journal if key.startswith("publishing/")]
    assert old.part._intake.sessions.early_bytes == 0
    assert old.part._intake.admission.items == old.part._intake.admission.bytes == 0
    new.start()
    assert isinstance(new.tell(numbered(3, **BAD))[0], Refused)
    assert new.tell(numbered(2)) == [accepted(2)]
    assert new.tell(numbered(5, first=3)) == []
    assert new.tell(numbered(4, first=3)) == [accepted(4), accepted(5)]
    assert new.taken() == [1, 2, 4, 5]


@pytest.mark.parametrize("arriving", ["kept", "remembered"])
def test_what_a_client_brings_and_another_has_published_here_is_not_lost(arriving: str) -> None:
    """One of the two is kept and the other one not, under one key on the disk."""
    brief = limited(dedupe_s=50.0)
    brief = replace(brief, content=replace(brief.content, retention_s=20.0))
    old, new = Home(brief), Home(brief)
    first, second = (old, new) if arriving == "remembered" else (new, old)
    message = Publish(event("x"))
    first.tell(message, "@c" if first is old else "@d")
    first.run_s(21)
    second.tell(message, "@c" if second is old else "@d")
    turn = Turn(new.now_ns)
    new.part.adopt_client(old.part.export_client("@c"), "00bb", turn)
    new.do(turn.effects)
    on_disk = [record.item.id for record in new.records(KeptRecord)]
    assert on_disk == [kept.item.id for kept in new.part._kept.values()] == ["x"]
    assert new.part._remembered == {}
    new.run_s(200)
    assert not [key for key in new.journal if key.startswith("publishing/")]


def test_of_two_clients_that_share_a_source_one_can_move() -> None:
    """With one count for both, the other's numbers went with it."""
    home = Home()
    home.tell(numbered(1, id="mine"), "@c")
    home.tell(numbered(1, id="its"), "@d")
    turn = Turn(home.now_ns)
    home.part.drop_client("@c", turn)
    home.do(turn.effects)
    home.tell(numbered(2, id="its 2"), "@d")
    home.run_s(Settings().content.retention_s + 5)
    assert home.taken(client="@d") == []
    remembered = sorted(record.id for record in home.records(Remembered))
    assert remembered == ["its", "its 2"]


def test_counts_that_begin_in_the_same_instant_have_names_of_their_own() -> None:
    home = Home()
    for place in range(50):
        home.tell(numbered(1, id=str(place)), f"@c{place}")
    records = home.part._kept.values()
    assert len({kept.item.series for kept in records}) == 50
    assert {kept.item.number for kept in records} == {1}


@pytest.mark.parametrize(
    "message",
    [
        numbered(1, first=2),
        numbered(1, first=0),
        numbered(-1, first=-1),
        numbered(2**63, first=1),
        numbered(1, session="x" * (SESSION_CHARACTERS_MAX + 1)),
    ],
)
def test_numbers_that_no_session_has_are_refused(message: Publish) -> None:
    with pytest.raises(PeerMisbehaved):
        Home().tell(message)


def test_publishers_go_back_to_what_a_busy_home_has_not_taken() -> None:
    tight = replace(
        SETTINGS,
        content=replace(SETTINGS.content, retention_s=3.0),
        publishing=PublishingSettings(items_max=4, early_max=2, dedupe_s=20.0),
    )
    world = ContentWorld(4, settings=tight)
    world.subscribe("s", world.members[0], MAPS)
    world.run_s(3)
    home = world.members[1]
    world.publishers["/maps"] = Publisher(world.world, "p", home, "/maps", world.ledger, pipeline=8)
    for number in range(20):
        world.publish(f"map {number:02d}", home, media_type=None)
    world.run_s(60)
    assert world.world.message_counts["Busy"] > 8
    assert [name for name, _ in world.got("s")] == [f"map {number:02d}" for number in range(20)]
    assert world.violations() == []


def test_an_answer_to_another_session_is_not_heard() -> None:
    world = ContentWorld(2)
    device = Publisher(world.world, "p", world.members[0], "/p", world.ledger, pipeline=2)
    publication = Publication.parse(
        {"specversion": "1.0", "id": "1", "source": "/p", "type": "map"}
    )
    device.publish(publication, None)
    answer = Accepted("/p", "1", "another", 1)
    device.receive(answer, sender=world.members[0], now_ns=0)
    assert world.ledger.published[ItemId("", "/p", "1")].accepted_ns is None
