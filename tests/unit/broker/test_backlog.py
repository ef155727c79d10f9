"""No turn does more than a portion of what there is to do, however much that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest
from benchmarks.broker.metered import Meter, metered
from hypothesis import given
from hypothesis import strategies as st
from tests.content_worlds import SETTINGS, ContentWorld

from distributary.broker.dissemination.messages import Item, in_order
from distributary.broker.host import Turn
from distributary.broker.timers import PORTION, Backlog, Retention, Timers

MAPS = ({"exact": {"type": "map"}},)
COUNT = 8 * PORTION
PATIENT = replace(SETTINGS, content=replace(SETTINGS.content, repeat_s=30.0, retention_s=300.0))


@given(st.lists(st.integers(0, 3 * PORTION), max_size=4))
def test_everything_is_done_in_order_a_portion_in_each_turn(sizes: list[int]) -> None:
    timers = Timers()
    backlog = Backlog(timers)
    done: list[tuple[int, int]] = []
    turn = Turn(0)
    for batch, size in enumerate(sizes):
        backlog.each(lambda thing, turn: done.append((thing, turn.now_ns)), [batch] * size, turn)
    while (at_ns := timers.next_ns()) is not None:
        timers.run(Turn(at_ns))
    assert [thing for thing, _ in done] == [b for b, size in enumerate(sizes) for _ in range(size)]
    per_turn = Counter(at_ns for _, at_ns in done)
    assert all(count <= PORTION for at_ns, count in per_turn.items() if at_ns > 0)
    assert len(backlog) == 0


def test_what_is_done_may_leave_more_to_do() -> None:
    timers = Timers()
    backlog = Backlog(timers)
    done: list[int] = []

    def count_down(left: int, turn: Turn) -> None:
        done.append(left)
        if left:
            backlog.each(count_down, [left - 1], turn)

    backlog.each(count_down, [2 * PORTION], Turn(0))
    assert len(done) == PORTION
    while (at_ns := timers.next_ns()) is not None:
        timers.run(Turn(at_ns))
    assert done == list(range(2 * PORTION, -1, -1))


def test_what_belongs_to_a_thing_is_done_before_what_waits() -> None:
    """However much it is."""
    timers = Timers()
    backlog = Backlog(timers)
    done: list[int] = []

    def split(thing: int, turn: Turn) -> None:
        backlog.each(lambda part, _: done.append(part), [thing] * (2 * PORTION), turn, first=True)

    backlog.each(split, [1, 2], Turn(0))
    while (at_ns := timers.next_ns()) is not None:
        timers.run(Turn(at_ns))
    assert done == sorted([1, 2] * (2 * PORTION))


class _About(NamedTuple):
    item: Item


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(1, 9))))
def test_items_are_in_the_order_of_series_and_numbers(
    places: list[tuple[str, int, int]],
) -> None:
    """The property: it is as sorting all of them together gives."""
    things = [
        _About(Item("/s", str(k), 0, series, number, "", 0, "", "", 0, False, tenant))
        for k, (tenant, series, number) in enumerate(places)
    ]
    assert in_order(things) == sorted(things, key=lambda one: (one.item.sequence, one.item.number))


def test_much_that_is_due_at_once_is_done_in_several_turns() -> None:
    timers = Timers()
    forgotten: list[int] = []
    retention: Retention[int] = Retention(timers, lambda key, _: forgotten.append(key))
    retention.keep(0, 5)
    retention.keep_all(range(1, 1_000), 5)
    retention.keep_all((), 1)
    for number in range(100):
        timers.at(5, lambda turn, one: forgotten.append(one), 1_000 + number)
    most = 0
    while (at_ns := timers.next_ns()) is not None:
        before = len(forgotten)
        timers.run(Turn(max(5, at_ns)))
        most = max(most, len(forgotten) - before)
    assert sorted(forgotten) == list(range(1_100))
    assert [key for key in forgotten if key < 1_000] == list(range(1_000))
    assert most <= 300


def filled() -> tuple[ContentWorld, str, str, str]:
    """Return an overlay with the home of a publisher, the root, and the home of a subscriber."""
    world = ContentWorld(5, settings=PATIENT)
    root = world.root_of()
    home, reader, *_ = (one for one in world.members if one != root)
    world.subscribe("s", reader, MAPS)
    world.run_s(3)
    return world, home, root, reader


def publish(world: ContentWorld, home: str) -> None:
    for number in range(COUNT):
        world.publish(f"{number:04d}", home, media_type=None)
        world.run_s(0.1)
    running = world.world.nodes[home].broker
    assert running is not None
    assert sum(running.snapshot()["publishing"]["kept"].values()) == COUNT


def check(world: ContentWorld, meter: Meter, *names: str) -> None:
    assert world.violations() == []
    expected = [*(f"{number:04d}" for number in range(COUNT)), *names]
    assert [name for name, _ in world.got("s")] == expected
    # A portion, with some effects for each item.
    assert meter.counts.most_effects <= 10 * PORTION


@pytest.fixture
def meter() -> Iterator[Meter]:
    with metered() as found:
        yield found


@pytest.mark.parametrize("back", [False, True])
def test_a_new_root_is_offered_all_in_portions(meter: Meter, back: bool) -> None:
    world, home, root, _ = filled()
    publish(world, home)
    world.run_s(5)
    world.world.crash(root)
    world.run_s(60)
    if back:
        world.world.restart(root)
        world.run_s(60)
    check(world, meter)


def test_a_home_that_is_back_is_sent_all_in_portions(meter: Meter) -> None:
    world, home, _, reader = filled()
    world.world.crash(reader)
    world.run_s(10)
    publish(world, home)
    world.world.restart(reader)
    world.run_s(30)
    check(world, meter)


def test_a_root_goes_on_in_portions_after_a_restart(meter: Meter) -> None:
    """What is published meanwhile comes after all that."""
    world, home, root, reader = filled()
    world.world.crash(reader)
    world.run_s(10)
    publish(world, home)
    world.world.crash(root)
    world.world.restart(root)
    world.world.restart(reader)
    world.publish("late", home, media_type=None)
    world.run_s(60)
    check(world, meter, "late")


def test_a_publishers_home_goes_on_in_portions_after_a_restart(meter: Meter) -> None:
    world, home, root, _ = filled()
    world.world.crash(root)
    publish(world, home)
    world.world.crash(home)
    world.world.restart(home)
    world.run_s(60)
    check(world, meter)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=30))
def test_a_broker_is_not_woken_for_what_is_wanted_no_more(keys: list[tuple[int, bool]]) -> None:
    """It is when the first is due, as nobody knows before; after that only for who is left."""
    timers = Timers()
    done: dict[int, int] = {}
    wanted = set(range(len(keys)))

    def forget(key: int, turn: Turn) -> None:
        done[key] = turn.now_ns

    retention: Retention[int] = Retention(
        timers, forget, tick_ns=1, wanted=lambda key: key in wanted
    )
    for key, (at_ns, _) in enumerate(keys):
        retention.keep(key, at_ns)
    wanted = {key for key, (_, left) in enumerate(keys) if left}
    woken = []
    while (due_ns := timers.next_ns()) is not None:
        woken.append(due_ns)
        timers.run(Turn(due_ns))
    assert {key: keys[key][0] for key in wanted} == {key: done[key] for key in wanted}
    assert set(woken[1:]) <= {keys[key][0] for key in wanted}
