"""A registration that comes late to a root is served from the first item on, in its turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest
from tests.content_worlds import SETTINGS, ContentWorld

from distributary.broker.dissemination.messages import Offer, Portion, Served
from distributary.broker.dissemination.task import Task
from distributary.broker.host import Turn
from distributary.broker.rendezvous.messages import Copy
from distributary.broker.subscriptions.registrar import MOVES_MAX
from distributary.broker.subscriptions.subscription import scoped_id
from distributary.broker.timers import PORTION

MAPS = ({"exact": {"type": "map"}},)
NAMES = [f"{number:02d}" for number in range(PORTION + 8)]
PATIENT = replace(
    SETTINGS,
    content=replace(SETTINGS.content, repeat_s=30.0),
    subscriptions=replace(SETTINGS.subscriptions, registration_s=100.0),
)


class Latecomers:
    """A root that does not know of two subscriptions, s and t, at two homes.

    Attributes
    ----------
    copies
        What it does not know, by subscription.
    lost
        Between whom everything gets lost.
    """

    def __init__(self, wanted: Sequence[object] = MAPS) -> None:
        self.world = ContentWorld(6, settings=PATIENT)
        self.root = self.world.root_of()
        self.far, self.last, self.home, other, _ = (
            one for one in self.world.members if one != self.root
        )
        self.core = self.world.overlay.broker(self.root).core
        self._registry = self.core.rendezvous._registry
        self.copies: dict[str, Copy] = {}
        for name, home, filters in (("s", other, MAPS), ("t", self.home, wanted)):
            self.world.subscribe(name, home, filters)
            self.world.run_s(3)
            entry = self._registry.table.get((home, scoped_id(f"@{name}", name)))
            assert entry is not None
            self.copies[name] = entry.copy()
            self.in_turn(partial(self._registry.drop, entry, set(entry.cells)))
        self.lost: set[tuple[str, str]] = set()
        network = self.world.overlay.network
        arrivals = network.arrivals

        def lossy(sender: str, to: str, size_bytes: int, now_ns: int) -> tuple[int, ...]:
            return () if (sender, to) in self.lost else arrivals(sender, to, size_bytes, now_ns)

        network.arrivals = lossy  # type: ignore[method-assign]

    @property
    def tasks(self) -> dict[str, Task]:
        """What the root has not settled, by id."""
        return {task.item.id: task for task in self.core.dissemination._open}

    def in_turn(self, *calls: Callable[[Turn], object]) -> None:
        """Have the root do some things in one turn."""
        self.world.overlay.in_turn(self.root, lambda turn: [call(turn) for call in calls])

    def publish(self, *names: str, source: str = "/maps") -> None:
        """Publish something, and give everybody time for it."""
        for name in names:
            self.world.publish(name, self.far, media_type=None, source=source)
            self.world.run_s(0.1)

    def publish_unheard(self, name: str) -> None:
        """Publish something of which the root does not hear for now."""
        self.lost.add((self.far, self.root))
        self.publish(name)
        self.lost.remove((self.far, self.root))

    def come(self, name: str, *, late: bool = True, version: int = 0) -> Callable[[Turn], None]:
        """Have the root hear of a registration from another broker."""
        copy = self.copies[name]
        held = replace(copy.held, version=copy.held.version + version)

        def call(turn: Turn) -> None:
            assert self._registry.take(replace(copy, held=held), turn, late=late) is not None

        return call

    def take(self, copy: Copy) -> None:
        """Have the root enter what somebody has said."""
        self.in_turn(lambda turn: self._registry.take(copy, turn, late=False))

    def forget(self, copy: Copy) -> None:
        """Have the root know nothing of a registration."""
        entry = self._registry.table.get((copy.held.home, copy.held.id))
        assert entry is not None
        self.in_turn(partial(self._registry.drop, entry, set(entry.cells)))

    def claim(self) -> None:
        """Have t be registered from another home too, which is down and is asked first."""
        copy = self.copies["t"]
        assert copy.registration is not None
        claim = copy.registration.claim + 1
        known = replace(copy.registration, home=self.last, claim=claim)
        rival = Copy(replace(copy.held, home=self.last), known)
        self.take(rival)
        self.world.world.crash(self.last)

    def offer(self, name: str) -> Offer:
        """Return how the publisher's home offers an item to the root."""
        kept = self.world.overlay.broker(self.far).core.publishing._kept.values()
        item = next(one.item for one in kept if one.item.id == name)
        return Offer(item, None, self.root, 1, ())

    def offered(self, name: str) -> Callable[[Turn], None]:
        """Have the root be offered an item."""
        offer = self.offer(name)
        return lambda turn: self.core.dissemination._offered(offer, self.far, turn)

    def taken(self, name: str) -> Callable[[Turn], None]:
        """Have the root come to an item that it was offered, which it then takes."""
        offer = self.offer(name)
        return lambda turn: self.core.dissemination._consider(offer, turn)

    def unknown(self, name: str) -> Callable[[Turn], None]:
        """Have the other home say of an item that it does not know t any more."""
        task = self.tasks[name]
        told = Served(task.identity, task.attempt + 1, (), (self.copies["t"].held.id,))
        return lambda turn: self.core.dissemination._served(told, self.last, turn)

    def check(self, *subscriptions: str) -> None:
        """See that subscriptions have got everything in order."""
        self.world.run_s(20)
        for name in subscriptions:
            assert [one for one, _ in self.world.got(name)] == NAMES
        assert self.world.violations() == []
        assert not self.core.dissemination._audience._late


