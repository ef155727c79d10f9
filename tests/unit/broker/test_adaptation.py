"""Brokers that adapt trees of streams in use, in virtual time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.stream_worlds import (
    SECOND,
    OwnSubscriptions,
    QuietMembership,
    StreamWorld,
    broker_name,
    event_of,
)

from distributary.broker.adaptation import node
from distributary.broker.addresses import Address
from distributary.broker.client import Changed
from distributary.broker.core import Part
from distributary.broker.host import PlantTree, ServiceTimes
from distributary.broker.settings import AdaptationSettings, Settings, StreamSettings
from distributary.broker.telemetry import Adapted
from distributary.content.divergence import Version
from distributary.content.tolerance import Tolerance
from distributary.fidelity.forest import Forest
from distributary.fidelity.loss import loss
from distributary.fidelity.problem import FidelityProblem
from distributary.simulator.world import World

ADAPTATION = AdaptationSettings(window_s=4.0, round_s=10.0, hold_s=3.0)
CHANGE_S = 0.5


@dataclass
class PlaneNetwork:
    """Brokers on a plane; clients are at their brokers."""

    points: dict[str, complex]
    rng: random.Random
    loss: float = 0.0

    def delay_ns(self, one: Address, two: Address) -> int:
        if one not in self.points or two not in self.points:
            return 0
        return round(abs(self.points[one] - self.points[two]) * 50_000_000)

    def arrivals(
        self, sender: Address, to: Address, size_bytes: int, now_ns: int
    ) -> tuple[int, ...]:
        if self.loss > 0.0 and self.rng.random() < self.loss:
            return ()
        return (now_ns + self.delay_ns(sender, to),)


def plane_membership(network: PlaneNetwork) -> type[Part]:
    class PlaneMembership(QuietMembership):
        """Everybody is there, and as far away as on the plane."""

        def delay_ns_to(self, peer: str) -> int:
            return network.delay_ns(self.core.identity, peer)

    return PlaneMembership


class AdaptingWorld(StreamWorld):
    """Trees with roots of their own, whose brokers are on a plane and adapt."""

    def __init__(
        self,
        points: Sequence[complex],
        parents: Sequence[Sequence[int | None]],
        *,
        seed: int = 0,
        message_s: float = 0.001,
        loss: float = 0.0,
        one_tree: bool = False,
    ) -> None:
        subjects = ["a", "b", "c"] if one_tree else [f"o{t}" for t in range(len(parents))]
        super().__init__(subjects, seed=seed, one_tree=one_tree)
        names = [broker_name(i) for i in range(len(points))]
        self.plane = PlaneNetwork(dict(zip(names, points, strict=True)), random.Random(seed), loss)
        self.message_s = message_s
        self.moves: list[Adapted] = []
        settings = Settings(
            streams=StreamSettings(
                approach="one-tree" if one_tree else "tree-each", pulse_s=1.0, silence_s=4.0
            ),
            adaptation=ADAPTATION,
        )
        parts: dict[str, type[Part]] = {
            "membership": plane_membership(self.plane),
            "subscriptions": OwnSubscriptions,
        }
        self.world = World(settings, self.plane, seed=seed, parts=parts)
        self.world.watchers += [self._watch, self._watch_moves]
        self.roots = [broker_name(row.index(None)) for row in map(list, parents)]
        for i, name in enumerate(names):
            places = []
            for t, (tree, objects) in enumerate(self.trees()):
                above = parents[t][i]
                up = None if above is None else broker_name(above)
                below = tuple(broker_name(j) for j, to in enumerate(parents[t]) if to == i)
                events = tuple(map(event_of, objects))
                places.append(PlantTree(tree, events, self.roots[t], up, below))
            self.world.add(name, *places)
            times = ServiceTimes(message_s / 2, message_s / 2)
            self.world.tell(name, times, sender="!")
        for t, (_, objects) in enumerate(self.trees()):
            for subject in objects:
                for name in names:
                    if name != self.roots[t]:
                        self.subscribe(name, subject, Tolerance("/v", "absolute", 0.5))

    def change_all(self, seconds: float) -> None:
        """Let all objects change every so often for a while."""
        end_ns = self.world.now_ns + round(seconds * SECOND)
        while self.world.now_ns < end_ns:
            for t, (_, objects) in enumerate(self.trees()):
                for subject in objects:
                    self.world.tell(self.roots[t], self.next_version(subject), sender="@source")
            self.run(CHANGE_S)

    def next_version(self, subject: str) -> Changed:
        sequence = self.newest[subject] = self.newest.get(subject, 0) + 1
        now_ns = self.world.now_ns
        self.versions[subject][sequence] = Version(float(sequence), sequence, now_ns)
        return Changed("/s", subject, sequence, now_ns, (("/v", float(sequence)),))

    def forest(self) -> Forest:
        """Return the trees as they are, with the root first as the cost model has it."""
        count = len(self.world.nodes)
        parents = np.full((len(self.trees()), count), -1, dtype=np.int64)
        for t, (tree, _) in enumerate(self.trees()):
            order = self.order(t)
            for i in range(count):
                up = self.parent(broker_name(order[i]), tree)
                if up is not None:
                    parents[t, i] = order.index(int(up, 16))
        return Forest("tree-each", parents)

    def order(self, t: int) -> list[int]:
        root = int(self.roots[t], 16)
        return [root, *(i for i in range(len(self.world.nodes)) if i != root)]

    def loss_of(self, t: int) -> float:
        """Return what one tree loses, by itself."""
        order = self.order(t)
        objects = self.trees()[t][1]
        points = np.array([self.plane.points[broker_name(i)] for i in order])
        count = len(order)
        problem = FidelityProblem.in_order(
            names=[f"n{i}" for i in range(count)],
            source="n0",
            objects=objects,
            rates=np.full((count, len(objects)), 1 / CHANGE_S),
            filter_times=np.full(count, self.message_s / 2),
            send_times=np.full(count, self.message_s / 2),
            delays=np.abs(points[:, None] - points[None]) * 0.05,
        )
        return loss(problem, Forest("one-tree", self.forest().parents[[t]])).average

    def check_trees(self) -> None:
        for t, (tree, _) in enumerate(self.trees()):
            for broker in self.world.nodes:
                seen = [broker]
                while seen[-1] != self.roots[t]:
                    above = self.parent(seen[-1], tree)
                    assert above is not None, f"{seen[-1]} has no parent in {tree}"
                    assert above not in seen, f"{seen} in {tree}"
                    seen.append(above)

    def phases(self) -> set[node.Phase]:
        return {self.part(name)._node.phase for name in self.world.nodes}

    def part(self, broker: str) -> Any:
        found = self.world.nodes[broker].broker
        assert found is not None
        return found.core.adaptation

    def _watch_moves(self, broker: str, record: object, now_ns: int) -> None:
        if isinstance(record, Adapted):
            self.moves.append(record)


def random_parents(count: int, root: int, rng: random.Random) -> list[int | None]:
    order = [root, *rng.sample([i for i in range(count) if i != root], count - 1)]
    parents: list[int | None] = [None] * count
    for at, i in enumerate(order[1:], 1):
        parents[i] = order[rng.randrange(at)]
    return parents


def plane_world(seed: int, *, count: int, trees: int, **more: Any) -> AdaptingWorld:
    rng = random.Random(seed)
    points = [complex(rng.random(), rng.random()) for _ in range(count)]
    parents = [random_parents(count, rng.randrange(count), rng) for _ in range(trees)]
    return AdaptingWorld(points, parents, seed=seed, **more)


def test_a_detour_is_taken_out_while_the_stream_goes_on() -> None:
    """A chain that goes to and fro: the node in the middle ends up above the far one."""
    world = AdaptingWorld([0j, 4 + 0j, 1 + 0j], [[None, 0, 1]])
    world.run(3.0)
    before = world.loss_of(0)
    world.change_all(30.0)
    world.run(5.0)
    assert world.loss_of(0) < before / 2
    assert world.moves
    assert all(move.gain > 0.0 for move in world.moves)
    assert world.outside() == []
    world.check_trees()


@pytest.mark.parametrize("seed", range(4))
def test_several_trees_with_common_brokers_lose_less_after_some_rounds(seed: int) -> None:
    world = plane_world(seed, count=8, trees=3)
    world.change_all(4.0)
    before = [world.loss_of(t) for t in range(3)]
    world.change_all(60.0)
    world.run(2.0)
    after = [world.loss_of(t) for t in range(3)]
    assert sum(after) < 0.8 * sum(before)
    assert world.outside() == []
    world.check_trees()


def test_a_tree_that_several_objects_share_loses_less_after_some_rounds() -> None:
    rng = random.Random(3)
    points = [complex(rng.random(), rng.random()) for _ in range(8)]
    world = AdaptingWorld(points, [random_parents(8, 0, rng)], one_tree=True)
    world.change_all(4.0)
    before = world.loss_of(0)
    world.change_all(50.0)
    world.run(2.0)
    assert world.loss_of(0) < 0.8 * before
    assert world.outside() == []
    world.check_trees()


def test_trees_that_cannot_be_improved_are_left_alone() -> None:
    """In a star with free links and slow brokers in a second row nothing is to be gained."""
    world = AdaptingWorld([0j, 1 + 0j, -1 + 0j], [[None, 0, 0]])
    world.change_all(40.0)
    assert world.moves == []
    assert world.forest().parents.tolist() == [[-1, 0, 0]]


@pytest.mark.parametrize("seed", range(3))
def test_lost_messages_leave_trees_whole_and_nobody_waiting(seed: int) -> None:
    """A fifth of all messages is lost; when no more are, everything comes to rest."""
    world = plane_world(seed, count=7, trees=3, loss=0.2)
    world.change_all(60.0)
    world.plane.loss = 0.0
    world.change_all(2.0)
    world.run(15.0)
    world.check_trees()
    assert world.moves
    assert world.outside() == []
    # A round may be under way just now.
    for _ in range(40):
        if world.phases() == {node.Phase.IDLE}:
            break
        world.run(0.1)
    assert world.phases() == {node.Phase.IDLE}


def test_a_busy_root_hands_children_down() -> None:
    """Everybody is near everybody, and the root needs most of its time for seven children."""
    world = AdaptingWorld(
        [complex(i / 100, 0) for i in range(8)], [[None, *[0] * 7]], message_s=0.06
    )
    world.run(3.0)
    before = world.loss_of(0)
    world.change_all(60.0)
    world.run(5.0)
    assert world.loss_of(0) < before
    assert "demotion" in {move.move for move in world.moves}
    world.check_trees()


def test_a_crash_in_the_middle_of_a_round_blocks_nobody() -> None:
    world = plane_world(5, count=7, trees=2)
    world.change_all(9.0)
    for i in range(20):
        name = broker_name(i % 7)
        world.world.crash(name)
        world.run(0.2)
        world.world.restart(name)
        world.world.tell(name, ServiceTimes(0.0005, 0.0005), sender="!")
        world.change_all(1.5)
    world.change_all(10.0)
    world.run(12.0)
    world.check_trees()
    assert world.outside() == []
