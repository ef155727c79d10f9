"""What one publisher publishes in one cell is taken, and handed to clients, in order."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.content_worlds import JPEG, PDF, SETTINGS, ContentWorld

from distributary.broker.deliveries.finished import Arrival, Finished, FinishedItems
from distributary.broker.dissemination.items import Unsettled
from distributary.broker.dissemination.messages import Item, ItemId, Offer, Served
from distributary.broker.dissemination.task import Pending, Sequence, Task
from distributary.broker.membership.roster import Gossip, MemberStatus
from distributary.broker.plan_part import NOTHING_BEFORE, Grant
from distributary.broker.publishing.publications import Count, Kept
from distributary.broker.rendezvous.messages import Copy, HandedOver, Held, Registration
from distributary.broker.settings import Settings
from distributary.broker.subscriptions.subscription import scoped_id
from distributary.content import Publication

ROOT = "root"
MAPS = ({"exact": {"type": "map"}},)


def item(number: int, series: int = 1) -> Item:
    name = f"{series}/{number}"
    return Item("/s", name, 0, series, number, "home", 0, "{}", PDF, 1, inline=False)


def taken(sequence: Sequence, offer: Offer) -> list[int]:
    found: list[int] = []
    if sequence.is_new(offer):
        while (ready := sequence.ready()) is not None:
            sequence.add(Task(ready.item, None))
            found.append(ready.item.number)
    return found


@given(st.integers(1, 5), st.integers(1, 8), st.randoms(use_true_random=False))
def test_a_root_takes_items_in_order_however_they_come(first: int, count: int, rng: object) -> None:
    """The property: repeated and overtaken offers change neither order nor number."""
    numbers = list(range(first, first + count)) * 2
    rng.shuffle(numbers)  # type: ignore[attr-defined]
    sequence = Sequence()
    found = [
        number
        for offered in numbers
        for number in taken(sequence, Offer(item(offered), None, ROOT, first, ()))
    ]
    assert found == list(range(first, first + count))


def test_a_root_does_not_wait_for_what_is_not_offered_any_more() -> None:
    sequence = Sequence()
    assert taken(sequence, Offer(item(3), None, ROOT, 1, ())) == []
    assert taken(sequence, Offer(item(4), None, ROOT, 1, ())) == []
    assert taken(sequence, Offer(item(5), None, ROOT, 4, ())) == [4, 5]
    assert taken(sequence, Offer(item(3), None, ROOT, 3, ())) == []


def test_a_root_does_not_wait_for_what_others_have_settled_between_two_items() -> None:
    """3 is open for long, as a home is away. 4 and 5 were settled by another root, and are gone."""
    sequence = Sequence()
    assert taken(sequence, Offer(item(7), None, ROOT, 3, ())) == []
    assert taken(sequence, Offer(item(6), None, ROOT, 3, (), settled=2)) == []
    assert taken(sequence, Offer(item(3), None, ROOT, 3, ())) == [3, 6, 7]
    assert taken(sequence, Offer(item(10), None, ROOT, 3, (), settled=1)) == []
    assert taken(sequence, Offer(item(8), None, ROOT, 3, ())) == [8, 10]


@given(st.sets(st.integers(1, 12), min_size=1), st.randoms(use_true_random=False))
def test_a_root_takes_what_is_left_of_a_series_in_order(left: set[int], rng: object) -> None:
    """The property: whatever a home keeps no longer, a new root takes the rest, as it comes."""
    count = Count(1)
    for number in sorted(left):
        count.enter(Kept("@p", item(number), None))
    numbers = sorted(left) * 2
    rng.shuffle(numbers)  # type: ignore[attr-defined]
    sequence = Sequence()
    offers = [
        Offer(item(n), None, ROOT, min(left), (), count.settled_before(n) if n > min(left) else 0)
        for n in numbers
    ]
    assert [number for offer in offers for number in taken(sequence, offer)] == sorted(left)
    assert sequence.tasks.keys() == left


def test_an_item_follows_the_last_one_that_its_home_has_not_confirmed() -> None:
    """Also when that is of an earlier series, but never what another cell or source has sent."""
    unsettled = Unsettled()
    places = [(1, 1), (1, 2), (5, 1), (5, 2)]
    tasks = [Task(item(number, series), None) for series, number in places]
    stranger = Task(item(1, 3)._replace(cell=1), None)
    for task in [*reversed(tasks), stranger]:
        task.pending["home"] = Pending(0)
        task.pending["home"].attempt = 10 * task.item.series + task.item.number
        unsettled.add(task)
    unsettled.add(tasks[0])
    assert [unsettled.before(task, "home") for task in [*tasks, stranger]] == [
        NOTHING_BEFORE, (1, 1, 11), (1, 2, 12), (5, 1, 51), NOTHING_BEFORE
    ]  # fmt: skip
    del tasks[2].pending["home"]
    assert unsettled.before(tasks[3], "home") == (1, 2, 12)
    assert unsettled.before(tasks[3], "other") == NOTHING_BEFORE
    for task in tasks[:3]:
        unsettled.remove(task)
    assert unsettled.before(tasks[3], "home") == NOTHING_BEFORE
    assert unsettled.get(tasks[0].item.identity) is None
    assert list(unsettled) == [tasks[3], stranger]


def test_generations_of_a_subscription_are_owed_in_one_place() -> None:
    unsettled = Unsettled()
    tasks = [Task(item(number), None) for number in (1, 2, 3)]
    for task, home in zip(tasks, ("old", "new", "old"), strict=True):
        unsettled.add(task)
        task.pending[home] = Pending(0)
        task.pending[home].registrations["2@cs"] = (None, ())
        unsettled.owe(task, home)
    first, second, third = tasks
    assert unsettled.last_owed(first, "1+2@cs") == frozenset()
    assert unsettled.last_owed(second, "1+2@cs") == {"old"}
    assert unsettled.last_owed(third, "1+2@cs") == {"new"}, "and not who is owed what was before"
    assert unsettled.last_owed(third, "2@ct") == frozenset()


class Rivals:
    """A root, and homes that are down, to some of which the client of a subscription has gone."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.world = ContentWorld(6, settings=settings)
        self.root = self.world.root_of()
        others = (one for one in self.world.members if one != self.root)
        self.old, self.new, self.third, self.far, self.last = others
        self.world.subscribe("s", self.old, MAPS)
        self.world.subscribe("t", self.third, MAPS)
        self.world.run_s(3)
        for home in (self.old, self.new, self.third, self.last):
            self.world.world.crash(home)

    @property
    def tasks(self) -> dict[str, Task]:
        """What the root has not settled, by id."""
        tasks = self.world.overlay.broker(self.root).core.dissemination._open
        return {task.item.id: task for task in tasks}

    @property
    def kept(self) -> Registration:
        """What the old home has registered."""
        table = self.world.overlay.broker(self.root).core.rendezvous._table
        entry = table.get((self.old, scoped_id("@s", "s")))
        assert entry is not None
        assert entry.registration is not None
        return entry.registration

    def publish(self, name: str) -> list[str]:
        """Return the homes that are owed something for the subscription."""
        self.world.publish(name, self.far, media_type=None)
        self.world.run_s(0.5)
        return self.owed(name)

    def owed(self, name: str) -> list[str]:
        """Return the homes that are owed an item for the subscription."""
        pending = self.tasks[name].pending.items()
        return [home for home, one in pending if scoped_id("@s", "s") in one.registrations]

    def tell(
        self,
        home: str,
        registration: Registration | None,
        version: int,
        *,
        cells_on: int = 0,
        late: bool = True,
    ) -> None:
        """Have the root hear what a home has registered, by way of another broker."""
        overlay = self.world.overlay
        held = Held(home, scoped_id("@s", "s"), version, (CELL + cells_on,))
        registry = overlay.broker(self.root).core.rendezvous._registry
        overlay.in_turn(
            self.root, lambda turn: registry.take(Copy(held, registration), turn, late=late)
        )


