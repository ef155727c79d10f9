"""Brokers among peers that send what no broker sends: they drop it, and go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.content_worlds import JPEG, PDF, SPEECH, TEXT, ContentWorld

from distributary.broker.addresses import Blob
from distributary.broker.client import Subscribe
from distributary.broker.dissemination.messages import ConversionLost, Item, ItemId, Portion
from distributary.broker.encoding import encode
from distributary.broker.host import Leave
from distributary.broker.links.messages import Hop, Routed, Step
from distributary.broker.membership.roster import Gossip, MemberStatus, News
from distributary.broker.plan_part import PlanPart
from distributary.broker.telemetry import Planned
from distributary.errors import PeerMisbehaved
from distributary.simulator.report import report_of
from distributary.simulator.scenario_file import scenario_from
from distributary.simulator.simulation import Simulation

SMALL: dict[str, Any] = {
    "size": "small",
    "overlay": {"brokers": 6},
    "workload": {
        "publications": 10,
        "publishers": 2,
        "matching": 0.5,
        "begin_s": 6,
        "duration_s": 14,
        "settle_s": 40,
    },
}
STRANGER = "5" * 8
ITEM = Item(
    "/s",
    "1",
    0,
    1,
    1,
    STRANGER,
    0,
    '{"specversion":"1.0","source":"/s","type":"t","id":"1"}',
    "application/pdf",
    10,
    inline=False,
)
PORTION = Portion(
    ITEM, STRANGER, 1, "", PlanPart((), (), (), ()), (Blob.of("application/pdf", b"x"),)
)
BAD: list[object] = [
    PORTION,
    Hop(1, 1, encode(PORTION)),
    Hop(2, 1, b"\x01\x00\x49\x00"),
    Hop(3, 1, b""),
    Hop(1, 2, encode(PORTION)),
    Subscribe("{}"),
    Hop(4, 4, encode(Subscribe("{}"))),
    Leave(),
    Gossip((News("no broker", 1, MemberStatus.DOWN),)),
    Routed("0" * 8, STRANGER, b"", ()),
]


def simulation() -> Simulation:
    return Simulation(scenario_from(SMALL, Path("hostile.toml")), seed=4)


def test_a_run_in_which_a_stranger_sends_nonsense_is_clean() -> None:
    run = simulation()
    brokers = run.places.identifiers
    for number, message in enumerate(BAD):
        for place, broker in enumerate(brokers):
            at_ns = (8_000 + 400 * number + 10 * place) * 10**6
            run.world.at(at_ns, run.world.send, STRANGER, broker, message)
    run.run()
    report = report_of(run)
    assert run.violations == []
    assert report["refused_messages"] == len(BAD) * len(brokers)
    assert run.exactly_once.made == run.exactly_once.owed > 0


def test_nonsense_that_brokers_route_is_blamed_on_nobody_who_passes_it_on() -> None:
    run = simulation()
    brokers = run.places.identifiers
    for number, key in enumerate(brokers):
        routed = Routed(key, STRANGER, b"\x01nonsense", (Step(STRANGER, 0.0, 1.0),))
        hop = Hop(number + 1, 1, encode(routed))
        run.world.at(9 * 10**9, run.world.send, STRANGER, brokers[0], hop)
    run.run()
    assert run.violations == []
    assert run.world.refused == len(brokers)


def test_a_client_that_talks_like_a_broker_is_not_heard() -> None:
    run = simulation()
    home = run.places.identifiers[0]
    run.world.at(9 * 10**9, run.world.send, "@c", home, Hop(1, 1, encode(PORTION)))
    run.run()
    assert run.violations == []
    assert run.world.refused == 1


def test_a_broker_of_the_run_that_sends_nonsense_is_named() -> None:
    run = simulation()
    one, other = run.places.identifiers[:2]
    run.world.at(9 * 10**9, run.world.send, one, other, PORTION)
    run.run()
    assert [violation.checker for violation in run.violations] == ["broker"]
    assert f"{other} says of {one}: a plan for nobody" in run.violations[0].what
    assert run.exactly_once.made == run.exactly_once.owed > 0


def test_what_is_refused_leaves_nothing_on_the_disk_and_sends_nothing() -> None:
    run = simulation()
    run.world.run_until(7 * 10**9)
    broker = run.places.identifiers[2]
    journal = dict(run.world.nodes[broker].journal)
    log = run.world.log_hash
    for message in BAD:
        if not isinstance(message, Hop):
            run.world.tell(broker, message, sender=STRANGER)
    assert run.world.nodes[broker].journal == journal
    assert run.world.log_hash == log
    assert run.world.refused == sum(not isinstance(message, Hop) for message in BAD)


def test_a_host_that_says_what_it_must_not_is_a_fault_of_the_host() -> None:
    run = simulation()
    with pytest.raises(PeerMisbehaved):
        run.world.tell(run.places.identifiers[0], PORTION, sender="!")
    assert run.world.refused == 0


def test_a_stranger_that_wraps_without_end_is_refused_and_weighed() -> None:
    run = simulation()
    message: object = Hop(1, 1, encode(PORTION))
    for _ in range(400):
        message = Hop(1, 1, encode(message))
    run.world.at(9 * 10**9, run.world.send, STRANGER, run.places.identifiers[0], message)
    run.run()
    assert run.violations == []
    assert run.world.refused == 1


def planned_after(*lies: ConversionLost) -> tuple[int, ContentWorld]:
    """How often a root plans one item for two homes because of what a stranger says."""
    world = ContentWorld(6)
    root = world.root_of()
    homes = [one for one in world.members if one != root][:2]
    for name, home in zip("ab", homes, strict=True):
        world.subscribe(name, home, accept=[JPEG, f"{PDF};q=0.1"])
    world.run_s(4)
    world.publish("map", root, megabytes=10.0)
    world.run_s(0.05)
    running = world.world.nodes[root].broker
    assert running is not None
    (task,) = running.core.dissemination._open
    before = len(world.reported(Planned))
    for lie in lies:
        concerned = tuple(homes[int(place)] for place in lie.homes)
        told = replace(lie, identity=task.item.identity, homes=concerned)
        world.world.tell(root, told, sender=homes[0])
    count = len(world.reported(Planned)) - before
    assert task.lost.keys() <= {JPEG, TEXT, SPEECH}
    return count, world


@pytest.mark.parametrize(
    ("attempt", "lost"),
    [(1, ()), (1, (("video/mp4", "no"),)), (1, ((PDF, "no"),)), (2, ((JPEG, "no"),))],
    ids=["nothing", "no format", "the original", "no attempt"],
)
def test_a_conversion_that_cannot_have_been_lost_is_not_planned_around(
    attempt: int, lost: tuple[tuple[str, str], ...]
) -> None:
    count, world = planned_after(ConversionLost(ItemId("", "", ""), attempt, lost, ("0", "1")))
    assert count == 0
    world.run_s(30)
    assert world.got("a") == world.got("b") == [("map", JPEG)]


def test_a_conversion_that_is_lost_again_and_again_is_planned_around_once() -> None:
    lie = ConversionLost(ItemId("", "", ""), 1, ((JPEG, "no"),), ("0", "1"))
    count, world = planned_after(*[lie] * 20)
    assert count == 1
    world.run_s(30)
    assert [name for name in "ab" if len(world.got(name)) != 1] == []


def test_two_relays_that_lose_the_same_conversion_of_one_attempt_both_count() -> None:
    lies = [
        ConversionLost(ItemId("", "", ""), 1, ((JPEG, "no"),), (place,))
        for place in ("0", "1", "0")
    ]
    count, _ = planned_after(*lies)
    assert count == 2
