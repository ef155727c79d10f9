"""Which items a home broker is done with, and which must wait for others.

Items of one publisher in one cell are handed to clients in order. A root that sends an item
while an earlier one is still on its way to the same home says so, and the later one is held
back until the earlier one is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from distributary.broker.addresses import Blob
from distributary.broker.dissemination.messages import Item, ItemId, SequenceName
from distributary.broker.encoding import encodable
from distributary.broker.plan_part import NOTHING_BEFORE, After, Grant

__all__ = ["Arrival", "Finished", "FinishedItems"]


class Arrival(NamedTuple):
    """An item that has come to a home broker for its clients.

    Attributes
    ----------
    root, attempt, original
        As in `Portion`.
    after, grants
        As in `plan_part.Home`.
    blobs
        Its content by format, for all that is granted; None for the one that is in the event.
    """

    item: Item
    root: str
    attempt: int
    original: str
    after: After
    grants: tuple[Grant, ...]
    blobs: Mapping[str, Blob | None]

    @property
    def awaited(self) -> tuple[SequenceName, int]:
        """The sequence and the number of what must be done before."""
        series, number, _ = self.after
        item = self.item
        return (item.tenant, item.publisher, item.cell, series), number


@encodable(570)
@dataclass(frozen=True, slots=True)
class Finished:
    """An item that a home broker is done with, as it is kept.

    Attributes
    ----------
    publisher, number
        As in `Item`; the number is 0 when it is not known any more.
    root, attempt
        The last attempt that was carried out; attempt 0 when none was here.
    subscriptions
        Those that have got it.
    done
        Whether all of this broker's clients have that are to get it. Of what a client has got
        elsewhere, or what a crash has left of it, that is not known.
    served, unknown
        As in `Served`.
    """

    identity: ItemId
    cell: int
    publisher: int
    series: int
    number: int
    root: str
    attempt: int
    subscriptions: tuple[str, ...]
    done: bool = False
    served: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def sequence(self) -> SequenceName:
        """What its number counts in."""
        return self.identity.tenant, self.publisher, self.cell, self.series


class FinishedItems:
    """The items that a home broker is done with, and those that wait for one.

    Parameters
    ----------
    items_max, bytes_max
        How many may wait. With more the oldest are forgotten: roots send them again.

    Attributes
    ----------
    held_items, held_bytes
        How many wait.
    """

    def __init__(self, items_max: int = 4_096, bytes_max: int = 2**26) -> None:
        self._items_max, self._bytes_max = items_max, bytes_max
        self.held_items = 0
        self.held_bytes = 0
        self._finished: dict[ItemId, Finished] = {}
        self._numbers: dict[SequenceName, dict[int, Finished]] = {}
        # By tenant, publisher and cell.
        self._by_stream: dict[tuple[str, int, int], dict[ItemId, Finished]] = {}
        self._held: dict[tuple[SequenceName, int], list[Arrival]] = {}

    def __iter__(self) -> Iterator[Finished]:
        """Go through what is done, by identity."""
        for identity in sorted(self._finished):
            yield self._finished[identity]

    def __len__(self) -> int:
        return len(self._finished)

    def get(self, identity: ItemId) -> Finished | None:
        """Return what is known of an item, if it is done."""
        return self._finished.get(identity)

    def put(self, finished: Finished) -> None:
        """Remember what is done of an item, and its number once all of it is done."""
        known = self._finished.get(finished.identity)
        if known is not None:
            self._leave_stream(known)
        self._finished[finished.identity] = finished
        self._by_stream.setdefault(finished.sequence[:3], {})[finished.identity] = finished
        if finished.done:
            self._numbers.setdefault(finished.sequence, {})[finished.number] = finished

    def forget(self, identity: ItemId) -> None:
        """Forget an item and its number; a copy that comes later counts as new."""
        finished = self._finished.pop(identity)
        self._leave_stream(finished)
        numbers = self._numbers.get(finished.sequence)
        if numbers is not None:
            numbers.pop(finished.number, None)
            if not numbers:
                del self._numbers[finished.sequence]

    def _leave_stream(self, finished: Finished) -> None:
        stream = finished.sequence[:3]
        del self._by_stream[stream][finished.identity]
        if not self._by_stream[stream]:
            del self._by_stream[stream]

    def is_past(self, subscription: str, sequence: SequenceName, number: int) -> bool:
        """Whether a subscription has got something that comes later, in this series or another."""
        return any(
            (finished.series, finished.number) > (sequence[3], number)
            and subscription in finished.subscriptions
            for finished in self._by_stream.get(sequence[:3], {}).values()
        )

    def holds_back(self, arrival: Arrival) -> bool:
        """Whether an item must wait; if so `hold` keeps it until it is `released`.

        What another root has sent of the item before may have been for others.
        """
        if arrival.after == NOTHING_BEFORE:
            return False
        sequence, number = arrival.awaited
        attempt = arrival.after[2]
        done = self._numbers.get(sequence, {}).get(number)
        return not (done is not None and done.root == arrival.root and done.attempt >= attempt)

    def hold(self, arrival: Arrival) -> bool:
        """Keep an item that must wait; False when it is there already."""
        held = self._held.setdefault(arrival.awaited, [])
        if any(_same(arrival, other) for other in held):
            return False
        held.append(arrival)
        self.held_items += 1
        self.held_bytes += _held_bytes(arrival)
        return True

    def released(self, item: Item) -> list[Arrival]:
        """Return what waited for an item, which is done now."""
        return self._drop(item.sequence, item.number)

    def abandon(self, sequence: SequenceName, number: int) -> list[Arrival]:
        """Forget what waits for an item that does not come; roots send it again."""
        return self._drop(sequence, number)

    def surplus(self) -> list[Arrival]:
        """Forget the oldest of what waits, if it is too much, and return that."""
        dropped: list[Arrival] = []
        while self.held_items > self._items_max or self.held_bytes > self._bytes_max:
            dropped += self._drop(*next(iter(self._held)))
        return dropped

    def _drop(self, sequence: SequenceName, number: int) -> list[Arrival]:
        dropped = self._held.pop((sequence, number), [])
        self.held_items -= len(dropped)
        self.held_bytes -= sum(map(_held_bytes, dropped))
        return dropped


def _held_bytes(arrival: Arrival) -> int:
    return len(arrival.item.event)


def _same(one: Arrival, other: Arrival) -> bool:
    return (one.item.identity, one.root, one.attempt) == (
        other.item.identity,
        other.root,
        other.attempt,
    )
