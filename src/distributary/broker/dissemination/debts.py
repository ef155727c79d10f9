"""Debts: what a root keeps for homes that are away, and whom it has given up.

A home may be away for minutes while everybody else goes on. What it has to get stays at the root,
and with it at the publishers' homes. When that is too much the root gives up one home, the one
that is owed most, and nobody else hears of it. To forget the oldest of everybody instead would
end many subscriptions for the sake of one home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from distributary.broker.dissemination.items import Unsettled
from distributary.broker.dissemination.messages import (
    PRESSURE_SINCE,
    Item,
    ItemId,
    Missed,
    Offer,
    SequenceName,
)
from distributary.broker.dissemination.task import Sequence, Task
from distributary.broker.encoding import wire
from distributary.broker.host import Turn
from distributary.broker.settings import ContentSettings, Settings, ns
from distributary.broker.timers import Pacing, Retention, Timer

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["AbsentHomes", "Debts", "EarlyOffers", "Forgone", "MissedRecord", "Room"]


@wire(620, since=PRESSURE_SINCE)
@dataclass(frozen=True, slots=True)
class MissedRecord:
    """What a home is to be told that it has missed, as it is kept; the fields are `Missed`'s."""

    home: str
    registrations: tuple[tuple[str, int], ...]
    given_up_ns: int


class Debts:
    """What one root keeps for homes that are away.

    Attributes
    ----------
    bytes
        How much that is; an item that several homes are owed counts once.
    """

    def __init__(self, settings: ContentSettings) -> None:
        self._items_max, self._bytes_max = settings.absent_items, settings.absent_bytes
        self.bytes = 0
        self._sizes: dict[ItemId, int] = {}
        self._homes: dict[ItemId, set[str]] = {}
        self._by_home: dict[str, dict[ItemId, None]] = {}
        self._owed_bytes: dict[str, int] = {}

    @property
    def items(self) -> int:
        """How many items are kept."""
        return len(self._sizes)

    def owe(self, home: str, task: Task) -> None:
        """Note that an item is kept for a home."""
        identity = task.item.identity
        owed = self._by_home.setdefault(home, {})
        if identity in owed:
            return
        owed[identity] = None
        if identity not in self._sizes:
            self._sizes[identity] = task.size_bytes
            self._homes[identity] = set()
            self.bytes += task.size_bytes
        self._homes[identity].add(home)
        self._owed_bytes[home] = self._owed_bytes.get(home, 0) + self._sizes[identity]

    def settled(self, task: Task) -> None:
        """Note that nobody is owed an item any more."""
        for home in self._homes.get(task.identity, set()).copy():
            self.paid(home, task.identity)

    def paid(self, home: str, identity: ItemId) -> None:
        """Note that a home is not owed an item any more."""
        owed, homes = self._by_home.get(home, {}), self._homes.get(identity, set())
        if identity not in owed:
            return
        del owed[identity]
        homes.discard(home)
        self._owed_bytes[home] -= self._sizes[identity]
        if not owed:
            del self._by_home[home], self._owed_bytes[home]
        if not homes:
            del self._homes[identity]
            self.bytes -= self._sizes.pop(identity)

    def clear(self, home: str) -> set[ItemId]:
        """Note that a home is back, or lost for ever; return what it was owed."""
        owed = self._by_home.pop(home, {})
        self._owed_bytes.pop(home, None)
        for identity in owed:
            homes = self._homes[identity]
            homes.discard(home)
            if not homes:
                del self._homes[identity]
                self.bytes -= self._sizes.pop(identity)
        return set(owed)

    def first_of(self, home: str, count: int) -> list[ItemId]:
        """Return some of the items that a home is owed, the oldest first."""
        return list(islice(self._by_home.get(home, {}), count))

    def owed_most(self) -> str | None:
        """Return the home to be given up, if more is kept than should be."""
        if self.items <= self._items_max and self.bytes <= self._bytes_max:
            return None
        return max(self._by_home, key=lambda home: (self._owed_bytes[home], home))


class Forgone:
    """The registrations that a root has given up, and what they have missed, by home."""

    def __init__(self) -> None:
        self._by_home: dict[str, tuple[int, dict[str, int]]] = {}

    def __bool__(self) -> bool:
        """Whether any home is to be told that it has missed something."""
        return bool(self._by_home)

    def __contains__(self, home: str) -> bool:
        """Whether a home is to be told that it has missed something."""
        return home in self._by_home

    def __iter__(self) -> Iterator[str]:
        """Go through the homes that are."""
        return iter(sorted(self._by_home))

    def homes(self, homes: Iterable[str]) -> set[str]:
        """Return those of some homes that are."""
        return {home for home in homes if home in self._by_home}

    def load(self, record: MissedRecord) -> None:
        """Take back what was kept."""
        self._by_home[record.home] = (record.given_up_ns, dict(record.registrations))

    def miss(self, home: str, registrations: Iterable[str], turn: Turn) -> None:
        """Note that some registrations of a home do not get an item."""
        _, counts = self._by_home.setdefault(home, (turn.now_ns, {}))
        for name in registrations:
            counts[name] = counts.get(name, 0) + 1

    def skips(self, home: str, name: str, since_ns: int) -> bool:
        """Whether a registration misses the next item too, and take note of that.

        What its client gets before it is told would come behind a gap.
        """
        known = self._by_home.get(home)
        if known is None or name not in known[1] or since_ns > known[0]:
            return False
        known[1][name] += 1
        return True

    def message(self, home: str) -> Missed:
        """Return what a home is told."""
        given_up_ns, counts = self._by_home[home]
        return Missed(tuple(sorted(counts.items())), given_up_ns)

    def keep(self, home: str, turn: Turn) -> None:
        """Make durable what a home has missed."""
        told = self.message(home)
        record = MissedRecord(home, told.registrations, told.given_up_ns)
        turn.persist(_key(home), record)

    def forget(self, home: str, turn: Turn) -> None:
        """Give up nothing of a home any more."""
        if self._by_home.pop(home, None) is not None:
            turn.erase(_key(home))


