"""Replication: which broker keeps the registrations of a cell, and how they get there.

The root of a cell keeps them, and so does the surrogate, which would be the root without it.
Where one of the two is the registration's own home, the next in line keeps it as well: so
there are two besides the home, and one may be lost for ever while the home is down. A root
that is not the root any more hands them over. Everybody else who still has some hands them
over too, and forgets them once the root has them safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from distributary.broker.host import Turn
from distributary.broker.membership.messages import Status
from distributary.broker.rendezvous.messages import Copies, Copy, Handover, since_ns
from distributary.broker.rendezvous.table import Entry, EntryKey
from distributary.broker.subscriptions.subscription import subscription_of
from distributary.topology.prefix_routing import root_among

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Replication"]

# The root of a cell, and those who may have to keep its registrations too.
_LINE = 3
_COPIES_MAX = 256
_COPIES_CHARACTERS_MAX = 2**20

Advertisers = Iterable[tuple[int, str]]


class _Receipts:
    """Which peers have what was last said about registrations, by cell."""

    def __init__(self) -> None:
        self._by_key: dict[EntryKey, dict[int, tuple[int, tuple[str, ...]]]] = {}

    def peers(self, entry: Entry, cell: int) -> tuple[str, ...]:
        """Return who has the present version of an entry."""
        version, peers = self._by_key.get(entry.key, {}).get(cell, (0, ()))
        return peers if version == entry.version else ()

    def note(self, entry: Entry, cell: int, peer: str, keepers: Sequence[str]) -> None:
        """Note that a peer has it; one that is not to keep it may forget it from now on."""
        before = self.peers(entry, cell)
        peers = (*(one for one in before if one in keepers and one != peer), peer)
        self._by_key.setdefault(entry.key, {})[cell] = (entry.version, peers)

    def drop(self, entry: Entry, cell: int, peer: str) -> None:
        """Note that a peer may not have it any more."""
        before = self.peers(entry, cell)
        if peer in before:
            left = tuple(one for one in before if one != peer)
            self._by_key[entry.key][cell] = (entry.version, left)

    def forget(self, key: EntryKey) -> None:
        """Forget who has a registration."""
        self._by_key.pop(key, None)

    def lost(self, gone: Sequence[str]) -> None:
        """Note that brokers are gone, with all that they had."""
        for by_cell in self._by_key.values():
            for cell, (version, peers) in by_cell.items():
                if any(peer in gone for peer in peers):
                    left = tuple(peer for peer in peers if peer not in gone)
                    by_cell[cell] = (version, left)


class Replication:
    """Who is what to which cell, as far as this broker knows, and who has copies."""

    def __init__(self, core: Core) -> None:
        self._core = core
        # Who has stored, and who has been sent, what was last said.
        self._copied = _Receipts()
        self._sent = _Receipts()
        self._down_ns: dict[str, int] = {}

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

    def line(self, cell: int) -> tuple[str, ...]:
        """Return the root of a cell, who would be without it, and who without both."""
        return self._core.membership.line_of(self._core.rendezvous.key_of(cell), _LINE)

    def surrogate_of(self, cell: int) -> str | None:
        """Return who would be the root of a cell without its root."""
        line = self.line(cell)
        return line[1] if len(line) > 1 else None

    def is_near(self, cell: int) -> bool:
        """Whether this broker is the root or the surrogate of a cell."""
        return self._core.identity in self.line(cell)[:2]

    def keepers(self, home: str, cell: int) -> tuple[str, ...]:
        """Return who keeps what a home has registered in a cell, the root first.

        That are two besides the home, as far as there are so many. If there was only one,
        and it was lost while the home is down, nobody would know what is owed to the home.
        """
        line = self.line(cell)
        return line if home in line[:2] else line[:2]

    def keeps(self, home: str, cell: int) -> bool:
        """Whether this broker keeps what a home has registered in a cell."""
        return self._core.identity in self.keepers(home, cell)

    def replicas(self, entry: Entry, cell: int) -> list[str]:
        """Return who keeps a registration besides this broker, which is the root."""
        keepers = self.keepers(entry.key[0], cell)
        return [peer for peer in keepers if peer != self._core.identity]

    def safe(self, entry: Entry, cell: int) -> bool:
        """Whether all who are to keep it have what was last said."""
        copied = self._copied.peers(entry, cell)
        return all(peer in copied for peer in self.replicas(entry, cell))

    def kept(self, entry: Entry, cells: Iterable[int], peer: str) -> None:
        """Note that a peer has stored what was last said."""
        for cell in cells:
            self._copied.note(entry, cell, peer, self.keepers(entry.key[0], cell))

    def handed_over(self, entry: Entry, cells: Iterable[int], peer: str) -> list[int]:
        """Note that a peer does not mean to keep a registration.

        Returns
        -------
            The cells in which it need not. Whoever sees other brokers than the root does would
            forget what it is to keep, and the root believe that it has it.
        """
        free: list[int] = []
        for cell in cells:
            self._copied.drop(entry, cell, peer)
            self._sent.drop(entry, cell, peer)
            if not self.is_root(cell) or peer not in self.keepers(entry.key[0], cell):
                free.append(cell)
        return free

    def forget(self, key: EntryKey) -> None:
        """Forget who has copies of a registration that is not kept here any more."""
        self._copied.forget(key)
        self._sent.forget(key)

    def lost(self, peers: Sequence[str]) -> None:
        """Note that brokers are gone, with all that they had stored."""
        self._copied.lost(peers)
        self._sent.lost(peers)

    def copy(
        self,
        wanted: Iterable[tuple[Entry, Iterable[int]]],
        turn: Turn,
        *,
        again: bool = False,
    ) -> None:
        """Send others what they are to keep, of cells of which this broker is the root.

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
            for cell in cells:
                keepers = self.replicas(entry, cell)
                copied, sent = self._copied.peers(entry, cell), self._sent.peers(entry, cell)
                for peer in keepers:
                    if peer not in copied and (again or peer not in sent):
                        self._sent.note(entry, cell, peer, keepers)
                        missing.setdefault(peer, set()).add(cell)
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


def _portions(copies: list[Copy]) -> list[tuple[Copy, ...]]:
    """Cut copies into portions that make messages of a bearable size; at least one.

    What a subscription was before a change goes together with what it is now, as long as that is
    bearable, and else comes first: whoever knew the change alone would send what is owed by the
    earlier one behind what is newer.
    """
    generations: dict[tuple[str, str], list[Copy]] = {}
    for copy in copies:
        name = copy.held.home, subscription_of(copy.held.id)
        generations.setdefault(name, []).append(copy)
    portions: list[list[Copy]] = [[]]
    characters = 0
    for together in generations.values():
        together.sort(key=since_ns)
        parts = [together] if _bearable(together) else [[one] for one in together]
        for part in parts:
            if portions[-1] and not _bearable(part, len(portions[-1]), characters):
                portions.append([])
                characters = 0
            portions[-1].extend(part)
            characters += _characters(part)
    return [tuple(portion) for portion in portions]


def _bearable(copies: list[Copy], count: int = 0, characters: int = 0) -> bool:
    few = count + len(copies) <= _COPIES_MAX
    return few and characters + _characters(copies) <= _COPIES_CHARACTERS_MAX


def _characters(copies: list[Copy]) -> int:
    return sum(len(one.registration.filters) for one in copies if one.registration is not None)
