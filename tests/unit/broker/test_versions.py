"""The version before is understood and spoken, until everybody has the present one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.broker_overlays import Overlay
from tests.letters_part import Letters, Post
from tests.wire_strategies import import_all_kinds, instances

from distributary.broker.encoding import (
    OLDEST,
    VERSION,
    decode,
    encodable,
    encode,
    is_spoken,
    kinds,
    since,
)
from distributary.broker.links.messages import FRAGMENT_BYTES
from distributary.broker.membership.roster import Gossip, Join, MemberStatus, News, Ping
from distributary.broker.telemetry import Misbehaved
from distributary.errors import PeerMisbehaved
from distributary.simulator.older_versions import read_by

import_all_kinds()
_KINDS = [cls for number, cls in kinds().items() if number < 60_000]


@dataclass(frozen=True, slots=True)
class Grown:
    text: str
    later: int = since(VERSION, 7)


@encodable(60_200)
@dataclass(frozen=True, slots=True)
class Growing:
    grown: tuple[Grown, ...]
    flag: bool = since(VERSION, True)


@encodable(60_201, since=VERSION)
@dataclass(frozen=True, slots=True)
class Unheard:
    text: str


def test_fields_that_came_since_are_left_out_and_have_their_defaults() -> None:
    message = Growing((Grown("a", 1), Grown("b", 2)), flag=False)
    assert decode(encode(message)) == message
    older = encode(message, OLDEST)
    assert older[0] == OLDEST
    assert decode(older) == Growing((Grown("a", 1), Grown("b", 2)))
    assert read_by(OLDEST, older) == Growing((Grown("a"), Grown("b")))
    assert read_by(VERSION, older) == decode(older)


def test_a_name_inside_of_a_field_that_nobody_knows_is_ignored() -> None:
    known = encode(Growing((Grown("a"),)))
    assert decode(known.replace(b"later", b"other")) == Growing((Grown("a"),))


def test_the_version_before_has_no_fields_that_came_since() -> None:
    data = bytes([OLDEST]) + encode(Growing(()))[1:]
    with pytest.raises(PeerMisbehaved, match="broken Growing"):
        decode(data)


def test_a_kind_that_came_since_is_unknown_to_the_version_before() -> None:
    with pytest.raises(AssertionError, match="came with version"):
        encode(Unheard("a"), OLDEST)
    with pytest.raises(PeerMisbehaved, match="unknown kind"):
        decode(bytes([OLDEST]) + encode(Unheard("a"))[1:])


def test_a_broker_of_the_version_before_refuses_the_present_one() -> None:
    with pytest.raises(PeerMisbehaved, match=f"version {VERSION}"):
        decode(encode(Join(0)), newest=OLDEST)


def test_no_version_but_these_is_spoken() -> None:
    with pytest.raises(AssertionError, match="any more"):
        encode(Join(0), OLDEST - 1)


@given(st.data())
def test_whatever_the_version_before_can_say_comes_back(data: st.DataObject) -> None:
    """What is said again in the version before is the same, for every kind that it has."""
    message = data.draw(instances(data.draw(st.sampled_from(_KINDS))))
    assume(is_spoken(message, OLDEST))
    once = encode(message, OLDEST)
    assert encode(decode(once), OLDEST) == once


def overlay_of(versions: list[int], parts: dict[str, type[Letters]] | None = None) -> Overlay:
    """An overlay whose brokers are of these versions, in the order of their identifiers."""
    overlay = Overlay(0, spare=len(versions), parts=parts)
    overlay.members = tuple(sorted(overlay.spare))
    for identity, version in zip(overlay.members, versions, strict=True):
        told = overlay.surroundings(identity, members=overlay.members)
        if min(versions) < VERSION:
            told = type(told)(told.neighbours, told.members, version=OLDEST)
        overlay.world.add(identity, told, version=version)
    return overlay


def spoken(overlay: Overlay) -> list[int]:
    return [overlay.broker(identity).version for identity in overlay.members]


def complaints(overlay: Overlay) -> list[object]:
    found: list[object] = []
    overlay.world.watchers.append(
        lambda broker, record, now_ns: (
            found.append(record) if isinstance(record, Misbehaved) else None
        )
    )
    return found


def test_brokers_speak_the_lowest_version_until_all_are_upgraded() -> None:
    overlay = overlay_of([OLDEST, OLDEST, VERSION, OLDEST])
    found = complaints(overlay)
    overlay.run_s(5)
    assert spoken(overlay) == [OLDEST] * 4
    for identity in overlay.members:
        if overlay.world.nodes[identity].version == OLDEST:
            overlay.run_s(5)
            overlay.world.crash(identity)
            overlay.world.nodes[identity].upgrade()
            overlay.restart(identity)
            overlay.run_s(1)
    overlay.run_s(10)
    assert spoken(overlay) == [VERSION] * 4
    assert found == []
    for identity in overlay.members:
        assert overlay.membership(identity).alive() == overlay.members
        assert overlay.membership(identity).gossip.incarnation % (1 << 20) < 8, "no denials"


def test_brokers_of_a_new_overlay_speak_the_present_version_at_once() -> None:
    assert spoken(overlay_of([VERSION] * 3)) == [VERSION] * 3


@pytest.mark.parametrize("version", [OLDEST, VERSION])
def test_a_newcomer_finds_out_what_others_speak(version: int) -> None:
    overlay = Overlay(0, spare=3)
    first, second, newcomer = sorted(overlay.spare)
    members = (first, second)
    for identity in members:
        told = overlay.surroundings(identity, members=members)
        told = type(told)(told.neighbours, told.members, version=version)
        overlay.world.add(identity, told, version=version)
    overlay.run_s(2)
    overlay.members = (first, second, newcomer)
    overlay.join(newcomer, first)
    overlay.run_s(10)
    assert spoken(overlay) == [version] * 3
    for identity in overlay.members:
        assert overlay.membership(identity).alive() == overlay.members


def test_what_is_large_goes_whole_to_brokers_that_know_no_parts() -> None:
    text = "x" * (3 * FRAGMENT_BYTES)
    for versions in ([OLDEST, VERSION], [VERSION, VERSION]):
        overlay = overlay_of(versions, {"letters": Letters})
        one, other = overlay.members
        for sender, to in ((one, other), (other, one)):
            overlay.world.tell(sender, Post(to, (text,)), sender="!")
        overlay.run_s(3)
        for sender, to in ((one, other), (other, one)):
            letters = overlay.broker(to).core.parts["letters"]
            assert isinstance(letters, Letters)
            assert letters.received == {(sender, text): 1}


def test_who_has_heard_of_a_version_from_the_one_before_does_not_take_it_back() -> None:
    overlay = overlay_of([VERSION, VERSION])
    one, other = overlay.members
    overlay.world.tell(one, Gossip((News(other, 5, MemberStatus.ALIVE),)), sender=other)
    assert overlay.broker(one).version == VERSION
    overlay.world.tell(one, Ping(1, 6, 0), sender=other)
    assert overlay.broker(one).version == VERSION