def _key(home: str) -> str:
    return f"dissemination/missed/{home}"


# So many items are given up in one turn, and this long after that the next ones.
_GIVEN_UP_AT_ONCE = 64
_GIVE_UP_NS = 1_000_000


class AbsentHomes:
    """The homes that are away, as one root sees them.

    Parameters
    ----------
    unsettled
        The items for which something is to be done.
    keep, settle
        Called with `(task, turn)` when an item is owed to one home less, or to none any more.

    Attributes
    ----------
    debts, forgone
        What is kept for whom, and what was given up.
    """

    def __init__(
        self,
        core: Core,
        unsettled: Unsettled,
        keep: Callable[[Task, Turn], None],
        settle: Callable[[Task, Turn], None],
    ) -> None:
        self.debts = Debts(core.settings.content)
        self.forgone = Forgone()
        self._core = core
        self._unsettled = unsettled
        self._keep = keep
        self._settle = settle
        self._excused_ns = ns(core.settings.content.retention_s)
        self._excusing = Retention(core.timers, self.forgone.forget)
        # The home that is being given up, which takes some turns.
        self._given_up: str | None = None
        self._relief: Timer | None = None

    def start(self, turn: Turn) -> None:
        """Tell those who are there."""
        for home in self.forgone:
            self._tell(home, turn)

    def snapshot(self) -> dict[str, Any]:
        """Return how much is kept, and who is given up."""
        return {
            "absent": {"items": self.debts.items, "bytes": self.debts.bytes},
            "given_up": list(self.forgone),
        }

    def owe(self, task: Task, turn: Turn) -> None:
        """Note for whom an item is kept because they are away; it may be too much."""
        for home in task.pending:
            if not self._core.membership.is_alive(home):
                self.debts.owe(home, task)
        too_much = self._relief is None and self.debts.owed_most() is not None
        # Not everybody may know what it means to have missed something.
        if too_much and self._core.membership.version >= PRESSURE_SINCE:
            self._relief = self._core.timers.at(turn.now_ns + _GIVE_UP_NS, self._relieve)

    def _relieve(self, turn: Turn) -> None:
        """Give up some of what the home is owed that is owed most; never all of it in a turn."""
        self._relief = None
        home = self._given_up or self.debts.owed_most()
        if home is None:
            return
        for identity in self.debts.first_of(home, _GIVEN_UP_AT_ONCE):
            task = self._unsettled.get(identity)
            if task is None or home not in task.pending:
                self.debts.paid(home, identity)
                continue
            names = tuple(task.pending.pop(home).registrations)
            task.unknown.update((home, name) for name in names)
            self.forgone.miss(home, names, turn)
            self.debts.paid(home, identity)
            if task.pending:
                self._keep(task, turn)
            else:
                self._settle(task, turn)
        if home in self.forgone:
            self.forgone.keep(home, turn)
        self._given_up = home if self.debts.first_of(home, 1) else None
        self._relief = self._core.timers.at(turn.now_ns + _GIVE_UP_NS, self._relieve)

    def forgo(self, task: Task, homes: Iterable[str]) -> None:
        """Leave out of an item who has missed one before it, and is told so."""
        for home in task.pending.keys() & self.forgone.homes(homes):
            registrations = task.pending[home].registrations
            skipped = [name for name in registrations if self.forgone.skips(home, name, 0)]
            task.confirmed(home, (), skipped)

    def changed(self, came: set[str], gone: set[str], turn: Turn) -> None:
        """Note which homes are owed nothing any more for being away."""
        for home in sorted(came | gone):
            self.debts.clear(home)
            if home == self._given_up:
                self._given_up = None
            if home not in self.forgone:
                continue
            if home in gone:
                self.forgone.forget(home, turn)
            else:
                self._tell(home, turn)

    def _tell(self, home: str, turn: Turn) -> None:
        """Tell a home that is back what it has missed, which ends those subscriptions."""
        if self._core.membership.is_alive(home):
            self._core.links.send(home, self.forgone.message(home), turn)
            # By then it has withdrawn them. What it registers anew is in force later.
            self._excusing.keep(home, turn.now_ns + self._excused_ns)


# Room: how much a root takes, and when it says so.
#
# `Taken` is what lets a publisher's home offer more. A root that has more on its way than it
# should takes an item all the same, as it is there already, and says so later. Only when it cannot
# keep any more it defers what it is offered, which then has to be sent again. What is kept for
# homes that are away does not count as on its way: they may be away for long, and nobody is to
# wait for them.


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
