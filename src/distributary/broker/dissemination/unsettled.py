"""The items that a root has not settled, and which of them a home must have before another."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from distributary.broker.dissemination.messages import Item, ItemId
from distributary.broker.dissemination.task import Task
from distributary.broker.plan_part import NOTHING_BEFORE, After
from distributary.broker.subscriptions.subscription import subscription_of

__all__ = ["Unsettled"]

_Place = tuple[int, int, str]
"""(series, number, id) among what a source publishes in a cell."""


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
        self._places: dict[tuple[str, str, int], list[_Place]] = {}

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
            insort(self._places.setdefault(_stream(item), []), _place(task))

    def remove(self, task: Task) -> None:
        """Note that an item is settled."""
        item = task.item
        del self._tasks[item.identity]
        self.bytes -= task.size_bytes
        places = self._places[_stream(item)]
        del places[bisect_left(places, _place(task))]
        if not places:
            del self._places[_stream(item)]

    def before(self, task: Task, home: str) -> After:
        """Return the last earlier item that a home has not confirmed, if there is one."""
        for earlier in self._earlier(task):
            pending = earlier.pending.get(home)
            if pending is not None:
                return earlier.item.series, earlier.item.number, pending.attempt
        return NOTHING_BEFORE

    def owed_before(self, task: Task, home: str, registration: str) -> bool:
        """Whether a home has not confirmed an earlier item for the same subscription."""
        subscription = subscription_of(registration)
        return any(
            home in earlier.pending
            and subscription in map(subscription_of, earlier.pending[home].registrations)
            for earlier in self._earlier(task)
        )

    def _earlier(self, task: Task) -> Iterator[Task]:
        """Go through what its source has published before in the same cell, the last first."""
        item = task.item
        places = self._places.get(_stream(item), [])
        for _, _, identifier in reversed(places[: bisect_left(places, _place(task))]):
            yield self._tasks[item.identity._replace(id=identifier)]


def _stream(item: Item) -> tuple[str, str, int]:
    return item.tenant, item.source, item.cell


def _place(task: Task) -> _Place:
    return task.item.series, task.item.number, task.item.id