EVENT = {"specversion": "1.0", "id": "1", "source": "/maps", "type": "map"}
CELL = SETTINGS.space.cell_of(Publication.parse(EVENT))


def test_a_root_that_has_forgotten_what_a_home_confirmed_does_not_go_back_to_it() -> None:
    """What was sent to the next home since would come later. Seed 0 of `migration-torn.toml`."""
    rivals = Rivals()
    kept = rivals.kept
    assert rivals.publish("1") == [rivals.old]
    served = Served(rivals.tasks["1"].item.identity, 9, (kept.id,), ())
    rivals.world.world.tell(rivals.root, served, sender=rivals.old)
    rivals.tell(rivals.old, None, 100)
    rivals.tell(rivals.new, replace(kept, home=rivals.new, claim=kept.claim - 1), 1)
    assert rivals.publish("2") == [rivals.new]
    rivals.world.world.crash(rivals.root)
    rivals.world.overlay.restart(rivals.root)
    assert kept.id in rivals.tasks["1"].pending[rivals.old].registrations, "it has forgotten"
    assert rivals.publish("3") == [rivals.new]


@pytest.mark.parametrize("order", list(permutations("123")))
def test_what_a_home_does_not_have_goes_to_the_next_one_in_whatever_order_it_says_so(
    order: tuple[str, ...],
) -> None:
    """At once: one item in every round would take longer than homes remember what they got."""
    rivals = Rivals()
    kept = rivals.kept
    for name in "123":
        assert rivals.publish(name) == [rivals.old]
    rivals.tell(rivals.new, replace(kept, home=rivals.new, claim=kept.claim - 1), 1)
    for place, name in enumerate(order):
        unknown = Served(rivals.tasks[name].item.identity, 9, (), (kept.id,))
        rivals.world.world.tell(rivals.root, unknown, sender=rivals.old)
        said = set(order[: place + 1])
        first = next((one for one in "123" if one not in said), "4")
        for one in "123":
            assert rivals.owed(one) == [rivals.new if one < first else rivals.old]


