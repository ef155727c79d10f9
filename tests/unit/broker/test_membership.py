"""Brokers know who is there, and agree on it again after whatever happens to them."""

from __future__ import annotations

import random

import pytest
from tests.broker_overlays import BRISK, MS, SECOND, Overlay, hops_max
from tests.reference import prefix_routing as reference

from distributary.broker.core import Part
from distributary.broker.host import Leave, Neighbour, Surroundings, Turn
from distributary.broker.membership.roster import (
    Gossip,
    Join,
    Members,
    MembersChanged,
    MemberStatus,
    News,
    Ping,
    Pong,
)
from distributary.errors import PeerMisbehaved
from distributary.topology import root_among


def assert_agreement(overlay: Overlay, members: list[str]) -> None:
    """Every broker knows all members, and every key has one root, reached in few hops."""
    members = sorted(members)
    for identity in members:
        assert overlay.membership(identity).alive() == tuple(members), identity
    rng = random.Random(5)
    bound = hops_max(members)
    for _ in range(200):
        key = "".join(rng.choice("0123456789abcdef") for _ in range(4))
        root = root_among(members, key)
        for identity in members:
            assert overlay.membership(identity).root_of(key) == root
            path = overlay.walk(identity, key)
            assert path[-1] == root
            assert len(path) - 1 <= bound


def test_brokers_that_start_together_agree_from_the_start() -> None:
    overlay = Overlay(24)
    assert_agreement(overlay, list(overlay.members))
    overlay.run_s(10)
    assert_agreement(overlay, list(overlay.members))


def test_a_broker_alone_is_the_root_of_everything() -> None:
    overlay = Overlay(1)
    (identity,) = overlay.members
    overlay.run_s(3)
    membership = overlay.membership(identity)
    assert membership.alive() == (identity,)
    assert membership.next_hop("0000") is None
    assert membership.root_of("0000") == identity
    assert membership.line_of("0000", 3) == (identity,)


def test_brokers_that_join_are_known_to_all() -> None:
    overlay = Overlay(16, spare=8)
    for identity in overlay.spare:
        overlay.join(identity, contact=overlay.members[3])
    overlay.run_s(3)
    assert_agreement(overlay, overlay.up())
    assert len(overlay.up()) == 24


def test_a_broker_joins_although_its_contact_is_not_there() -> None:
    overlay = Overlay(16, spare=1)
    overlay.world.crash(overlay.members[3])
    overlay.join(overlay.spare[0], contact=overlay.members[3])
    overlay.run_s(12)
    assert_agreement(overlay, overlay.up())


def test_a_broker_that_leaves_is_forgotten_at_once() -> None:
    overlay = Overlay(16)
    leaver = overlay.members[5]
    overlay.run_s(1)
    overlay.world.tell(leaver, Leave(), sender="!")
    overlay.run_s(0.1)
    rest = [identity for identity in overlay.members if identity != leaver]
    assert_agreement(overlay, rest)
    membership = overlay.membership(leaver)
    assert membership.leaving
    assert membership.alive() == tuple(rest)
    assert overlay.membership(rest[0]).status(leaver) is MemberStatus.LEFT
    overlay.run_s(10)
    assert_agreement(overlay, rest)


def test_a_broker_that_left_finds_the_root_of_every_key_elsewhere() -> None:
    overlay = Overlay(16)
    leaver = overlay.members[5]
    overlay.world.tell(leaver, Leave(), sender="!")
    overlay.run_s(1)
    rest = [identity for identity in overlay.members if identity != leaver]
    for key in (leaver, "0000", "ffff"):
        assert overlay.walk(leaver, key)[-1] == root_among(rest, key)


def test_who_has_left_before_a_broker_starts_is_gone_for_that_one_too() -> None:
    """It knows nobody when it starts, and may take an item for the home that has left.

    Once it was not told, and waited for that home for ever.
    """
    overlay = Overlay(5)
    leaver, contact = overlay.members[:2]
    overlay.run_s(1)
    overlay.world.tell(leaver, Leave(), sender="!")
    overlay.run_s(1)
    overlay.join("abcd", contact)
    core = overlay.broker("abcd").core
    told: list[str] = []
    tell = core.members_changed

    def noted(change: MembersChanged, turn: Turn) -> None:
        told.extend(change.gone)
        tell(change, turn)

    core.members_changed = noted  # type: ignore[method-assign]
    overlay.run_s(5)
    assert overlay.membership("abcd").is_gone(leaver)
    assert told == [leaver]


