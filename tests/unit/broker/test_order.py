"""What one publisher publishes in one cell is taken, and handed to clients, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.content_worlds import JPEG, PDF, ContentWorld

from distributary.broker.deliveries.finished import Arrival, Finished, FinishedItems
from distributary.broker.dissemination.messages import Item, ItemId, Offer, Served
from distributary.broker.dissemination.task import Pending, Sequence, Task
from distributary.broker.dissemination.unsettled import Unsettled
from distributary.broker.plan_part import NOTHING_BEFORE, Grant
from distributary.broker.subscriptions.subscription import scoped_id

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


def test_an_item_follows_the_last_one_that_its_home_has_not_confirmed() -> None:
    """Also when that is of an earlier series, but never what another cell or source has sent."""
    unsettled = Unsettled()
    places = [(1, 1), (1, 2), (5, 1), (5, 2)]
    tasks = [Task(item(number, series), None) for series, number in places]
    stranger = Task(item(1, 3)._replace(cell=1), None)
    for task in [*reversed(tasks), stranger]:
        unsettled.add(task)
        task.pending["home"] = Pending(0)
        task.pending["home"].attempt = 10 * task.item.series + task.item.number
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
    first, second = Task(item(1), None), Task(item(2), None)
    for task in (first, second):
        unsettled.add(task)
    waiting = first.pending["home"] = Pending(0)
    waiting.registrations["2@cs"] = (None, ())
    assert unsettled.owed_before(second, "home", "1+2@cs")
    assert not unsettled.owed_before(first, "home", "1+2@cs")
    assert not unsettled.owed_before(second, "other", "1+2@cs")
    assert not unsettled.owed_before(second, "home", "2@ct")


def test_a_root_hears_that_a_home_has_lost_a_client_in_the_order_of_items() -> None:
    """What the home has said of the first got lost; the second must not go elsewhere before it."""
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
    assert say(tasks[0]) == ["2"]
    assert say(tasks[1]) == []


def arrival(number: int, after: int, *, attempt: int = 1, after_attempt: int = 1) -> Arrival:
    before = (1, after, after_attempt) if after else NOTHING_BEFORE
    return Arrival(item(number), ROOT, attempt, PDF, before, (Grant("s", PDF),), {})


def finish(items: FinishedItems, number: int, *, root: str = ROOT, attempt: int = 1) -> list[int]:
    items.put(Finished(ItemId("", "/s", str(number)), 0, 1, number, root, attempt, (), done=True))
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
                Finished(ItemId("", "/s", str(done[-1])), 0, 1, done[-1], "root", 1, (), done=True)
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
    items.put(Finished(ItemId("", "/s", "2"), 0, 1, 2, "root", 1, ("s",)))
    items.put(Finished(ItemId("", "/s", "7"), 0, 2, 7, "root", 1, ("s",)))
    sequence = item(1).sequence
    assert items.is_past("s", sequence, 1)
    assert not items.is_past("other", sequence, 1)
    assert items.is_past("s", sequence, 3), "number 7 of the next series came later"
    assert not items.is_past("s", item(1, 3).sequence, 1)
    assert not items.is_past("s", ("", "/s", 1, 1), 1), "in another cell"


def test_what_a_client_has_got_elsewhere_is_not_done_here() -> None:
    items = FinishedItems()
    items.put(Finished(ItemId("", "/s", "1"), 0, 1, 1, "root", 1, ("s",)))
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