@pytest.mark.parametrize("what", ["does not have it", "is lost", "is asked after a restart"])
def test_who_else_has_been_registered_since_is_not_where_somebody_else_has_gone(what: str) -> None:
    """A broker that is the root no more is told of others, and has not sent them the first one."""
    rivals = Rivals()
    kept, world = rivals.kept, rivals.world
    for name in "12":
        assert rivals.publish(name) == [rivals.old]
    other = replace(kept, home=rivals.new, id=scoped_id("@u", "u"))
    held = Held(rivals.new, other.id, 1, (CELL,))
    registry = world.overlay.broker(rivals.root).core.rendezvous._registry
    world.overlay.in_turn(
        rivals.root, lambda turn: registry.take(Copy(held, other), turn, late=False)
    )
    if what == "does not have it":
        unknown = Served(rivals.tasks["1"].item.identity, 9, (), (kept.id,))
        world.world.tell(rivals.root, unknown, sender=rivals.old)
    elif what == "is lost":
        roster = world.overlay.broker(rivals.root).core.membership.gossip.roster
        left = replace(roster.news_of(rivals.old), status=MemberStatus.LEFT)
        world.world.tell(rivals.root, Gossip((left,)), sender=rivals.far)
    else:
        world.world.crash(rivals.root)
        world.overlay.restart(rivals.root)
    assert rivals.owed("1") == ([rivals.old] if what == "is asked after a restart" else [])
    for name in "12":
        assert rivals.new not in rivals.tasks[name].pending


def test_a_root_that_hears_late_of_a_last_home_sends_it_nothing_past_the_next_one() -> None:
    rivals = Rivals()
    kept = rivals.kept
    rivals.tell(rivals.old, None, 100)
    rivals.tell(rivals.new, replace(kept, home=rivals.new, claim=kept.claim - 1), 1)
    assert rivals.publish("1") == [rivals.new]
    rivals.tell(rivals.old, kept, 101)
    assert rivals.publish("2") == [rivals.new]
    # Its client listens to neither any more.
    rivals.tell(rivals.last, replace(kept, home=rivals.last, claim=kept.claim + 10**9), 1)
    assert rivals.publish("3") == [rivals.last]


def test_a_root_that_hears_of_a_withdrawal_in_another_cell_asks_the_home_that_it_owes() -> None:
    """The home was sent 1 and says that it has lost the client. By then 2 was at the next home."""
    rivals = Rivals()
    kept = rivals.kept
    assert rivals.publish("1") == [rivals.old]
    rivals.tell(rivals.new, replace(kept, home=rivals.new, claim=kept.claim - 1), 1)
    rivals.tell(rivals.old, None, 100, cells_on=1)
    assert rivals.publish("2") == [rivals.old]


def test_what_others_have_confirmed_is_late_though_an_older_word_came_first() -> None:
    """Else the next root finds what it is owed, after later items. Seed 3 of `lost-root.toml`."""
    rivals = Rivals()
    unconfirmed = replace(rivals.kept, home=rivals.new, confirmed=False)
    rivals.tell(rivals.old, None, 100)
    assert rivals.publish("1") == []
    rivals.tell(rivals.new, unconfirmed, 1, late=False)
    assert not rivals.owed("1"), "its client has not been told that it is in force"
    rivals.tell(rivals.new, replace(unconfirmed, confirmed=True), 1)
    assert rivals.owed("1") == [rivals.new]
    assert rivals.publish("2") == [rivals.new]


