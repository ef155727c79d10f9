"""Settled items: what a root still knows when it keeps no more of an item.

Content is kept for as long as it may be asked for. That there was an item is known for longer: a
client that was away, or another one with the same event, may publish it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.broker.dissemination.messages import ItemId
from distributary.broker.effects import Turn
from distributary.broker.encoding import journal_key, wire
from distributary.broker.settings import ns
from distributary.broker.timers import Retention

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["SettledItems", "SettledRecord"]


@wire(652)
@dataclass(frozen=True, slots=True)
class SettledRecord:
    """That a root has settled an item, of which it keeps no more."""

    identity: ItemId


class SettledItems:
    """The items that a root has settled and keeps no longer."""

    def __init__(self, core: Core) -> None:
        self._known: set[ItemId] = set()
        self._kept_ns = ns(core.settings.publishing.dedupe_s)
        self._forgetting = Retention(core.timers, self._forget)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, identity: ItemId) -> bool:
        """Whether an item was settled."""
        return identity in self._known

    def load(self, record: SettledRecord) -> None:
        """Take back an item."""
        self._known.add(record.identity)

    def start(self, turn: Turn) -> None:
        """Know everything for as long again."""
        self._forgetting.keep_all(sorted(self._known), turn.now_ns + self._kept_ns)

    def add(self, identity: ItemId, turn: Turn) -> None:
        """Know an item from now on."""
        self._known.add(identity)
        turn.persist(_key(identity), SettledRecord(identity))
        self._forgetting.keep(identity, turn.now_ns + self._kept_ns)

    def _forget(self, identity: ItemId, turn: Turn) -> None:
        if identity in self._known:
            self._known.remove(identity)
            turn.erase(_key(identity))


def _key(identity: ItemId) -> str:
    return f"dissemination/settled/{journal_key(*identity)}"
