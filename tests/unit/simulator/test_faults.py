"""Faults: what is planned, and what is done about it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from distributary.broker.addresses import Blob
from distributary.broker.dissemination.messages import ItemId, Taken
from distributary.broker.membership.roster import MemberStatus
from distributary.broker.settings import Settings, ns
from distributary.simulator.conversions import ConversionOutcome
from distributary.simulator.faults import FaultInjector, planned_faults
from distributary.simulator.network import SimulatedNetwork
from distributary.simulator.places import Places
from distributary.simulator.scenario import Fault, OverlayTable
from distributary.simulator.scenario_file import read_scenario, scenario_from
from distributary.simulator.simulation import Simulation
from distributary.simulator.world import World

BROKERS = tuple(f"{k:02x}" for k in range(0, 160, 16))


def world_with(*faults: Fault, lost: list[str] | None = None) -> tuple[World, FaultInjector]:
    count = len(BROKERS)
    places = Places(
        BROKERS, np.full((count, count), 1_000_000), np.ones((count, count)), np.ones(count)
    )
    network = SimulatedNetwork(places, OverlayTable(brokers=count), random.Random(0))

    def convert(broker: str, blob: Blob, target: str) -> ConversionOutcome:
        return ConversionOutcome(1.0, Blob.imagined(target, 1, blob.digest))

    world = World(Settings(), network, seed=4, convert=convert)
    for broker in BROKERS:
        world.add(broker)
    gone = [] if lost is None else lost
    planned = planned_faults(faults, BROKERS, (), random.Random(1))
    made = FaultInjector(
        world,
        network,
        planned,
        random.Random(2),
        first=lambda _: (),
        on_lost=gone.append,
        on_down=lambda _: None,
    )
    made.schedule()
    return world, made


def down(world: World) -> list[str]:
    return [identity for identity, node in world.nodes.items() if node.broker is None]


def test_chance_chooses_as_many_brokers_as_asked_and_none_that_is_spared() -> None:
    faults = [Fault(kind="crash", count=4), Fault(kind="partition", share=0.3), Fault(kind="drop")]
    crash, partition, drop = planned_faults(faults, BROKERS, BROKERS[:5], random.Random(0))
    assert len(crash.brokers) == 4
    assert set(crash.brokers) <= set(BROKERS[5:])
    assert len(partition.brokers) == 3
    assert drop.brokers == ()


def test_brokers_can_be_named_by_index() -> None:
    (planned,) = planned_faults(
        [Fault(kind="crash", brokers=(2, 0))], BROKERS, BROKERS, random.Random(0)
    )
    assert planned.brokers == (BROKERS[2], BROKERS[0])


def test_a_mix_is_as_many_faults_as_it_counts_within_its_time() -> None:
    mix = Fault(kind="mix", count=30, at_s=10.0, until_s=50.0)
    planned = planned_faults([mix], BROKERS, (), random.Random(5))
    assert len(planned) == 30
    assert len({one.fault.kind for one in planned}) > 4
    assert all(10.0 <= one.fault.at_s <= one.until_s <= 50.0 for one in planned)
    assert planned == planned_faults([mix], BROKERS, (), random.Random(5))


def test_a_crash_lasts_until_it_ends() -> None:
    world, faults = world_with(Fault(kind="crash", brokers=(1,), at_s=2.0, until_s=5.0))
    assert faults.last_s == 5.0
    world.run_until(ns(3.0))
    assert down(world) == [BROKERS[1]]
    world.run_until(ns(6.0))
    assert down(world) == []


def test_of_two_crashes_of_one_broker_the_longer_counts() -> None:
    world, _ = world_with(
        Fault(kind="crash", brokers=(1,), at_s=2.0, until_s=5.0),
        Fault(kind="crash", brokers=(1,), at_s=3.0, until_s=8.0),
    )
    world.run_until(ns(6.0))
    assert down(world) == [BROKERS[1]]
    world.run_until(ns(9.0))
    assert down(world) == []


def test_who_is_lost_stays_lost() -> None:
    gone: list[str] = []
    world, faults = world_with(
        Fault(kind="lost", brokers=(3,), at_s=2.0),
        Fault(kind="crash", brokers=(3,), at_s=1.0, until_s=4.0),
        lost=gone,
    )
    world.run_until(ns(20.0))
    assert gone == down(world) == [BROKERS[3]]
    assert faults.lost == {BROKERS[3]: ns(2.0)}


def test_a_fault_can_wait_for_a_message_of_some_kind() -> None:
    """The first to send one goes down when its turn is over; those before and after do not."""
    world, _ = world_with(Fault(kind="crash", after="Taken", count=2, at_s=2.0, until_s=5.0))
    for at_s, broker in ((1.0, 0), (3.0, 1), (3.5, 2), (4.0, 3)):
        told = Taken(ItemId("", "/source", "1"))
        world.at(ns(at_s), world.send, BROKERS[broker], BROKERS[9], told)
    for at_s, expected in ((2.9, []), (3.1, [1]), (4.5, [1, 2]), (6.0, [])):
        world.run_until(ns(at_s))
        assert down(world) == [BROKERS[k] for k in expected]


def test_who_is_lost_after_a_message_is_lost_once() -> None:
    gone: list[str] = []
    both = [Fault(kind="lost", after="Taken", at_s=at_s, until_s=9.0) for at_s in (1.0, 2.0)]
    world, _ = world_with(*both, lost=gone)
    world.at(ns(3.0), world.send, BROKERS[4], BROKERS[9], Taken(ItemId("", "/source", "1")))
    world.run_until(ns(9.0))
    assert gone == down(world) == [BROKERS[4]]


def test_who_leaves_says_so_hands_over_and_stops() -> None:
    document = {
        "size": "small",
        "overlay": {"brokers": 6},
        "workload": {"publications": 20, "matching": 0.5, "duration_s": 30, "reattach_s": 2},
        "fault": [{"kind": "leave", "brokers": [3], "at_s": 15}],
    }
    simulation = Simulation(scenario_from(document, Path("leave.toml")), seed=1)
    simulation.run()
    assert simulation.violations == []
    (left,) = simulation.faults.lost
    assert left == simulation.places.identifiers[3]
    assert ns(15.0) <= simulation.faults.lost[left] < ns(17.0)
    for identity, node in simulation.world.nodes.items():
        if identity != left:
            assert node.broker is not None
            assert node.broker.core.membership.status(left) is MemberStatus.LEFT


def test_it_is_known_from_when_on_brokers_were_out_of_each_others_reach() -> None:
    for kind, cuts in (("partition", True), ("detached", True), ("drop", False), ("crash", False)):
        world, faults = world_with(Fault(kind=kind, count=1, at_s=2.0, until_s=3.0))
        known = []
        for at_s in (1.0, 2.5, 4.0):
            world.run_until(ns(at_s))
            known.append(faults.has_cut)
        assert known == [False, cuts, cuts], kind


def test_disturbances_come_and_go() -> None:
    world, _ = world_with(Fault(kind="drop", rate=1.0, at_s=1.0, until_s=2.0))
    network = world.network
    assert isinstance(network, SimulatedNetwork)
    for at_s, count in ((0.5, 0), (1.5, 1), (2.5, 0)):
        world.run_until(ns(at_s))
        assert len(network.disturbances) == count


def test_a_slow_broker_gets_its_speed_back() -> None:
    world, _ = world_with(Fault(kind="slow", brokers=(0,), factor=8.0, at_s=1.0, until_s=2.0))
    world.run_until(ns(1.5))
    assert world.nodes[BROKERS[0]].slowness == 8.0
    world.run_until(ns(2.5))
    assert world.nodes[BROKERS[0]].slowness == 1.0


def test_clocks_are_off_by_no_more_than_said() -> None:
    world, _ = world_with(Fault(kind="skew", seconds=0.5))
    world.run_until(1)
    skews = [node.skew_ns for node in world.nodes.values()]
    assert len(set(skews)) > 1
    assert all(0 <= skew <= ns(0.5) for skew in skews)


@pytest.mark.parametrize(("rate", "failing"), [(0.0, 0), (1.0, 1)])
def test_conversions_fail_at_their_rate_for_a_while(rate: float, failing: int) -> None:
    world, faults = world_with(Fault(kind="conversion", rate=rate, at_s=1.0, until_s=2.0))
    blob = Blob.imagined("a/a", 5, "x")
    for at_s, count in ((0.5, 0), (1.5, failing), (2.5, failing)):
        world.run_until(ns(at_s))
        outcome = world.convert(BROKERS[0], blob, "b/b")
        assert (outcome.blob is None) == (at_s == 1.5 and failing == 1)
        assert len(faults.refused) == count


def test_a_conversion_that_fails_fails_everywhere_and_again() -> None:
    world, _ = world_with(Fault(kind="conversion", rate=0.5, at_s=0.0, until_s=9.0))
    world.run_until(1)
    for k in range(20):
        blob = Blob.imagined("a/a", 5, str(k))
        outcomes = {world.convert(broker, blob, "b/b").blob is None for broker in BROKERS}
        assert len(outcomes) == 1


def test_clients_whose_home_is_lost_wait_while_nobody_is_up(tmp_path: Path) -> None:
    path = tmp_path / "nobody.toml"
    path.write_text(
        "size = 'small'\n[overlay]\nbrokers = 4\n"
        "[workload]\nsubscriptions = 4\npublications = 4\nduration_s = 40\nreattach_s = 2\n"
        "[settings.membership]\nlost_s = 15\n"
        "[[fault]]\nkind = 'lost'\ncount = 1\nat_s = 10\n"
        "[[fault]]\nkind = 'crash'\nshare = 1.0\nat_s = 10.5\nuntil_s = 16\n",
        encoding="utf-8",
    )
    simulation = Simulation(read_scenario(path), seed=1)
    simulation.run()
    assert simulation.violations == []
    assert simulation.ledger.published
