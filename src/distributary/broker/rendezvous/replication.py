"""Replication: which broker keeps the registrations of a cell, and how they get there.

The root of a cell keeps them, and so does the surrogate, which would be the root without it.
A root that is not the root any more hands them over. Everybody else who still has some hands
them over too, and forgets them once the root has them safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

from distributary.broker.effects import Turn
from distributary.broker.membership.messages import Status
from distributary.broker.rendezvous.messages import Copies, Copy, Handover
from distributary.broker.rendezvous.table import Entry, EntryKey
from distributary.topology.prefix_routing import root_among

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Replication", "Role"]

_COPIES_MAX = 256
_COPIES_CHARACTERS_MAX = 2**20

Advertisers = Iterable[tuple[int, str]]


class Role(Enum):
    """What a broker is to a cell."""

    ROOT = auto()
    SURROGATE = auto()
    NOBODY = auto()


class Replication:
    """Who is what to which cell, as far as this broker knows, and who has copies."""

    def __init__(self, core: Core) -> None:
        self._core = core
        # Which peer has stored, and which has been sent, what was last said; by cell.
        self._copied: dict[EntryKey, dict[int, tuple[str, int]]] = {}
        self._sent: dict[EntryKey, dict[int, tuple[str, int]]] = {}
        self._down_ns: dict[str, int] = {}
        self._without: tuple[tuple[str, ...], str, tuple[str, ...]] = ((), "", ())

    @property
    def complete(self) -> bool:
        """Whether no broker is known to be down."""
        return not self._away()

    def stand_in_since(self, cell: int, now_ns: int) -> int | None:
        """Return since when this broker is the root of a cell by the absence of others.

        None when it is the root or the surrogate by right, counting those that are down: then
        it knows all that there is to know.
        """
        down = self._away()
        if not down:
            self._down_ns.clear()
            return None
        self._down_ns = {peer: self._down_ns.get(peer, now_ns) for peer in down}
        everybody = sorted({*self._core.membership.alive(), *down})
        key = self._core.rendezvous.key_of(cell)
        since_ns = 0
        for _ in range(2):
            first = root_among(everybody, key)
            if first == self._core.identity:
                return None
            everybody.remove(first)
            since_ns = max(since_ns, self._down_ns.get(first, 0))
        return since_ns

    def root_of(self, cell: int) -> str:
        """Return the root of a cell."""
        return self._core.membership.root_of(self._core.rendezvous.key_of(cell))

    def is_root(self, cell: int) -> bool:
        """Whether this broker is the root of a cell."""
        return self.root_of(cell) == self._core.identity

    def role(self, cell: int) -> Role:
        """Return what this broker is to a cell."""
        root = self.root_of(cell)
        if root == self._core.identity:
            return Role.ROOT
        others = self._alive_without(root)
        key = self._core.rendezvous.key_of(cell)
        if others and root_among(others, key) == self._core.identity:
            return Role.SURROGATE
        return Role.NOBODY

    def surrogate_of(self, cell: int) -> str | None:
        """Return who would be the root of a cell without this broker."""
        return self._core.membership.surrogate_of(self._core.rendezvous.key_of(cell))

    def safe(self, entry: Entry, cell: int) -> bool:
        """Whether the surrogate, if there is any, has what was last said."""
        surrogate = self.surrogate_of(cell)
        if surrogate is None:
            return True
        return self._copied.get(entry.key, {}).get(cell) == (surrogate, entry.version)

    def kept(self, entry: Entry, cells: Iterable[int], peer: str) -> None:
        """Note that a peer has stored what was last said."""
        copied = self._copied.setdefault(entry.key, {})
        for cell in cells:
            copied[cell] = (peer, entry.version)

    def forget(self, key: EntryKey) -> None:
        """Forget who has copies of a registration that is not kept here any more."""
        self._copied.pop(key, None)
        self._sent.pop(key, None)

    def lost(self, peers: Sequence[str]) -> None:
        """Note that brokers are gone, with all that they had stored."""
        for known in (self._copied, self._sent):
            for by_cell in known.values():
                for cell in [cell for cell, (peer, _) in by_cell.items() if peer in peers]:
                    del by_cell[cell]

    def copy(
        self,
        wanted: Iterable[tuple[Entry, Iterable[int]]],
        turn: Turn,
        *,
        again: bool = False,
    ) -> None:
        """Send surrogates what they do not have, of cells of which this broker is the root.

        Parameters
        ----------
        wanted
            Entries, with the cells to be copied.
        again
            Whether to send also what is on its way already.
        """
        by_peer: dict[str, list[Copy]] = {}
        for entry, cells in wanted:
            missing: dict[str, set[int]] = {}
            sent = self._sent.setdefault(entry.key, {})
            for cell in cells:
                surrogate = self.surrogate_of(cell)
                if surrogate is None or self.safe(entry, cell):
                    continue
                now = (surrogate, entry.version)
                if again or sent.get(cell) != now:
                    sent[cell] = now
                    missing.setdefault(surrogate, set()).add(cell)
            for peer, some in missing.items():
                by_peer.setdefault(peer, []).append(entry.copy(some))
        for peer in sorted(by_peer):
            for portion in _portions(by_peer[peer]):
                self._core.links.send(peer, Copies(portion), turn)

    def hand_over(
        self,
        wanted: Iterable[tuple[Entry, Iterable[int]]],
        advertisers: Advertisers,
        turn: Turn,
    ) -> None:
        """Send the roots of cells all that is known here of them."""
        by_peer: dict[str, list[Copy]] = {}
        for entry, cells in wanted:
            for root, some in self._by_root(cells).items():
                by_peer.setdefault(root, []).append(entry.copy(set(some)))
        told: dict[str, list[tuple[int, str]]] = {}
        for cell, home in advertisers:
            told.setdefault(self.root_of(cell), []).append((cell, home))
        for peer in sorted({*by_peer, *told}):
            portions = _portions(by_peer.get(peer, []))
            for number, portion in enumerate(portions):
                last = number == len(portions) - 1
                pairs = tuple(told.get(peer, ())) if last else ()
                self._core.links.send(peer, Handover(portion, pairs), turn)

    def _by_root(self, cells: Iterable[int]) -> dict[str, list[int]]:
        by_root: dict[str, list[int]] = {}
        for cell in cells:
            by_root.setdefault(self.root_of(cell), []).append(cell)
        return by_root

    def _away(self) -> list[str]:
        return self._core.membership.gossip.roster.away(Status.DOWN)

    def _alive_without(self, peer: str) -> tuple[str, ...]:
        alive = self._core.membership.alive()
        before, without, others = self._without
        if before is not alive or without != peer:
            others = tuple(one for one in alive if one != peer)
            self._without = (alive, peer, others)
        return others


def _portions(copies: list[Copy]) -> list[tuple[Copy, ...]]:
    """Cut copies into portions that make messages of a bearable size; at least one."""
    portions: list[list[Copy]] = [[]]
    characters = 0
    for copy in copies:
        size = 0 if copy.registration is None else len(copy.registration.filters)
        full = len(portions[-1]) == _COPIES_MAX or characters + size > _COPIES_CHARACTERS_MAX
        if full and portions[-1]:
            portions.append([])
            characters = 0
        portions[-1].append(copy)
        characters += size
    return [tuple(portion) for portion in portions]