def test_a_broker_that_left_can_come_back() -> None:
    overlay = Overlay(16)
    leaver = overlay.members[5]
    overlay.world.tell(leaver, Leave(), sender="!")
    overlay.run_s(2)
    overlay.world.crash(leaver)
    overlay.run_s(2)
    overlay.restart(leaver)
    overlay.run_s(5)
    assert_agreement(overlay, list(overlay.members))


def test_a_broker_that_left_can_come_back_with_an_empty_disk() -> None:
    overlay = Overlay(16)
    leaver = overlay.members[5]
    overlay.world.tell(leaver, Leave(), sender="!")
    overlay.run_s(2)
    overlay.join(leaver, contact=overlay.members[0])
    overlay.run_s(5)
    assert_agreement(overlay, list(overlay.members))


def test_brokers_that_crash_are_left_out_and_those_that_return_are_taken_in() -> None:
    overlay = Overlay(24)
    overlay.run_s(1)
    victims = overlay.members[4:8]
    for identity in victims:
        overlay.world.crash(identity)
    overlay.run_s(8)
    assert_agreement(overlay, overlay.up())
    assert overlay.membership(overlay.up()[0]).status(victims[0]) is MemberStatus.DOWN
    for identity in victims:
        overlay.restart(identity)
    overlay.run_s(3)
    assert_agreement(overlay, list(overlay.members))


def suspected(overlay: Overlay, victim: str) -> str:
    """Crash a broker; return the first other one that suspects it, as soon as it does."""
    overlay.run_s(1)
    overlay.world.crash(victim)
    while True:
        overlay.run_s(0.01)
        for identity in overlay.up():
            if overlay.membership(identity).status(victim) is MemberStatus.SUSPECT:
                return identity


def test_a_suspect_has_the_time_that_is_set_and_no_more() -> None:
    """It is asked a last time before that is over: whoever waits for it waits no longer."""
    overlay = Overlay(8)
    victim = overlay.members[4]
    first = overlay.membership(suspected(overlay, victim))
    overlay.run_s(BRISK.membership.suspicion_s - 0.05)
    assert first.status(victim) is MemberStatus.SUSPECT
    overlay.run_s(0.1)
    assert first.status(victim) is MemberStatus.DOWN


@pytest.mark.parametrize("seed", range(20))
def test_a_suspicion_leaves_nobody_out(seed: int) -> None:
    """Each believes by its own clock that a broker is down, from when it has heard of it."""
    overlay = Overlay(8, seed=seed)
    victim = overlay.members[4]
    suspected(overlay, victim)
    overlay.run_s(3 * BRISK.membership.gossip_s + 0.1)
    assert {overlay.membership(one).status(victim) for one in overlay.up()} == {
        MemberStatus.SUSPECT
    }


def test_a_broker_that_does_not_return_is_lost() -> None:
    overlay = Overlay(12)
    victim = overlay.members[4]
    overlay.world.crash(victim)
    overlay.run_s(40)
    for identity in overlay.up():
        assert overlay.membership(identity).status(victim) is MemberStatus.LOST
    overlay.run_s(100)
    for identity in overlay.up():
        assert overlay.membership(identity).status(victim) is MemberStatus.UNKNOWN
    overlay.restart(victim)
    overlay.run_s(5)
    assert_agreement(overlay, list(overlay.members))


@pytest.mark.parametrize("apart_s", [6, 45])
def test_two_halves_find_each_other_again(apart_s: int) -> None:
    """Whether the others are down meanwhile, or even lost."""
    overlay = Overlay(24)
    overlay.network.apart = frozenset(overlay.members[::3])
    overlay.run_s(apart_s)
    for identity in overlay.members:
        half = overlay.network.apart
        expected = [other for other in overlay.members if (other in half) == (identity in half)]
        assert overlay.membership(identity).alive() == tuple(expected)
    overlay.network.apart = frozenset()
    overlay.run_s(10)
    assert_agreement(overlay, list(overlay.members))


