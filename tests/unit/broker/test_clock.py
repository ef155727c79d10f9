"""A broker's time never goes back, whatever the wall clock does, and comes back to it."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from tests.broker_overlays import BRISK, MS, SECOND, Overlay

from distributary.broker.addresses import HOST
from distributary.broker.broker import Broker
from distributary.broker.encoding import encode
from distributary.broker.host import Effect, Persist, Send, Surroundings, Turn
from distributary.broker.membership.roster import Ping
from distributary.broker.timers import Clock, ClockRecord

TIMES = st.lists(st.integers(-(10**6), 10**6), min_size=1)


@given(TIMES)
def test_the_time_never_goes_back(steps: list[int]) -> None:
    clock = Clock(SECOND)
    wall_ns, before_ns = 10**9, 0
    for step in steps:
        wall_ns += step
        own_ns = clock.read(wall_ns)
        assert own_ns >= max(before_ns, wall_ns)
        before_ns = own_ns


@given(st.integers(0, 10**9), st.lists(st.integers(0, 10**6)), st.integers(0, 10**9))
def test_the_time_comes_back_to_the_wall_clock_at_half_its_pace(
    behind_ns: int, steps: list[int], floor_ns: int
) -> None:
    """However often it is looked at; and never stands still."""
    clock = Clock(SECOND)
    clock.restore(ClockRecord(floor_ns + behind_ns))
    wall_ns = floor_ns
    clock.read(wall_ns)
    for step in steps:
        wall_ns += step
        own_ns = clock.read(wall_ns)
        passed_ns = wall_ns - floor_ns
        assert own_ns == max(wall_ns, floor_ns + behind_ns + passed_ns // 2)
    end_ns = floor_ns + 2 * behind_ns + sum(steps)
    assert clock.read(end_ns) == end_ns


@given(TIMES, st.integers(0, 10**7))
def test_a_wake_up_comes_when_it_is_time_and_not_long_before(steps: list[int], later: int) -> None:
    clock = Clock(SECOND)
    wall_ns = 10**9
    for step in steps:
        wall_ns += step
        own_ns = clock.read(wall_ns)
    at_ns = clock.wall_ns_at(own_ns + later)
    assert at_ns >= wall_ns - 1, "half of a nanosecond is none"
    assert clock.read(max(at_ns, wall_ns)) == own_ns + later


def test_the_time_is_kept_now_and_then_with_what_is_kept_anyhow() -> None:
    clock = Clock(SECOND)
    kept = []
    for now_ns in range(0, 10 * SECOND, 100 * MS):
        turn = Turn(clock.read(now_ns))
        if now_ns >= SECOND:
            turn.persist("a/b", ClockRecord(0))
        clock.keep(turn)
        kept += [e for e in turn.effects if isinstance(e, Persist) and e.key != "a/b"]
    assert [persist.record for persist in kept] == [ClockRecord(k * SECOND) for k in range(1, 10)]


def test_a_broker_that_is_restored_goes_on_from_where_it_was() -> None:
    """The host's clock is an hour behind by then. Pings go on all the same."""
    journal: dict[str, object] = {}

    def do(effects: list[Effect]) -> list[Effect]:
        journal.update({e.key: e.record for e in effects if isinstance(e, Persist)})
        return effects

    def begin(now_ns: int) -> Broker:
        records = {key: encode(record) for key, record in journal.items()}
        broker = Broker.restore("1234", BRISK, records, rng=random.Random(1))
        told = Surroundings((), ("1234", "abcd"))
        do(broker.receive(told, sender=HOST, now_ns=now_ns))
        do(broker.start(now_ns=now_ns))
        return broker

    hour_ns = 3600 * SECOND
    begin(hour_ns)
    restored = begin(0)
    assert restored.core.clock.read(0) == hour_ns
    pings = 0
    while (at_ns := restored.wake_at_ns()) is not None and at_ns < 10 * SECOND:
        effects = restored.wake(now_ns=at_ns)
        pings += sum(isinstance(e, Send) and isinstance(e.message, Ping) for e in effects)
    assert pings > 5, "at half the pace"


def test_a_clock_that_is_set_back_stops_nobody() -> None:
    overlay = Overlay(4)
    overlay.run_s(5)
    for node in overlay.world.nodes.values():
        node.skew_ns = -3 * SECOND
    overlay.run_s(20)
    for identity in overlay.members:
        assert overlay.membership(identity).alive() == overlay.members
        clock = overlay.broker(identity).core.clock
        assert clock.read(overlay.world.now_ns - 3 * SECOND) == overlay.world.now_ns - 3 * SECOND
