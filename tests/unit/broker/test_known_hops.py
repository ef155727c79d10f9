"""A root learns the ways of relays that have found its plan wrong, and plans right from then on."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.content_worlds import JPEG, PDF, ContentWorld

from distributary.broker.dissemination.messages import NextHops
from distributary.broker.dissemination.planner import KnownHops
from distributary.broker.membership.membership import Routes
from distributary.broker.plan_part import Route, Step
from distributary.broker.telemetry import Planned, Refined
from distributary.topology import random_identifiers

ESTIMATE: Route = (("a0", 1.0, 1.0), ("a1", 2.0, 1.5), ("bb", 3.0, 2.0))
FIRST: Step = ("a0", 1.0, 1.0)


def way(hops: KnownHops, *, away: str = "", first: Step = FIRST) -> tuple[str, ...]:
    found = hops.way(ESTIMATE, first, {"a1": 1.5}, lambda broker: broker != away)
    return tuple(broker for broker, _, _ in found)


def test_what_nobody_has_told_is_as_it_is_estimated() -> None:
    hops = KnownHops()
    assert hops.way(ESTIMATE, FIRST, {}, lambda _: True) == ESTIMATE
    assert way(hops, first=("cc", 1.0, 1.0)) == ("cc", "bb")
    assert way(hops, first=("a1", 1.0, 1.0)) == ("a1", "bb")
    assert way(hops, first=("bb", 1.0, 1.0)) == ("bb",)


def test_what_was_told_counts_for_all_homes_behind_the_same_prefix() -> None:
    hops = KnownHops()
    assert hops.learn("a0", NextHops(1.25, (("b", "b7", 4.0), ("c", "c1", 1.0))))
    found = hops.way(ESTIMATE, FIRST, {"b7": 3.0}, lambda _: True)
    assert found == (("a0", 1.0, 1.0), ("b7", 4.0, 3.0), ("bb", 3.0, 2.0))


def test_telling_the_same_again_is_nothing_new() -> None:
    hops = KnownHops()
    told = NextHops(1.0, (("b", "b7", 4.0),))
    assert hops.learn("a0", told)
    assert not hops.learn("a0", told)
    assert hops.learn("a0", NextHops(2.0, told.row))
    assert hops.learn("a0", NextHops(2.0, (("b", "b8", 4.0),)))


def test_nobody_is_passed_twice_and_nobody_who_is_away() -> None:
    hops = KnownHops()
    hops.learn("a0", NextHops(1.0, (("b", "b7", 1.0),)))
    hops.learn("b7", NextHops(1.0, (("bb", "bb", 1.0),)))
    assert way(hops) == ("a0", "b7", "bb")
    assert way(hops, away="b7") == ("a0", "a1", "bb")
    # Two that have told at different times contradict each other.
    hops.learn("b7", NextHops(1.0, (("bb", "a0", 1.0),)))
    assert way(hops) == ("a0", "b7", "bb")


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_rows_of_all_brokers_give_the_ways_on_which_they_send(seed: int) -> None:
    """The property: where everybody has told, a way is the walk over next hops."""
    rng = np.random.default_rng(seed)
    members = tuple(sorted(random_identifiers(60, rng, digits=3)))
    routes = {
        owner: Routes(owner, members, {other: int(rng.integers(9)) for other in members})
        for owner in members
    }
    hops = KnownHops()
    for owner in members:
        rows = [routes[owner].row(level) for level in range(3)]
        told = tuple((prefix, hop, 1.0) for row in rows for prefix, hop in row.items())
        hops.learn(owner, NextHops(1.0, told))
    root = members[0]
    for home in members[1:]:
        first = routes[root].next_hop(home)
        assert first is not None
        found = hops.way(((home, 1.0, 1.0),), (first, 1.0, 1.0), {}, lambda _: True)
        walk = [root, *(broker for broker, _, _ in found)]
        assert walk[-1] == home
        assert all(routes[one].next_hop(home) == other for one, other in pairwise(walk))


def test_the_next_plan_needs_no_refinement() -> None:
    world = ContentWorld(40, seed=3)
    for place, home in enumerate(world.members):
        world.subscribe(f"s{place:02d}", home, ({"exact": {"type": "map"}},), accept=[JPEG, PDF])
    world.run_s(3)
    world.publish("map 1", world.members[5])
    world.run_s(60)
    refined = len(world.reported(Refined))
    assert refined >= 1
    for number in range(2, 5):
        world.publish(f"map {number}", world.members[5])
        world.run_s(60)
    assert len(world.reported(Refined)) == refined
    assert len(world.reported(Planned)) == 4
    assert world.violations() == []
    assert world.once.made == world.once.owed == 4 * 40