@pytest.mark.parametrize("seed", range(3))
def test_brokers_agree_after_anything_once_the_network_is_quiet(seed: int) -> None:
    overlay = Overlay(20, spare=4, seed=seed)
    rng = random.Random(seed)
    overlay.network.loss = 0.2
    overlay.network.repeats = 0.1
    overlay.network.spread_ns = 50 * MS
    contact = overlay.members[0]
    for identity in overlay.spare:
        overlay.join(identity, contact=contact)
        overlay.run_s(1)
    left = []
    for turn in range(12):
        candidates = [identity for identity in overlay.up() if identity not in left]
        victim = rng.choice([identity for identity in candidates if identity != contact])
        if turn % 4 == 3:
            overlay.world.tell(victim, Leave(), sender="!")
            left.append(victim)
        else:
            overlay.world.crash(victim)
            if turn % 2 == 0:
                overlay.run_s(rng.random() * 5)
                overlay.restart(victim)
        overlay.run_s(rng.random() * 2)
    overlay.network.loss = 0.0
    overlay.run_s(25)
    assert_agreement(overlay, [identity for identity in overlay.up() if identity not in left])


def test_clocks_that_differ_do_no_harm() -> None:
    """Those of some are set forward, and those of others back, while they run."""
    overlay = Overlay(16)
    overlay.run_s(1)
    for place, identity in enumerate(overlay.members):
        overlay.world.nodes[identity].skew_ns = (place - 8) * SECOND // 8
    victim = overlay.members[2]
    overlay.run_s(5)
    assert_agreement(overlay, list(overlay.members))
    overlay.world.crash(victim)
    overlay.run_s(8)
    assert_agreement(overlay, overlay.up())


def test_a_lossy_network_hardly_ever_makes_brokers_seem_down() -> None:
    overlay = Overlay(16, parts={"changes": Changes})
    overlay.network.loss = 0.2
    overlay.run_s(30)
    down = sum(
        len(change.down) for identity in overlay.members for change in heard(overlay, identity)
    )
    # Six hundred pings by each of sixteen brokers, of which nine in a hundred fail twice.
    assert down <= 30
    overlay.network.loss = 0.0
    overlay.run_s(10)
    assert_agreement(overlay, list(overlay.members))


class Changes(Part):
    """Notes what it is told about members."""

    name = "changes"

    def start(self, turn: Turn) -> None:
        self.heard: list[MembersChanged] = []

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        self.heard.append(change)


def heard(overlay: Overlay, identity: str) -> list[MembersChanged]:
    broker = overlay.world.nodes[identity].broker
    assert broker is not None
    part = broker.core.parts["changes"]
    assert isinstance(part, Changes)
    return part.heard


def test_parts_hear_who_came_went_quiet_and_is_gone() -> None:
    overlay = Overlay(8, spare=1, parts={"changes": Changes})
    first, victim, leaver = overlay.members[:3]
    newcomer = overlay.spare[0]
    overlay.join(newcomer, contact=first)
    overlay.run_s(2)
    overlay.world.crash(victim)
    overlay.run_s(8)
    overlay.restart(victim)
    overlay.run_s(3)
    overlay.world.tell(leaver, Leave(), sender="!")
    overlay.run_s(1)
    assert heard(overlay, first) == [
        MembersChanged(came=(newcomer,)),
        MembersChanged(down=(victim,)),
        MembersChanged(came=(victim,)),
        MembersChanged(gone=(leaver,)),
    ]
    assert heard(overlay, leaver)[-1] == MembersChanged(gone=(leaver,))
    assert heard(overlay, newcomer)[0] == MembersChanged(came=overlay.members)


def test_a_restart_too_short_to_be_noticed_is_told_all_the_same() -> None:
    overlay = Overlay(8, parts={"changes": Changes})
    overlay.run_s(1)
    first, victim = overlay.members[:2]
    overlay.world.crash(victim)
    overlay.restart(victim)
    overlay.run_s(1)
    assert heard(overlay, first) == [MembersChanged(came=(victim,))]
    assert heard(overlay, victim) == []


def test_neighbours_are_the_nearest_by_delay() -> None:
    overlay = Overlay(32)
    overlay.run_s(2)
    for identity in overlay.members:
        delays = {
            other: float(overlay.network.delay_ns(identity, other))
            for other in overlay.members
            if other != identity
        }
        table = reference.table(identity, {identity: 0.0, **delays})
        for key in (*overlay.members, "0000", "4321", "abcd", "ffff"):
            expected = reference.next_hop(identity, table, key)
            assert overlay.membership(identity).next_hop(key) == expected


