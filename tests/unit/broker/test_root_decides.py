"""The root of a cell decides who gets an item and in which format; homes do as they are told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.broker_overlays import SECOND
from tests.content_worlds import JPEG, MAP_GRAPH, PDF, SETTINGS, SPEECH, TEXT, ContentWorld

from distributary.broker.core import Handler
from distributary.broker.deliveries.finished import Arrival
from distributary.broker.dissemination.dissemination import Dissemination
from distributary.broker.dissemination.messages import Served
from distributary.broker.host import Send, Turn
from distributary.broker.plan_part import NOTHING_BEFORE, Grant
from distributary.broker.settings import Settings
from distributary.broker.subscriptions.subscription import scoped_id
from distributary.broker.telemetry import SettingsDiffer

WEBP = "image/webp"
A, B = scoped_id("@a", "a"), scoped_id("@b", "b")


def with_webp() -> Settings:
    """Settings of a newer version, whose graph has one more format."""
    graph: dict[str, Any] = json.loads(json.dumps(MAP_GRAPH))
    graph["formats"].append({"name": WEBP, "size": {"fixed": 0.0, "per_mb": 0.1}})
    cost = {"fixed": 0.0, "per_mb": 0.5}
    graph["conversions"].append({"from": PDF, "to": WEBP, "cost": cost})
    return replace(SETTINGS, graph=json.dumps(graph))


def without(*names: str) -> Settings:
    """Settings whose graph lacks some formats."""
    graph: dict[str, Any] = json.loads(json.dumps(MAP_GRAPH))
    graph["formats"] = [one for one in graph["formats"] if one["name"] not in names]
    graph["conversions"] = [
        one for one in graph["conversions"] if not {one["from"], one["to"]} & set(names)
    ]
    return replace(SETTINGS, graph=json.dumps(graph))


def places(count: int = 5) -> tuple[int, list[int]]:
    """The place of the root among the members, and those of the others."""
    world = ContentWorld(count)
    root = world.members.index(world.root_of())
    return root, [place for place in range(count) if place != root]


def delivered(world: ContentWorld, home: str, accept: list[str]) -> list[tuple[str, str | None]]:
    world.subscribe("s", home, accept=accept)
    world.run_s(4)
    world.publish("map", home)
    world.run_s(15)
    return world.got("s")


def test_a_home_with_a_newer_graph_delivers_what_the_root_has_chosen() -> None:
    """Once it chose a format that it was not sent, delivered nothing, and confirmed."""
    _, others = places()
    world = ContentWorld(5, settings_of={others[0]: with_webp()})
    got = delivered(world, world.members[others[0]], [WEBP, f"{JPEG};q=0.5"])
    assert got == [("map", JPEG)]


def test_a_home_with_an_older_graph_delivers_what_the_root_has_chosen() -> None:
    root, _ = places()
    world = ContentWorld(5, settings_of={root: with_webp()})
    home = next(m for m in world.members if m != world.members[root])
    # Whoever lacks the converter says so, and the next format is taken.
    assert delivered(world, home, [WEBP, f"{JPEG};q=0.5"]) in ([("map", WEBP)], [("map", JPEG)])


@pytest.mark.parametrize("lacking", [(TEXT,), (TEXT, SPEECH), (JPEG, TEXT, SPEECH, PDF)])
def test_relays_and_homes_need_no_graph_of_their_own(lacking: tuple[str, ...]) -> None:
    """What the root alone can convert is converted there, and passed on by all others."""
    _, others = places(8)
    content = replace(SETTINGS.content, method="all-in-root")
    settings = replace(SETTINGS, content=content)
    settings_of = {place: replace(without(*lacking), content=content) for place in others}
    world = ContentWorld(8, settings=settings, settings_of=settings_of)
    for place in others:
        world.subscribe(f"s{place}", world.members[place], accept=[SPEECH])
    world.run_s(4)
    world.publish("map", world.members[others[0]])
    world.run_s(20)
    assert [world.got(f"s{place}") for place in others] == [[("map", SPEECH)]] * len(others)
    assert world.violations() == []


def arrival_at(world: ContentWorld, home: str, *grants: Grant) -> Served:
    """What a home answers when the root sends it what was published last, for some."""
    root = world.root_of()
    dissemination = world.overlay.broker(root).core.dissemination
    item = max((task.item for task in dissemination._tasks.values()), key=lambda one: one.number)
    blobs = {PDF: next(iter(dissemination._tasks.values())).blob}
    turn = Turn(world.world.now_ns)
    deliveries = world.overlay.broker(home).core.deliveries
    deliveries.receive(Arrival(item, "root", 9, PDF, NOTHING_BEFORE, grants, blobs), turn)
    deliveries.core.links._gathering.flush("root", turn)
    (answer,) = (
        one.message
        for one in turn.effects
        if isinstance(one, Send) and isinstance(one.message, Served)
    )
    return answer


def home_with(
    subscriptions: dict[str, list[object]], published: str = "map"
) -> tuple[ContentWorld, str]:
    """A home, which is not the root, with some subscriptions of as many clients."""
    world = ContentWorld(5)
    home = next(m for m in world.members if m != world.root_of())
    for name, filters in subscriptions.items():
        world.subscribe(name, home, filters)
        world.run_s(3)
    world.publish("1", home, kind=published)
    return world, home


MAPS: list[object] = [{"exact": {"type": "map"}}]
HIGH: list[object] = [{"exact": {"type": "map"}}, {"range": {"level": {"min": 5}}}]


def test_a_home_names_what_it_has_kept_and_what_it_does_not_know() -> None:
    world, home = home_with({"a": MAPS, "b": [{"exact": {"type": "other"}}]})
    world.run_s(3)
    told = arrival_at(world, home, *(Grant(name, PDF) for name in (A, B, "c")))
    assert (told.served, told.unknown) == ((A, B), ("c",))
    # The root has said that it is for `b`: the home does not match again.
    assert world.got("b") == []
    world.run_s(1)
    assert world.got("b") == [("1", PDF)]


def test_a_covered_subscription_gets_what_the_registration_that_covers_it_is_sent_for() -> None:
    world, home = home_with({"wide": MAPS, "narrow": HIGH})
    core = world.overlay.broker(home).core
    assert [one.id for one in core.subscriptions.covered_by(scoped_id("@wide", "wide"))] == [
        scoped_id("@narrow", "narrow")
    ]
    world.publish("2", home, level=7)
    world.run_s(5)
    assert [identity for identity, _ in world.got("wide")] == ["1", "2"]
    assert [identity for identity, _ in world.got("narrow")] == ["2"]
    assert world.violations() == []


def test_a_covered_subscription_gets_it_though_the_one_that_covers_it_is_ending() -> None:
    """What is on its way for a registration is owed to those that are included in it."""
    world, home = home_with({"wide": MAPS, "narrow": HIGH})
    world.publish("2", home, level=7)
    world.subscribers["wide"].unsubscribe("wide")
    world.run_s(0.004)
    world.run_s(10)
    assert [identity for identity, _ in world.got("narrow")] == ["2"]
    assert world.violations() == []


class HearsOne(Dissemination):
    """A root to which homes name one registration only, the first time."""

    heard = 0

    def handlers(self) -> Mapping[type, Handler]:
        return {**super().handlers(), Served: self._hear}

    def _hear(self, message: Served, sender: str, turn: Turn) -> None:
        named = message.served if self.heard else message.served[:1]
        self.heard += 1
        self._served(replace(message, served=named), sender, turn)


def test_the_root_serves_again_what_a_home_does_not_name() -> None:
    """A home that leaves something out has not got it: the root goes on until it has."""
    world = ContentWorld(5, parts={"dissemination": HearsOne})
    home = next(m for m in world.members if m != world.root_of())
    world.subscribe("a", home)
    world.subscribe("b", home, accept=[JPEG])
    world.run_s(4)
    world.publish("1", home)
    world.run_s(0.8)
    dissemination = world.overlay.broker(world.root_of()).core.dissemination
    (task,) = dissemination._tasks.values()
    assert {one: list(pending.registrations) for one, pending in task.pending.items()} == {
        home: [B]
    }
    world.run_s(10)
    assert not list(dissemination._open)
    assert world.violations() == []


class HearsLate(Dissemination):
    """A root that homes cannot tell for a while what they have served."""

    def handlers(self) -> Mapping[type, Handler]:
        return {**super().handlers(), Served: self._hear}

    def _hear(self, message: Served, sender: str, turn: Turn) -> None:
        if turn.now_ns >= 200 * SECOND:
            self._served(message, sender, turn)


def test_a_home_knows_what_it_has_served_until_its_root_sends_it_again() -> None:
    """Also where brokers are given up, and items forgotten, sooner than a root repeats itself."""
    membership = replace(SETTINGS.membership, lost_s=4.0)
    content = replace(SETTINGS.content, repeat_s=8.0, retention_s=4.0)
    settings = replace(SETTINGS, membership=membership, content=content)
    world = ContentWorld(5, settings=settings, parts={"dissemination": HearsLate})
    home = next(m for m in world.members if m != world.root_of())
    world.subscribe("a", home)
    world.run_s(4)
    world.publish("1", home, media_type=None)
    world.run_s(300)
    assert [identity for identity, _ in world.got("a")] == ["1"]
    assert not list(world.overlay.broker(world.root_of()).core.dissemination._open)
    assert world.violations() == []


def test_brokers_report_once_that_another_has_other_settings_or_another_graph() -> None:
    ahead = replace(with_webp(), links=replace(SETTINGS.links, retry_s=1.0))
    # How a graph is written down makes no difference.
    alike = replace(SETTINGS, graph=json.dumps(MAP_GRAPH, indent=2))
    world = ContentWorld(4, settings_of={0: ahead, 1: alike})
    world.run_s(30)
    told = [(who, one) for who, one in world.reports if isinstance(one, SettingsDiffer)]
    first, *others = world.members
    expected = {(who, first, what) for who in others for what in ("settings", "graph")}
    expected |= {(first, who, what) for who in others for what in ("settings", "graph")}
    assert {(who, one.peer, one.what) for who, one in told} == expected
    assert len(told) == len(expected)


def test_a_broker_that_is_upgraded_is_reported_anew_and_then_not_any_more() -> None:
    world = ContentWorld(3, settings_of={0: with_webp()})
    world.run_s(10)
    first = world.members[0]
    world.world.crash(first)
    world.world.settings_of[first] = without(SPEECH)
    world.overlay.restart(first)
    world.run_s(20)
    told = [one for who, one in world.reports if isinstance(one, SettingsDiffer) and who != first]
    assert len(told) == 4
    assert len({one.digest for one in told}) == 2
    world.world.crash(first)
    del world.world.settings_of[first]
    world.overlay.restart(first)
    world.run_s(20)
    assert len([one for who, one in world.reports if isinstance(one, SettingsDiffer)]) == 8
