"""Covering reduces what is forwarded, and never what is delivered."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.broker_overlays import MS, Overlay
from tests.broker_subscribers import (
    Subscriber,
    cell_of,
    core_of,
    event,
    held_cells,
    holders,
    key_of,
    matching,
    settings_with,
)
from tests.filter_pairs import Document, any_filter, derived_pair, events

from distributary.broker.encoding import journal_key
from distributary.broker.subscriptions.subscription import (
    TRANSITIONS,
    SubscriptionRecord,
    SubscriptionState,
    own_id,
    scoped_id,
)
from distributary.content import ContentSpace, Publication
from distributary.content.dimensions import TextBuckets
from distributary.simulator.node import Torn
from distributary.topology import root_among

ALARM = {"exact": {"type": "alarm"}}
ANY = {"sql": "EXISTS type"}
SPACE = ContentSpace((TextBuckets("kind", 6),))


def registered(overlay: Overlay, home: str, name: str) -> bool:
    return any(held_cells(node, home, name) for node in overlay.world.nodes.values())


def test_what_is_covered_is_confirmed_without_a_registration() -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client, other = Subscriber(overlay, "@a", home), Subscriber(overlay, "@b", home)
    client.subscribe("wide", ANY)
    overlay.run_s(1)
    sent = dict(overlay.world.message_counts)
    other.subscribe("narrow", ALARM)
    overlay.run_s(0.1)
    assert "narrow" in other.confirmed
    assert not registered(overlay, home, "narrow")
    kinds = {k for k, n in overlay.world.message_counts.items() if n != sent.get(k, 0)}
    assert not kinds & {"Register", "Copies"}
    local = core_of(overlay, home).subscriptions.get(scoped_id("@b", "narrow"))
    assert local is not None
    assert local.coverer == scoped_id("@a", "wide")


@pytest.mark.parametrize(
    "fields",
    [
        {"profile": {"accept": ["text/plain"]}},
        {"tolerance": {"value": "/v", "divergence": "absolute", "amount": 1.0}},
    ],
)
def test_what_another_device_wants_is_not_covered(fields: dict[str, Any]) -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("wide", ANY)
    overlay.run_s(1)
    client.subscribe("narrow", ALARM, **fields)
    overlay.run_s(1)
    assert registered(overlay, home, "narrow")


def test_an_unconfirmed_subscription_covers_nothing() -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("wide", ANY)
    client.subscribe("narrow", ALARM)
    overlay.run_s(2)
    assert registered(overlay, home, "narrow")


@pytest.mark.parametrize(
    ("seed", "crash_s"),
    [(1, None), (2, None), (3, None), (4, None), (1, 0.0), (2, 0.02), (3, 0.05)],
)
def test_the_covered_are_registered_before_the_coverer_is_withdrawn(
    seed: int, crash_s: float | None
) -> None:
    """At no moment is an alarm unknown to its root, also when the home crashes midway."""
    overlay = Overlay(7, seed=seed)
    overlay.network.spread_ns = 200 * MS
    alarm = event("alarm")
    cell = cell_of(overlay, alarm)
    root = root_among(sorted(overlay.members), key_of(overlay, cell))
    home = next(one for one in overlay.members if one != root)
    client = Subscriber(overlay, "@a", home)
    client.subscribe("wide", ANY)
    overlay.run_s(3)
    client.subscribe("narrow", ALARM)
    overlay.run_s(1)
    assert "narrow" in client.confirmed
    client.unsubscribe("wide")
    overlay.run_s(0.03)
    if crash_s is not None:
        overlay.run_s(crash_s)
        overlay.world.crash(home)
        overlay.restart(home)
    names: list[tuple[str, ...]] = []
    for _ in range(500):
        overlay.run_s(0.02)
        found = core_of(overlay, root).rendezvous.matches(cell, alarm)
        names.append(tuple(own_id(registration.id) for registration in found))
    assert all(names)
    assert names[-1] == ("narrow",)
    assert not registered(overlay, home, "wide")


@pytest.mark.parametrize("durable", [False, True])
def test_a_home_torn_down_while_it_lets_the_covered_go_goes_on_with_it(durable: bool) -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("wide", ANY)
    overlay.run_s(1)
    kinds = ("a", "b", "c", "d")
    for kind in kinds:
        client.subscribe(kind, {"exact": {"type": kind}})
    overlay.run_s(1)
    assert not any(registered(overlay, home, kind) for kind in kinds)
    node = overlay.world.nodes[home]
    covered: list[int] = []

    def torn_down() -> None:
        keys = [f"subscriptions/s/{journal_key(scoped_id('@a', kind))}" for kind in kinds]
        records = [node.records()[key] for key in keys]
        states = [cast("SubscriptionRecord", record).state for record in records]
        covered.append(states.count(SubscriptionState.COVERED.value))
        overlay.world.at(overlay.world.now_ns, overlay.restart, home)

    def torn(_: object) -> Torn:
        node.at_commit = None
        return Torn(durable, 0, torn_down)

    client.unsubscribe("wide")
    node.at_commit = torn
    overlay.run_s(10)
    # All of them had been told to register themselves when the home went down, or none.
    assert covered == [0 if durable else 4]
    assert all(registered(overlay, home, kind) for kind in kinds)
    assert not registered(overlay, home, "wide")


def test_a_subscription_that_loses_its_coverer_may_have_another() -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("one", {"prefix": {"type": "al"}})
    client.subscribe("two", {"suffix": {"type": "rm"}})
    overlay.run_s(2)
    client.subscribe("narrow", ALARM)
    overlay.run_s(1)
    local = core_of(overlay, home).subscriptions.get(scoped_id("@a", "narrow"))
    assert local is not None
    client.unsubscribe("one")
    overlay.run_s(2)
    assert local.coverer == scoped_id("@a", "two")
    assert not registered(overlay, home, "narrow")
    client.unsubscribe("two")
    overlay.run_s(2)
    assert local.coverer is None
    assert local.state is SubscriptionState.REGISTERED
    assert len(holders(overlay, home, "narrow", cell_of(overlay, event("alarm")))) == 2


def test_an_id_whose_old_registration_is_still_needed_waits() -> None:
    overlay = Overlay(6)
    home = overlay.members[0]
    client = Subscriber(overlay, "@a", home)
    client.subscribe("wide", ANY)
    overlay.run_s(1)
    client.subscribe("narrow", ALARM)
    overlay.run_s(1)
    client.unsubscribe("wide")
    client.subscribe("wide", {"exact": {"type": "other"}})
    overlay.run_s(5)
    assert sorted(client.confirmed) == ["narrow", "wide"]
    alarm = event("alarm")
    core = core_of(overlay, home)
    assert [local.subscription.id for local in matching(core.subscriptions, alarm)] == ["narrow"]
    assert [local.subscription.id for local in matching(core.subscriptions, event("other"))] == [
        "wide"
    ]


def test_every_state_can_be_reached_and_left_for_good() -> None:
    reached = {TRANSITIONS.initial} | {following for _, _, following in TRANSITIONS}
    assert reached == set(SubscriptionState)
    assert {state for state, _, _ in TRANSITIONS} == set(SubscriptionState) - {
        SubscriptionState.ENDED
    }


class Twin:
    """The same subscriptions with covering or without."""

    def __init__(self, *, covering: bool) -> None:
        plain = settings_with(covering=covering)
        self.overlay = Overlay(4, settings=replace(plain, space=SPACE))
        self.home = self.overlay.members[1]
        self.client = Subscriber(self.overlay, "@a", self.home)

    def matched(self, sample: list[Publication]) -> list[list[str]]:
        subscriptions = core_of(self.overlay, self.home).subscriptions
        return [[local.subscription.id for local in matching(subscriptions, one)] for one in sample]

    def assert_sent(self, sample: list[Publication]) -> None:
        """Roots send the home whatever one of its confirmed subscriptions matches."""
        subscriptions = core_of(self.overlay, self.home).subscriptions
        for one in sample:
            cell = SPACE.cell_of(one)
            root = root_among(sorted(self.overlay.members), key_of(self.overlay, cell))
            sent = {r.id for r in core_of(self.overlay, root).rendezvous.matches(cell, one)}
            for local in matching(subscriptions, one):
                assert local.id in sent or local.coverer in sent

    def registration_count(self) -> int:
        return sum(
            key.startswith("rendezvous/r/")
            for node in self.overlay.world.nodes.values()
            for key in node.journal
        )


def related_filters(random: Random, count: int) -> tuple[list[list[Document]], tuple[str, ...]]:
    wide, narrow, keys = derived_pair(random)
    found = [wide, narrow]
    while len(found) < count:
        found.append(random.choice(([any_filter(random, keys, 1)], [*wide, *narrow], narrow[:1])))
    random.shuffle(found)
    return found, keys


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False))
def test_what_matches_is_the_same_with_covering_and_without(random: Random) -> None:
    """And whatever matches at home is sent there, at every moment, while some come and go."""
    filters, keys = related_filters(random, 5)
    sample = cast("list[Publication]", random.sample(events(keys), 40))
    twins = [Twin(covering=True), Twin(covering=False)]
    there: set[int] = set()
    for _ in range(8):
        number = random.randrange(len(filters))
        pause_s = random.choice((0.02, 0.1, 1.0))
        for twin in twins:
            if number in there:
                twin.client.unsubscribe(f"s{number}")
            else:
                twin.client.subscribe(f"s{number}", *filters[number])
            for _ in range(4):
                twin.overlay.run_s(pause_s / 4)
                twin.assert_sent(sample)
        there ^= {number}
    for twin in twins:
        twin.overlay.run_s(8)
        twin.assert_sent(sample)
    assert sorted(twins[0].client.confirmed) == sorted(f"s{number}" for number in there)
    assert twins[0].matched(sample) == twins[1].matched(sample)
    assert twins[0].registration_count() <= twins[1].registration_count()
