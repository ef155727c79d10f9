"""The items of one publisher in one cell, which a root takes in the order of their numbers."""

from __future__ import annotations

from bisect import bisect_left, insort

from distributary.broker.dissemination.task import Task
from distributary.broker.messages.content import Offer
from distributary.broker.plan_part import NOTHING_BEFORE, After

__all__ = ["Sequence"]


class Sequence:
    """The items of one series, as far as a root knows them.

    Attributes
    ----------
    following
        The number of the item to be taken next; None before the first.
    tasks
        By number, what has been taken and is not forgotten.
    """

    __slots__ = ("_early", "_open", "following", "tasks")

    def __init__(self) -> None:
        self.following: int | None = None
        self.tasks: dict[int, Task] = {}
        self._early: dict[int, Offer] = {}
        self._open: list[int] = []

    def is_new(self, offer: Offer) -> bool:
        """Whether an item has not been taken yet; if so it will be `ready` in its turn."""
        # What the publisher's home does not offer any more was settled by another root.
        if self.following is None or self.following < offer.first:
            self.following = offer.first
            self._early = {n: early for n, early in self._early.items() if n >= offer.first}
        if offer.item.number < self.following:
            return False
        self._early[offer.item.number] = offer
        return True

    def ready(self) -> Offer | None:
        """Return the next item, if it is there, which counts as taken."""
        if self.following is None:
            return None
        offer = self._early.pop(self.following, None)
        if offer is not None:
            self.following += 1
        return offer

    def add(self, task: Task) -> None:
        """Enter an item that was taken."""
        number = task.item.number
        self.tasks[number] = task
        self.following = max(self.following or 0, number + 1)

    def remove(self, task: Task) -> None:
        """Forget an item."""
        self.settle(task)
        del self.tasks[task.item.number]

    def open(self, task: Task) -> None:
        """Note that an item is not settled, or not any more."""
        number = task.item.number
        place = bisect_left(self._open, number)
        if place == len(self._open) or self._open[place] != number:
            insort(self._open, number)

    def settle(self, task: Task) -> None:
        """Note that an item is settled."""
        number = task.item.number
        place = bisect_left(self._open, number)
        if place < len(self._open) and self._open[place] == number:
            del self._open[place]

    def before(self, task: Task, home: str) -> After:
        """Return the last earlier item that a home has not confirmed, if there is one."""
        for number in reversed(self._open[: bisect_left(self._open, task.item.number)]):
            pending = self.tasks[number].pending.get(home)
            if pending is not None:
                return number, pending.attempt
        return NOTHING_BEFORE
