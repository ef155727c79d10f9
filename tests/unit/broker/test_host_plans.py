"""Plans that take long are made by the host, and content is sent when they are there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.broker_overlays import SECOND
from tests.content_worlds import JPEG, SETTINGS, TEXT, ContentWorld

from distributary.broker.addresses import HOST
from distributary.broker.dissemination.task import Task, TaskState
from distributary.broker.host import PlanMade
from distributary.broker.telemetry import Planned
from distributary.errors import PeerMisbehaved


def world_of(count: int, *, plan_s: float, size_max: int = 0) -> ContentWorld:
    content = replace(SETTINGS.content, plan_size_max=size_max, ask_s=60.0)
    world = ContentWorld(count, settings=replace(SETTINGS, content=content))
    world.world.plan_ns = plan_s * SECOND
    return world


def task_of(world: ContentWorld) -> Task:
    tasks = world.overlay.broker(world.root_of()).core.dissemination._tasks
    (task,) = tasks.values()
    return task


def subscribed(world: ContentWorld) -> tuple[str, str]:
    """Two homes that are not the root, each with a subscriber."""
    one, other = [member for member in world.members if member != world.root_of()][:2]
    world.subscribe("one", one, accept=[TEXT])
    world.subscribe("other", other, accept=[JPEG])
    world.run_s(3)
    return one, other


def test_an_item_waits_for_its_plan_and_is_then_sent() -> None:
    world = world_of(4, plan_s=3.0)
    subscribed(world)
    world.publish("a", world.root_of())
    world.run_s(2)
    assert task_of(world).state is TaskState.PLANNING
    assert world.got("one") == []
    world.run_s(10)
    assert world.got("one") == [("a", TEXT)]
    assert world.got("other") == [("a", JPEG)]
    assert len(world.reported(Planned)) == 1
    assert world.violations() == []


def test_a_small_plan_is_made_by_the_broker_itself() -> None:
    world = world_of(4, plan_s=1000.0, size_max=100)
    subscribed(world)
    world.publish("a", world.root_of())
    world.run_s(5)
    assert world.got("one") == [("a", TEXT)]


def test_the_plan_for_an_attempt_that_was_superseded_is_ignored() -> None:
    """And its homes are served by the attempt that has taken its place."""
    world = world_of(4, plan_s=12.0)
    _, other = subscribed(world)
    world.publish("a", world.root_of())
    world.run_s(1)
    first = task_of(world).attempt
    world.overlay.world.crash(other)
    world.run_s(4)
    world.overlay.restart(other)
    world.run_s(3)
    task = task_of(world)
    assert task.attempt > first
    assert task.planned_for == tuple(sorted(task.pending))
    assert len(task.pending) == 2
    world.run_s(5)
    assert world.got("one") == [], "the first plan has come and is not for this attempt"
    assert world.reported(Planned) == []
    world.run_s(20)
    assert world.got("one") == [("a", TEXT)]
    assert world.got("other") == [("a", JPEG)]
    assert world.violations() == []


def test_a_lost_plan_is_asked_for_again() -> None:
    world = world_of(4, plan_s=1.0)
    subscribed(world)
    asked: list[int] = []
    node = world.world.nodes[world.root_of()]
    made = node._made_plan
    node._made_plan = lambda ticket, problem: asked.append(ticket)  # type: ignore[method-assign]
    world.publish("a", world.root_of())
    world.run_s(5)
    node._made_plan = made  # type: ignore[method-assign]
    world.run_s(70)
    assert len(asked) == 1
    assert world.got("one") == [("a", TEXT)]


def test_later_items_wait_for_one_that_is_planned() -> None:
    """The first is planned by the host, as many brokers get it; the others are small."""
    world = world_of(4, plan_s=3.0, size_max=8)
    one, _ = subscribed(world)
    world.subscribe("third", one, filters=[{"exact": {"type": "map"}}], accept=[TEXT])
    world.run_s(2)
    for name in ("a", "b", "c"):
        world.publish(name, world.root_of())
    world.run_s(30)
    assert [name for name, _ in world.got("one")] == ["a", "b", "c"]
    assert world.violations() == []


def test_nobody_but_the_host_makes_plans() -> None:
    world = world_of(2, plan_s=1.0)
    one, other = world.members
    broker = world.overlay.broker(one)
    with pytest.raises(PeerMisbehaved, match="only a host"):
        broker.receive(PlanMade(1, None), sender=other, now_ns=0)  # type: ignore[arg-type]
    before = len(world.reports)
    broker.receive(PlanMade(1, None), sender=HOST, now_ns=0)  # type: ignore[arg-type]
    assert len(world.reports) == before
