"""Room: how much a root takes, and when it says so.

`Taken` is what lets a publisher's home offer more. A root that has more on its way than it should
takes an item all the same, as it is there already, and says so later. Only when it cannot keep any
more it defers what it is offered, which then has to be sent again. What is kept for homes that are
away does not count as on its way: they may be away for long, and nobody is to wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator

from distributary.broker.dissemination.debts import Debts
from distributary.broker.dissemination.messages import Item, ItemId, Offer, SequenceName
from distributary.broker.dissemination.task import Sequence, Task
from distributary.broker.dissemination.unsettled import Unsettled
from distributary.broker.pacing import Pacing
from distributary.broker.settings import Settings, ns

__all__ = ["EarlyOffers", "Room"]


class Room:
    """How much room one root has.

    Attributes
    ----------
    items, bytes
        How many items it keeps, and what they take.
    """

    def __init__(self, settings: Settings, under_way: Unsettled, debts: Debts) -> None:
        content = settings.content
        self.items = 0
        self.bytes = 0
        self._items_max, self._bytes_max = content.items_max, content.bytes_max
        self._identities_max = settings.publishing.identities_max
        self._open_items, self._open_bytes = content.open_items, content.open_bytes
        self._kept_ns = ns(content.retention_s)
        self._under_way = under_way
        self._debts = debts
        self._untold: dict[ItemId, None] = {}
        self._pacing = Pacing(ns(settings.publishing.busy_s), 2 * self._kept_ns)

    def enter(self, task: Task) -> None:
        """Note that an item is kept."""
        self.items += 1
        self.bytes += task.size_bytes

    def leave(self, task: Task) -> None:
        """Note that an item is kept no longer."""
        self.items -= 1
        self.bytes -= task.size_bytes

    def is_full(self, identities: int) -> bool:
        """Whether no more can be kept, or known."""
        return (
            self.items >= self._items_max
            or self.bytes >= self._bytes_max
            or self.items + identities >= self._identities_max
        )

    def wait_ns(self, now_ns: int, free_ns: int | None) -> int:
        """Return after how long something that is deferred is to be offered again.

        Parameters
        ----------
        free_ns
            When the next item is forgotten.
        """
        gap_ns = self._kept_ns // max(self.items, 1)
        return self._pacing.wait_ns(now_ns, free_ns=free_ns or now_ns, gap_ns=gap_ns)

    @property
    def is_behind(self) -> bool:
        """Whether more is on its way to homes that are there than should be."""
        under_way, debts = self._under_way, self._debts
        return (
            len(under_way) - debts.items > self._open_items
            or under_way.bytes - debts.bytes > self._open_bytes
        )

    def say_later(self, identity: ItemId) -> None:
        """Say that an item is taken when less is on its way."""
        self._untold[identity] = None

    def said(self, identity: ItemId) -> None:
        """Note that it was said, or need not be any more."""
        self._untold.pop(identity, None)

    def to_say(self) -> Iterator[ItemId]:
        """Go through the items of which it can be said now, the first first."""
        while self._untold and not self.is_behind:
            identity = next(iter(self._untold))
            del self._untold[identity]
            yield identity


class EarlyOffers:
    """The items that wait for one before them, of all sequences; the oldest give way to others.

    Whoever has offered them does so again. Should what they wait for never come, as nobody has
    it, they do not stay for ever.
    """

    def __init__(self, settings: Settings) -> None:
        self._items_max = settings.content.early_items
        self._bytes_max = settings.content.early_bytes
        self._sizes: dict[tuple[SequenceName, int], int] = {}
        self.bytes = 0

    @property
    def items(self) -> int:
        """How many wait."""
        return len(self._sizes)

    def enter(self, offer: Offer, sequences: dict[SequenceName, Sequence]) -> None:
        """Have an item wait, in the place of others if need be."""
        item = offer.item
        self.leave(item)
        size_bytes = len(item.event)
        self._sizes[item.sequence, item.number] = size_bytes
        self.bytes += size_bytes
        while self.items > self._items_max or self.bytes > self._bytes_max:
            place, number = next(iter(self._sizes))
            self.bytes -= self._sizes.pop((place, number))
            sequence = sequences.get(place)
            if sequence is not None:
                sequence.drop(number)
                if sequence.is_idle:
                    del sequences[place]

    def leave(self, item: Item) -> None:
        """Have an item wait no longer."""
        self.bytes -= self._sizes.pop((item.sequence, item.number), 0)