def test_a_root_remembers_a_withdrawal_for_as_long_as_it_owes_the_home_something() -> None:
    """The home is behind a partition for longer than registrations are kept."""
    brief = replace(SETTINGS.subscriptions, registration_s=2.0)
    rivals = Rivals(replace(SETTINGS, subscriptions=brief))
    kept = rivals.kept
    assert rivals.publish("1") == [rivals.old]
    rivals.tell(rivals.new, replace(kept, home=rivals.new, claim=kept.claim - 1), 1)
    rivals.tell(rivals.old, None, 100)
    rivals.world.run_s(12)
    assert rivals.publish("2") == [rivals.old]
    for name in ("1", "2"):
        attempt = rivals.tasks[name].attempt + 1
        unknown = Served(rivals.tasks[name].item.identity, attempt, (), (kept.id,))
        rivals.world.world.tell(rivals.root, unknown, sender=rivals.old)
    assert [rivals.owed(name) for name in ("1", "2")] == [[rivals.new], [rivals.new]]


def test_who_is_no_longer_the_root_keeps_what_it_goes_by_while_it_owes_a_home_something() -> None:
    """The next root has stored one of two rival registrations before the other."""
    world = ContentWorld(9)
    root = world.root_of()
    core_of = {one: world.overlay.broker(one).core for one in world.members}
    line = core_of[root].rendezvous._replication.line(CELL)
    old, new, former, far, *_ = (one for one in world.members if one not in line)
    world.subscribe("s", old, MAPS)
    world.run_s(3)
    entry = core_of[root].rendezvous._table.get((old, scoped_id("@s", "s")))
    assert entry is not None
    kept = entry.registration
    assert kept is not None
    for home in (old, new):
        world.world.crash(home)
    # It has taken itself for the root: it has registrations, and homes offer it items.
    core = core_of[former]
    for home, claim in ((old, kept.claim), (new, kept.claim - 1)):
        copy = Copy(Held(home, kept.id, 1, (CELL,)), replace(kept, home=home, claim=claim))
        take = partial(core.rendezvous._registry.take, copy, late=False)
        world.overlay.in_turn(former, take)

    def owed(number: int) -> list[str]:
        event = json.dumps(EVENT | {"id": str(number)})
        place = ("/maps", str(number), CELL, 1, number, far, world.world.now_ns)
        offered = Item(*place, event, "application/json", 0, inline=True)
        world.world.tell(former, Offer(offered, None, former, 1, ()), sender=far)
        return list(core.dissemination._tasks[offered.identity].pending)

    assert owed(1) == [old]
    stored = HandedOver((Held(old, kept.id, 1, (CELL,)),))
    world.world.tell(former, stored, sender=root)
    assert owed(2) == [old]


def test_what_a_client_asked_for_before_it_began_anew_elsewhere_is_not_served_there() -> None:
    """Its last home is down, and has registered what it wanted then, by the same name."""
    rivals = Rivals()
    anew = replace(rivals.kept, home=rivals.last, claim=rivals.kept.claim + 10**9)
    rivals.tell(rivals.last, replace(anew, filters=json.dumps([{"exact": {"id": "3"}}])), 1)
    assert rivals.publish("2") == []
    assert rivals.publish("3") == [rivals.last]


@given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from("ABC"), st.sampled_from("oscr"))))
def test_what_a_home_waits_for_is_found_as_if_all_were_looked_through(
    steps: list[tuple[int, str, str]],
) -> None:
    unsettled = Unsettled()
    tasks = {number: Task(item(number), None) for number in range(1, 7)}
    for number, home, step in steps:
        task = tasks[number]
        if step == "o":
            unsettled.add(task)
        elif step == "s" and home not in task.pending:
            task.pending[home] = Pending(0)
            task.pending[home].attempt = number
            unsettled.owe(task, home)
        elif step == "c":
            task.pending.pop(home, None)
        elif step == "r" and unsettled.get(task.item.identity) is not None:
            task.pending.clear()
            unsettled.remove(task)
        for later, one in ((n, h) for n in tasks for h in "ABC"):
            earlier = [t for n, t in tasks.items() if n < later and t in set(unsettled)]
            waiting = [t for t in earlier if one in t.pending]
            expected = (1, waiting[-1].item.number, waiting[-1].item.number) if waiting else None
            assert unsettled.before(tasks[later], one) == (expected or NOTHING_BEFORE)
        for one in "ABC":
            assert unsettled.owes(one, 0) == any(one in task.pending for task in unsettled)
            assert not unsettled.owes(one, 1)
            assert unsettled.cells_owed(one) == ({0} if unsettled.owes(one, 0) else set())
    assert len(unsettled) == len(list(unsettled))


