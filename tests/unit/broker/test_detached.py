"""A broker whose host has no connection declares nobody down, and goes on when it has one."""

from __future__ import annotations

import random

from tests.broker_overlays import BRISK, SECOND, Overlay
from tests.letters_part import Letters, Post

from distributary.broker.addresses import HOST
from distributary.broker.broker import Broker
from distributary.broker.host import Detached, Reattached, Surroundings
from distributary.broker.membership.roster import MemberStatus


def cut(overlay: Overlay, *, told: bool) -> None:
    overlay.network.loss = 1.0
    for identity in overlay.up() if told else ():
        overlay.world.tell(identity, Detached(), sender=HOST)


def mend(overlay: Overlay) -> None:
    overlay.network.loss = 0.0
    for identity in overlay.up():
        overlay.world.tell(identity, Reattached(), sender=HOST)


def test_an_outage_that_nobody_tells_of_makes_everybody_take_all_others_for_down() -> None:
    overlay = Overlay(6)
    cut(overlay, told=False)
    overlay.run_s(15)
    for identity in overlay.members:
        assert overlay.membership(identity).alive() == (identity,)


def test_nobody_is_declared_down_or_lost_while_hosts_are_detached() -> None:
    overlay = Overlay(6, parts={"letters": Letters})
    overlay.run_s(3)
    cut(overlay, told=True)
    one, other = overlay.members[:2]
    overlay.world.tell(one, Post(other, ("hello",)), sender=HOST)
    overlay.run_s(60)
    for identity in overlay.members:
        assert overlay.membership(identity).alive() == overlay.members
    mend(overlay)
    overlay.run_s(10)
    for identity in overlay.members:
        assert overlay.membership(identity).alive() == overlay.members
    letters = overlay.broker(other).core.parts["letters"]
    assert isinstance(letters, Letters)
    assert letters.received == {(one, "hello"): 1}


def test_suspects_have_the_full_time_again_after_an_outage() -> None:
    overlay = Overlay(4)
    overlay.run_s(3)
    overlay.network.loss = 1.0
    while not any(
        overlay.membership(one).status(other) is MemberStatus.SUSPECT
        for one in overlay.members
        for other in overlay.members
    ):
        overlay.run_s(0.1)
    cut(overlay, told=True)
    overlay.run_s(100)
    mend(overlay)
    overlay.run_s(10)
    for identity in overlay.members:
        assert overlay.membership(identity).alive() == overlay.members


def test_who_went_down_in_an_outage_is_found_out_after_it() -> None:
    overlay = Overlay(5)
    overlay.run_s(3)
    cut(overlay, told=True)
    gone = overlay.members[2]
    overlay.world.crash(gone)
    overlay.run_s(30)
    mend(overlay)
    overlay.run_s(10)
    for identity in overlay.up():
        assert gone not in overlay.membership(identity).alive()
    overlay.run_s(BRISK.membership.lost_s)
    for identity in overlay.up():
        assert overlay.membership(identity).status(gone) is MemberStatus.LOST


def test_a_host_may_have_no_connection_from_the_start() -> None:
    broker = Broker("1234", BRISK, rng=random.Random(1))
    told = (Surroundings((), ("1234", "abcd")), Detached())
    for message in told:
        broker.receive(message, sender=HOST, now_ns=0)
    broker.start(now_ns=0)
    while (at_ns := broker.wake_at_ns()) is not None and at_ns < 100 * SECOND:
        broker.wake(now_ns=at_ns)
    assert broker.core.membership.is_alive("abcd")