def test_an_item_that_is_offered_again_is_not_for_who_comes_behind_it() -> None:
    """It waits, as there is much to be done for another. Seed 70085 of `pipeline-crash.toml`."""
    late = Latecomers()
    late.publish(*NAMES)
    late.in_turn(late.come("s"), late.offered(NAMES[-1]), late.come("t"))
    late.check("s", "t")


def test_an_item_that_is_taken_later_is_for_who_has_come_meanwhile() -> None:
    late = Latecomers()
    *others, final = NAMES
    late.publish(*others)
    late.publish_unheard(final)
    late.in_turn(late.come("s"), late.taken(final), late.come("t"))
    late.check("s", "t")


def test_what_another_home_does_not_know_follows_what_is_sent_to_who_has_come() -> None:
    late = Latecomers()
    late.claim()
    late.publish(*NAMES)
    for name in NAMES[:-1]:
        late.in_turn(late.unknown(name))
    assert list(late.tasks) == NAMES[-1:]
    late.in_turn(late.come("t"), late.unknown(NAMES[-1]), late.come("s"))
    late.check("s", "t")


def test_what_is_told_anew_of_a_registration_that_waits_is_served_once() -> None:
    late = Latecomers()
    late.publish(*NAMES)
    late.in_turn(late.come("s"), late.come("t"), late.come("t", version=1))
    assert len(late.core.dissemination._audience._late) == 1
    late.check("s", "t")


@pytest.mark.parametrize("first", ["taken", "unknown"])
def test_an_item_is_said_to_follow_what_its_home_is_sent_for_one_more(first: str) -> None:
    """The home has had 2 for another subscription, and would not wait for 1 before 3."""
    late = Latecomers([{"all": [*MAPS, {"prefix": {"id": "both"}}]}])
    late.publish(*NAMES, source="/others")
    late.world.subscribe("u", late.home, MAPS)
    late.world.run_s(3)
    late.in_turn(late.come("t", late=False))
    late.claim()
    late.lost.add((late.home, late.root))
    late.publish("both 1", "2")
    late.publish_unheard("both 3")
    said: dict[str, tuple[int, int, int]] = {}
    carry_out = late.core.relays.carry_out

    def record(portion: Portion, turn: Turn) -> None:
        for node in portion.plan.nodes:
            if node.broker == late.home:
                said[portion.item.id] = node.after
        carry_out(portion, turn)

    late.core.relays.carry_out = record  # type: ignore[method-assign, assignment]
    both = [late.taken("both 3"), late.unknown("both 1")]
    late.in_turn(late.come("s"), *(both if first == "taken" else reversed(both)))
    late.world.run_s(0.1)
    second = late.tasks["2"]
    assert second.pending[late.home].attempt == second.attempt > 1
    assert said["both 3"] == (*second.place[:2], second.attempt)
    late.lost.clear()
    late.world.run_s(60)
    assert [name for name, _ in late.world.got("t")] == ["both 1", "both 3"]


@pytest.mark.parametrize("down_s", [0.0, 0.5, 5.0])
@pytest.mark.parametrize("unsettled", [False, True])
def test_a_root_that_crashes_on_the_way_goes_on_where_it_was(
    down_s: float, *, unsettled: bool
) -> None:
    """Nobody takes it for down, and tells it of the registrations once more."""
    late = Latecomers()
    if unsettled:
        late.claim()
    for name, copy in late.copies.items():
        assert copy.registration is not None
        told = replace(copy.registration, confirmed=True)
        late.copies[name] = replace(copy, registration=told)
    late.publish(*NAMES)
    late.in_turn(late.come("s"), late.come("t"))
    journal = late.world.world.nodes[late.root].journal
    assert [key for key in journal if key.startswith("dissemination/late/")]
    late.world.world.crash(late.root)
    late.world.run_s(down_s)
    late.world.overlay.restart(late.root)
    late.core = late.world.overlay.broker(late.root).core
    if unsettled:
        late.world.overlay.restart(late.last)
    late.check("s", "t")
    assert not [key for key in journal if key.startswith("dissemination/late/")]


@pytest.mark.parametrize("handed_over", [False, True])
def test_who_has_subscribed_anew_waits_for_nobody_who_has_withdrawn(*, handed_over: bool) -> None:
    """Its old home would pass it on to the new one that was lost. Seed 110038 of `migration-lost`.

    Whether the root has known what was withdrawn, or is told of that by another root.
    """
    late = Latecomers()
    copy = late.copies["t"]
    assert copy.registration is not None
    claim = copy.registration.claim - MOVES_MAX
    old = Copy(
        replace(copy.held, home=late.last), replace(copy.registration, home=late.last, claim=claim)
    )
    gone = Copy(replace(old.held, version=old.held.version + 1), None, claim if handed_over else 0)
    late.take(old)
    late.world.world.crash(late.last)
    late.publish("a")
    if handed_over:
        late.forget(old)
    late.take(gone)
    late.copies["t"] = replace(
        copy, registration=replace(copy.registration, since_ns=late.world.world.now_ns)
    )
    late.in_turn(late.come("t"))
    late.publish("b", "c")
    late.world.run_s(5)
    assert [name for name, _ in late.world.got("t")] == ["b", "c"]
