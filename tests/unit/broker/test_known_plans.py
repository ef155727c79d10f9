"""A root plans once for what it has planned before, until something has changed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.content_worlds import JPEG, PDF, SPEECH, TEXT, ContentWorld

from distributary.broker.dissemination.planner import TypicalSizes
from distributary.broker.telemetry import Planned

FORMATS = (PDF, JPEG, TEXT, SPEECH)
MAPS = ({"exact": {"type": "map"}},)
# As long as that no broker has anything left to convert.
QUIET_S = 120.0


def populated(count: int = 12) -> ContentWorld:
    """An overlay with a subscriber at every broker, of one of four kinds of devices."""
    world = ContentWorld(count, seed=1)
    for place, home in enumerate(world.members):
        world.subscribe(f"s{place:02d}", home, MAPS, accept=[FORMATS[place % 4]])
    world.run_s(3)
    return world


def plans(world: ContentWorld) -> dict[str, int]:
    """Return how many plans the root has made, and used again."""
    running = world.world.nodes[world.root_of()].broker
    assert running is not None
    found: dict[str, int] = running.snapshot()["dissemination"]["plans"]
    return found


def publish(world: ContentWorld, name: str, megabytes: float) -> None:
    world.publish(name, world.members[5], megabytes=megabytes)
    world.run_s(QUIET_S)


def test_a_plan_serves_for_all_sizes_within_a_tenth() -> None:
    world = populated()
    for number in range(12):
        publish(world, f"map {number}", 2.0 + 0.2 * (-1) ** number * number / 12)
    assert plans(world) == {"made": 1, "reused": 11}
    assert len(world.reported(Planned)) == 12
    assert world.violations() == []
    assert world.once.made == world.once.owed == 12 * 12


def test_another_size_is_planned_anew() -> None:
    world = populated()
    publish(world, "small", 1.0)
    publish(world, "large", 2.0)
    assert plans(world) == {"made": 2, "reused": 0}


def test_another_subscriber_is_planned_for() -> None:
    world = populated()
    publish(world, "before", 2.0)
    world.subscribe("late", world.members[2], MAPS, accept=[JPEG])
    world.run_s(3)
    publish(world, "after", 2.0)
    assert plans(world) == {"made": 2, "reused": 0}
    assert world.got("late") == [("after", JPEG)]


def test_a_broker_that_is_away_is_planned_around() -> None:
    world = populated()
    publish(world, "before", 2.0)
    away = next(m for m in world.members if m not in (world.root_of(), world.members[5]))
    world.world.crash(away)
    world.run_s(10)
    world.publish("after", world.members[5], megabytes=2.0)
    world.run_s(10)
    assert plans(world)["reused"] == 0
    world.world.restart(away)
    world.run_s(QUIET_S)
    assert world.violations() == []


def test_a_broker_that_is_busy_is_planned_for() -> None:
    """What is to be converted already is part of the problem."""
    world = populated()
    world.publish("first", world.members[5], megabytes=2.0)
    world.publish("second", world.members[5], megabytes=2.0)
    world.run_s(QUIET_S)
    assert plans(world) == {"made": 2, "reused": 0}
    publish(world, "third", 2.0)
    assert plans(world) == {"made": 2, "reused": 1}


def test_order_is_kept_with_plans_that_are_known() -> None:
    world = populated()
    for number in range(40):
        world.publish(f"map {number:02d}", world.members[5], kind="map", megabytes=0.0)
    world.run_s(20)
    assert world.violations() == []
    assert [name for name, _ in world.got("s00")] == [f"map {number:02d}" for number in range(40)]


def baselines(world: ContentWorld, **request: Any) -> list[Any]:
    running = world.world.nodes[world.root_of()].broker
    assert running is not None
    recent = running.snapshot(**request)["dissemination"]["recent"]
    return [one.get("baselines") for one in recent]


def test_a_snapshot_has_baselines_on_request() -> None:
    world = populated()
    publish(world, "map", 2.0)
    (planned,) = world.reported(Planned)
    assert isinstance(planned, Planned)
    assert baselines(world) == [None]
    (found,) = baselines(world, baselines=True)
    assert planned.all_in_root is not None
    assert planned.all_in_leaves is not None
    for name, worth in (
        ("all-in-root", planned.all_in_root),
        ("all-in-leaves", planned.all_in_leaves),
    ):
        assert found[name] == pytest.approx(worth._asdict())


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=60))
def test_a_size_is_taken_for_one_that_is_within_a_tenth(sizes: list[int]) -> None:
    typical = TypicalSizes()
    known: list[int] = []
    for size in sizes:
        near = typical.of("a/b", size)
        assert abs(size - near) * 10 <= near
        if any(abs(size - one) * 10 <= one for one in known):
            assert near in known
        else:
            assert near == size
            known.append(size)
    assert typical.of("c/d", 3) == 3


def test_no_more_media_types_are_known_than_there_is_room_for() -> None:
    typical = TypicalSizes(kinds_max=2)
    assert typical.of("a/a", 100) == 100
    assert typical.of("b/b", 100) == 100
    assert typical.of("c/c", 100) == 100
    assert typical.of("a/a", 101) == 101
    assert typical.of("c/c", 101) == 100
