"""The items that a root has not settled, and which of them a home must have before another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator

from distributary.broker.dissemination.messages import ItemId
from distributary.broker.dissemination.task import Place, Stream, Task
from distributary.broker.plan_part import NOTHING_BEFORE, After
from distributary.broker.subscriptions.subscription import subscription_of

__all__ = ["Unsettled"]


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
        self._owed: dict[Stream, dict[str, list[Place]]] = {}

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
        if task.identity not in self._tasks:
            self._tasks[task.identity] = task
            self.bytes += task.size_bytes
            self._counts[task.stream] += 1
            for home in task.pending:
                self.owe(task, home)

    def owe(self, task: Task, home: str) -> None:
        """Note that a home has not confirmed an item, whenever it begins to be waited for."""
        if task.identity in self._tasks:
            owed = self._owed.setdefault(task.stream, {}).setdefault(home, [])
            place = task.place
            at = bisect_left(owed, place)
            if at == len(owed) or owed[at] != place:
                owed.insert(at, place)

    def remove(self, task: Task) -> None:
        """Note that an item is settled."""
        stream = task.stream
        del self._tasks[task.identity]
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

    def owes(self, home: str, cell: int) -> bool:
        """Whether a home has not confirmed something in a cell."""
        return any(self._waits(home, stream) for stream in self._owed if stream[2] == cell)

    def cells_owed(self, home: str) -> set[int]:
        """Return the cells in which a home has not confirmed something."""
        return {stream[2] for stream in self._owed if self._waits(home, stream)}

    def _waits(self, home: str, stream: Stream) -> bool:
        owed = self._owed[stream].get(home)
        while owed:
            task = self._at(owed[-1])
            if task is not None and home in task.pending:
                return True
            owed.pop()
        return False

    def last_owed(self, task: Task, registration: str) -> frozenset[str]:
        """Return the homes that are owed the last earlier item for the same subscription.

        Not all that are owed an earlier one: a root that has crashed may have forgotten that a
        home has confirmed, and that it has sent what followed to another.
        """
        subscription = subscription_of(registration)
        last: dict[str, Place] = {}
        for home in self._owed.get(task.stream, {}):
            for earlier in self._owed_before(task, home):
                registrations = earlier.pending[home].registrations
                if subscription in map(subscription_of, registrations):
                    last[home] = earlier.place
                    break
        latest = max(last.values(), default=None)
        return frozenset(home for home, place in last.items() if place == latest)

    def later(self, task: Task, homes: Iterable[str]) -> list[Task]:
        """Return what its publisher has published since and some homes have not confirmed."""
        owed, place = self._owed.get(task.stream, {}), task.place
        places: set[Place] = set()
        for home in homes:
            of_home = owed.get(home)
            # Nearly always the item is the last one.
            if of_home and of_home[-1] > place:
                places.update(of_home[bisect_right(of_home, place) :])
        later = [self._at(place) for place in sorted(places)]
        return [one for one in later if one is not None]

    def _at(self, place: Place) -> Task | None:
        """Return the item that stands at a place, if it is not settled."""
        return self._tasks.get(place[2])

    def _owed_before(self, task: Task, home: str) -> Iterator[Task]:
        """Go through what a home waits for of what came before, the last first."""
        if self._counts[task.stream] <= (task.identity in self._tasks):
            # It is the only one, as is usual where brokers keep up.
            return
        owed = self._owed.get(task.stream, {}).get(home)
        if not owed:
            return
        for at in range(bisect_left(owed, task.place) - 1, -1, -1):
            earlier = self._at(owed[at])
            if earlier is not None and home in earlier.pending:
                yield earlier
            else:
                # It has been confirmed since.
                del owed[at]