def test_delays_that_nobody_told_are_measured() -> None:
    overlay = Overlay(1, spare=7)
    (first,) = overlay.members
    nothing = Surroundings((), contact=first)
    for identity in overlay.spare:
        overlay.world.add(identity, nothing)
    overlay.run_s(15)
    for identity in overlay.up():
        for other in overlay.up():
            if other != identity:
                measured = overlay.membership(identity).delay_ns_to(other)
                assert measured == pytest.approx(overlay.network.delay_ns(identity, other))
    delays = {other: float(overlay.network.delay_ns(first, other)) for other in overlay.spare}
    table = reference.table(first, {first: 0.0, **delays})
    for key in overlay.spare:
        assert overlay.membership(first).next_hop(key) == reference.next_hop(first, table, key)


def test_costs_are_those_that_the_host_tells() -> None:
    overlay = Overlay(3)
    first, second, third = overlay.members
    near = Surroundings((Neighbour(second, 5 * MS, 2.5), Neighbour(third, MS)), node_cost=3.0)
    overlay.world.tell(first, near, sender="!")
    membership = overlay.membership(first)
    assert membership.link_cost_to(second) == 2.5
    assert membership.link_cost_to(third) == 1.0
    assert membership.node_cost == 3.0
    assert membership.delay_ns_to(second) == 5 * MS


def test_the_next_in_line_is_the_root_when_those_before_it_are_not_there() -> None:
    overlay = Overlay(16)
    overlay.run_s(1)
    key = "7777"
    line = overlay.membership(overlay.members[0]).line_of(key, 3)
    assert len(line) == 3
    for expected in line:
        assert overlay.membership(overlay.up()[0]).root_of(key) == expected
        overlay.world.crash(expected)
        overlay.run_s(8)


def test_a_quiet_overlay_sends_two_messages_per_broker_and_period() -> None:
    overlay = Overlay(16)
    overlay.run_s(1)
    before = overlay.network.sent
    overlay.run_s(20)
    assert overlay.network.sent - before <= 2 * 16 * 40


@pytest.mark.parametrize(
    ("message", "sender"),
    [
        (Leave(), "0000"),
        (Surroundings(()), "@somebody"),
        (Ping(1, 0, 0), "@somebody"),
        (Join(0), "not a broker"),
        (Gossip((News("0123", 0, MemberStatus.LOST),)), "0123"),
        (Gossip((News("0123", 0, MemberStatus.UNKNOWN),)), "0123"),
        (Gossip((News("0123", -1, MemberStatus.ALIVE),)), "0123"),
        (Gossip((News("0123", 1 << 63, MemberStatus.ALIVE),)), "0123"),
        (Gossip((News("01234", 0, MemberStatus.ALIVE),)), "0123"),
        (Gossip((News("012G", 0, MemberStatus.ALIVE),)), "0123"),
    ],
)
def test_impossible_messages_are_refused(message: object, sender: str) -> None:
    overlay = Overlay(4)
    broker = overlay.world.nodes[overlay.members[0]].broker
    assert broker is not None
    before = broker.core.membership.alive()
    with pytest.raises(PeerMisbehaved):
        broker.receive(message, sender=sender, now_ns=0)
    assert broker.core.membership.alive() == before


def test_a_broker_that_is_told_nonsense_while_it_joins_joins_all_the_same() -> None:
    overlay = Overlay(4, spare=1)
    (new,) = overlay.spare
    overlay.network.apart = frozenset({new})
    overlay.join(new, contact=overlay.members[0])
    nonsense = Members((News("zz", 0, MemberStatus.ALIVE),))
    with pytest.raises(PeerMisbehaved):
        overlay.broker(new).receive(nonsense, sender=overlay.members[1], now_ns=0)
    overlay.network.apart = frozenset()
    overlay.run_s(5)
    assert_agreement(overlay, [*overlay.members, new])


@pytest.mark.parametrize(
    ("news", "incarnation"), [((News("zz", 0, MemberStatus.ALIVE),), 0), ((), -1)]
)
def test_an_answer_with_nonsense_is_no_answer(news: tuple[News, ...], incarnation: int) -> None:
    overlay = Overlay(2)
    one, other = overlay.members
    overlay.world.crash(other)
    detector = overlay.membership(one).detector
    turn = Turn(overlay.world.now_ns)
    detector.probe(other, turn)
    (number,) = detector._questions
    pong = Pong(number, incarnation, 0, news)
    with pytest.raises(PeerMisbehaved):
        overlay.broker(one).receive(pong, sender=other, now_ns=0)
    assert number in detector._questions
