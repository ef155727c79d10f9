"""Debts: what a root keeps for homes that are away, and whom it has given up.

A home may be away for minutes while everybody else goes on. What it has to get stays at the root,
and with it at the publishers' homes. When that is too much the root gives up one home, the one
that is owed most, and nobody else hears of it. To forget the oldest of everybody instead would
end many subscriptions for the sake of one home.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from distributary.broker.dissemination.messages import PRESSURE_SINCE, ItemId, Missed
from distributary.broker.dissemination.task import Task
from distributary.broker.effects import Turn
from distributary.broker.encoding import wire
from distributary.broker.settings import ContentSettings

__all__ = ["Debts", "Forgone", "MissedRecord"]


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
        identity = task.item.identity
        for home in self._homes.get(identity, set()).copy():
            self.paid(home, identity)

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