def test_what_a_home_is_owed_for_one_more_subscription_comes_before_what_follows() -> None:
    """A client's last home does not know it any more, and the next has had what lies between."""
    world = ContentWorld(5)
    root = world.root_of()
    last, home, far, _ = (one for one in world.members if one != root)
    both = {"all": [*MAPS, {"prefix": {"id": "both"}}]}
    world.subscribe("s", home, [both])
    world.subscribe("t", home, MAPS)
    world.run_s(3)
    world.world.crash(last)
    core = world.overlay.broker(root).core
    entry = core.rendezvous._table.get((home, scoped_id("@s", "s")))
    assert entry is not None
    kept = entry.registration
    assert kept is not None
    claimed = replace(kept, home=last, claim=kept.claim + 1)
    copy = Copy(Held(last, kept.id, 1, tuple(entry.cells)), claimed)
    world.overlay.in_turn(root, lambda turn: core.rendezvous._registry.take(copy, turn, late=False))
    network, lost = world.overlay.network, {(home, root)}
    arrivals = network.arrivals

    def lossy(sender: str, to: str, size_bytes: int, now_ns: int) -> tuple[int, ...]:
        return () if (sender, to) in lost else arrivals(sender, to, size_bytes, now_ns)

    network.arrivals = lossy  # type: ignore[method-assign]
    names = ("both 1", "2", "both 3")
    for name in names:
        world.publish(name, far, media_type=None)
        world.run_s(0.1)
    tasks = {task.item.id: task for task in core.dissemination._open}
    assert all(home in tasks[name].pending for name in names), "it has all of them"
    assert world.got("t") == [(name, "application/json") for name in names]

    def say(name: str) -> None:
        message = Served(tasks[name].item.identity, tasks[name].attempt, (), (kept.id,))
        world.world.tell(root, message, sender=last)

    lost.add((root, home))
    say("both 1")
    world.run_s(0.1)
    lost.clear()
    say("both 3")
    world.run_s(5)
    assert world.got("s") == [("both 1", "application/json"), ("both 3", "application/json")]
    assert world.violations() == []


def test_a_root_hears_that_a_home_has_lost_a_client_in_the_order_of_items() -> None:
    """What it says of the first comes late; the second must not go elsewhere before it."""
    world = ContentWorld(5)
    root = world.root_of()
    home, far, *_ = (one for one in world.members if one != root)
    world.subscribe("s", home, MAPS)
    world.run_s(3)
    world.world.crash(home)
    for name in ("1", "2"):
        world.publish(name, far, media_type=None)
        world.run_s(1)
    running = world.world.nodes[root].broker
    assert running is not None
    unsettled = running.core.dissemination._open
    tasks = list(unsettled)
    assert [(task.item.id, list(task.pending)) for task in tasks] == [("1", [home]), ("2", [home])]

    def say(task: Task) -> list[str]:
        unknown = (scoped_id("@s", "s"),)
        message = Served(task.item.identity, task.attempt + 1, (), unknown)
        world.world.tell(root, message, sender=home)
        return [one.item.id for one in unsettled]

    assert say(tasks[1]) == ["1", "2"]
    assert say(tasks[0]) == []


def arrival(number: int, after: int, *, attempt: int = 1, after_attempt: int = 1) -> Arrival:
    before = (1, after, after_attempt) if after else NOTHING_BEFORE
    return Arrival(item(number), ROOT, attempt, PDF, before, (Grant("s", PDF),), {})


def finish(items: FinishedItems, number: int, *, root: str = ROOT, attempt: int = 1) -> list[int]:
    items.put(
        Finished(ItemId("", "/s", str(number)), 0, 0, 1, number, root, attempt, (), done=True)
    )
    return [released.item.number for released in items.released(item(number))]


@given(st.permutations(range(1, 7)), st.data())
def test_a_home_hands_out_in_order_however_items_come(
    order: list[int], data: st.DataObject
) -> None:
    """The property: nothing overtakes what it is said to follow, and nothing is stuck."""
    after = {number: data.draw(st.sampled_from([0, number - 1])) for number in order}
    items = FinishedItems()
    done: list[int] = []
    for number in order:
        ready = [arrival(number, after[number])]
        while ready:
            following = ready.pop()
            if items.holds_back(following):
                items.hold(following)
                continue
            done.append(following.item.number)
            items.put(
                Finished(
                    ItemId("", "/s", str(done[-1])), 0, 0, 1, done[-1], "root", 1, (), done=True
                )
            )
            ready.extend(reversed(items.released(following.item)))
    assert sorted(done) == list(range(1, 7))
    for number, before in after.items():
        assert before == 0 or done.index(before) < done.index(number)


