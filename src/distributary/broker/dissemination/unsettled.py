"""The items that a root has not settled, and which of them a home must have before another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator

from distributary.broker.dissemination.messages import Item, ItemId
from distributary.broker.dissemination.task import Task
from distributary.broker.plan_part import NOTHING_BEFORE, After
from distributary.broker.subscriptions.subscription import subscription_of

__all__ = ["Stream", "Unsettled", "stream_of"]

_Place = tuple[int, int, str]
"""(series, number, id) among what a source publishes in a cell."""

Stream = tuple[str, str, int]
"""(tenant, source, cell): what a source publishes in a cell."""


class Unsettled:
    """The items that a root has not settled.

    A series follows the one that began before it. A publisher whose home is lost goes on at
    another, which numbers anew; what a home that was away has yet to get of the first series
    must not be overtaken by the second, although nothing in their numbers says so.

    Attributes
    ----------
    bytes
        What they take.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._tasks: dict[ItemId, Task] = {}
        self._counts: Counter[Stream] = Counter()
        # By stream and home, in order: whatever the home has not confirmed, and some that it
        # has. Most homes have confirmed all while one is away for which a thousand items wait;
        # to look through those for every home and item would take most of a root's time.
        self._owed: dict[Stream, dict[str, list[_Place]]] = {}

    def __iter__(self) -> Iterator[Task]:
        """Go through all of them, in the order in which they came."""
        return iter(self._tasks.values())

    def __len__(self) -> int:
        return len(self._tasks)

    def get(self, identity: ItemId) -> Task | None:
        """Return an item, if it is not settled."""
        return self._tasks.get(identity)

    def add(self, task: Task) -> None:
        """Note that an item is not settled, or not any more."""
        item = task.item
        if item.identity not in self._tasks:
            self._tasks[item.identity] = task
            self.bytes += task.size_bytes
            self._counts[stream_of(item)] += 1
            for home in task.pending:
                self.owe(task, home)

    def owe(self, task: Task, home: str) -> None:
        """Note that a home has not confirmed an item, whenever it begins to be waited for."""
        item = task.item
        if item.identity in self._tasks:
            owed = self._owed.setdefault(stream_of(item), {}).setdefault(home, [])
            place = _place(task)
            at = bisect_left(owed, place)
            if at == len(owed) or owed[at] != place:
                owed.insert(at, place)

    def remove(self, task: Task) -> None:
        """Note that an item is settled."""
        item = task.item
        stream = stream_of(item)
        del self._tasks[item.identity]
        self.bytes -= task.size_bytes
        self._counts[stream] -= 1
        if not self._counts[stream]:
            del self._counts[stream]
            self._owed.pop(stream, None)

    def before(self, task: Task, home: str) -> After:
        """Return the last earlier item that a home has not confirmed, if there is one."""
        for earlier in self._owed_before(task, home):
            return earlier.item.series, earlier.item.number, earlier.pending[home].attempt
        return NOTHING_BEFORE

    def last_owed(self, task: Task, registration: str) -> frozenset[str]:
        """Return the homes that are owed the last earlier item for the same subscription.

        Not all that are owed an earlier one: a root that has crashed may have forgotten that a
        home has confirmed, and that it has sent what followed to another.
        """
        subscription = subscription_of(registration)
        last: dict[str, _Place] = {}
        for home in self._owed.get(stream_of(task.item), {}):
            for earlier in self._owed_before(task, home):
                registrations = earlier.pending[home].registrations
                if subscription in map(subscription_of, registrations):
                    last[home] = _place(earlier)
                    break
        latest = max(last.values(), default=None)
        return frozenset(home for home, place in last.items() if place == latest)

    def later(self, task: Task, homes: Iterable[str]) -> list[Task]:
        """Return what its source has published since and some homes have not confirmed."""
        owed, place = self._owed.get(stream_of(task.item), {}), _place(task)
        places: set[_Place] = set()
        for home in homes:
            of_home = owed.get(home, [])
            places.update(of_home[bisect_right(of_home, place) :])
        identity = task.item.identity
        later = [self._tasks.get(identity._replace(id=name)) for _, _, name in sorted(places)]
        return [one for one in later if one is not None]

    def _owed_before(self, task: Task, home: str) -> Iterator[Task]:
        """Go through what its source has published before and a home waits for, the last first."""
        item = task.item
        owed = self._owed.get(stream_of(item), {}).get(home)
        if not owed:
            return
        identity = item.identity
        for at in range(bisect_left(owed, _place(task)) - 1, -1, -1):
            earlier = self._tasks.get(identity._replace(id=owed[at][2]))
            if earlier is not None and home in earlier.pending:
                yield earlier
            else:
                # It has been confirmed since.
                del owed[at]


def stream_of(item: Item) -> Stream:
    """Return what an item has its place in."""
    return item.tenant, item.source, item.cell


def _place(task: Task) -> _Place:
    return task.item.series, task.item.number, task.item.id