def test_an_item_that_is_held_back_twice_is_handed_out_once() -> None:
    items = FinishedItems()
    assert items.holds_back(arrival(2, 1))
    assert items.hold(arrival(2, 1))
    assert not items.hold(arrival(2, 1))
    assert items.hold(arrival(2, 1, attempt=2))
    assert finish(items, 1) == [2, 2], "one for each attempt"
    assert finish(items, 1) == []


def test_an_item_waits_for_the_attempt_that_was_for_everybody() -> None:
    """An earlier one, or another root's, may have been for some of the registrations only."""
    items = FinishedItems()
    finish(items, 1)
    assert items.holds_back(arrival(2, 1, after_attempt=2))
    finish(items, 1, root="other", attempt=9)
    assert items.holds_back(arrival(2, 1, after_attempt=2))
    finish(items, 1, attempt=2)
    assert not items.holds_back(arrival(2, 1, after_attempt=2))


def test_what_waits_for_an_item_that_never_comes_is_forgotten() -> None:
    items = FinishedItems()
    assert items.holds_back(arrival(2, 1))
    items.abandon(item(2).sequence, 1)
    assert finish(items, 1) == []


def test_a_subscription_is_past_what_came_before_something_that_it_has_got() -> None:
    items = FinishedItems()
    items.put(Finished(ItemId("", "/s", "2"), 0, 0, 1, 2, "root", 1, ("s",)))
    items.put(Finished(ItemId("", "/s", "7"), 0, 0, 2, 7, "root", 1, ("s",)))
    sequence = item(1).sequence
    assert items.is_past("s", sequence, 1)
    assert not items.is_past("other", sequence, 1)
    assert items.is_past("s", sequence, 3), "number 7 of the next series came later"
    assert not items.is_past("s", item(1, 3).sequence, 1)
    assert not items.is_past("s", ("", 0, 1, 1), 1), "in another cell"


def test_what_a_client_has_got_elsewhere_is_not_done_here() -> None:
    items = FinishedItems()
    items.put(Finished(ItemId("", "/s", "1"), 0, 0, 1, 1, "root", 1, ("s",)))
    assert items.holds_back(arrival(2, 1)), "others may still be to get number 1"


def test_an_item_that_takes_longer_is_not_overtaken() -> None:
    world = ContentWorld(6)
    world.subscribe("s", world.members[0], MAPS, accept=[JPEG])
    world.run_s(3)
    # Twenty seconds of conversion, and then one of hardly any.
    world.publish("large", world.members[1], megabytes=50.0)
    world.publish("small", world.members[1], megabytes=0.01)
    world.run_s(15)
    assert world.got("s") == []
    world.run_s(25)
    assert world.got("s") == [("large", JPEG), ("small", JPEG)]
    assert world.violations() == []
    assert world.once.made == 2


def test_what_is_published_at_the_next_home_does_not_overtake_what_the_lost_one_had_sent() -> None:
    """The next home numbers anew. Seen with `lost-root.toml`, seed 70303."""
    world = ContentWorld(6)
    root = world.root_of()
    home, lost, following = [name for name in world.members if name != root][:3]
    world.subscribe("s", home, MAPS, accept=[JPEG])
    world.run_s(3)
    world.publish("large", lost, megabytes=50.0)
    world.run_s(1)
    world.world.crash(lost)
    world.publishers["/maps"].reattach(following)
    world.publish("small", following, megabytes=0.01)
    world.run_s(10)
    assert world.got("s") == []
    world.run_s(30)
    assert world.got("s") == [("large", JPEG), ("small", JPEG)]
    assert world.violations() == []


def test_sources_and_cells_do_not_wait_for_each_other() -> None:
    world = ContentWorld(6)
    world.subscribe("s", world.members[0], accept=[JPEG])
    world.run_s(4)
    world.publish("large", world.members[1], megabytes=50.0)
    world.publish("other cell", world.members[1], kind="other", media_type=JPEG)
    world.publish("other source", world.members[2], source="/other", media_type=JPEG)
    world.run_s(15)
    assert sorted(world.got("s")) == [("other cell", JPEG), ("other source", JPEG)]
