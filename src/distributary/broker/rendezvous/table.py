"""The rendezvous table: what was last said about every registration, by cell.

A broker keeps the same table for cells of which it is the root and for those of which it has
replicas, so that one that becomes the root has nothing to do but to serve.

Requests: who waits until something about a registration is safe.

A home waits for `Registered` or `Withdrawn`, a former root for `HandedOver`, a root for
`CopiesKept` of its surrogate, or of the next in line. Each is answered cell by cell, as soon as
what it promises is true, and forgotten in a crash: whoever waits asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from distributary.broker.addresses import Address
from distributary.broker.core import Core
from distributary.broker.encoding import encodable, journal_key, since
from distributary.broker.host import Turn
from distributary.broker.membership.roster import MemberStatus
from distributary.broker.rendezvous.messages import (
    Copies,
    Copy,
    Handover,
    Held,
    Registration,
    since_ns,
)
from distributary.broker.subscriptions.registrar import MOVES_MAX, Registered, Withdrawn
from distributary.broker.subscriptions.subscription import Matcher, filter_of, subscription_of
from distributary.content import Publication
from distributary.topology.prefix_routing import root_among

__all__ = ["Entry", "EntryRecord", "Purpose", "Replication", "Request", "Requests", "Table"]


EntryKey = tuple[str, str]
"""(home, id of the subscription): what names a registration."""


@encodable(550)
@dataclass(frozen=True, slots=True)
class EntryRecord:
    """A registration, or that it was withdrawn, as it is kept."""

    copy: Copy
    entered_ns: int = since(2, 0)


class Entry:
    """What was last said about a registration.

    Attributes
    ----------
    registration
        None when it was withdrawn: kept for a while, so that what was said before and comes
        later is not believed.
    cells
        The cells in which it is kept here.
    entered_ns
        When it was last heard of in a further cell.
    expires_ns
        When it goes unless its home renews it.
    claim
        The registration's; of one that was withdrawn, what is known of it.
    """

    __slots__ = ("cells", "claim", "entered_ns", "expires_ns", "key", "registration", "version")

    def __init__(self, key: EntryKey, copy: Copy, claim: int) -> None:
        self.key = key
        self.version = copy.held.version
        self.registration = copy.registration
        self.claim = claim
        self.cells: set[int] = set()
        self.entered_ns = 0
        self.expires_ns = 0

    def copy(self, cells: set[int] | None = None) -> Copy:
        """Return it as it is told to others, for some of its cells or for all."""
        told = self.cells if cells is None else cells & self.cells
        held = Held(*self.key, self.version, tuple(sorted(told)))
        return Copy(held, self.registration, self.claim if self.registration is None else 0)


class Table:
    """Registrations by name and by cell."""

    def __init__(self) -> None:
        self._entries: dict[EntryKey, Entry] = {}
        self._by_cell: dict[int, dict[EntryKey, Entry]] = {}
        # By cell, then by tenant and by whether there is a tolerance. What is another tenant's
        # is not even looked at.
        self._matchers: dict[int, dict[tuple[str, bool], Matcher[EntryKey]]] = {}
        self._by_home: dict[str, dict[str, Entry]] = {}
        self._by_subscription: dict[str, dict[EntryKey, Entry]] = {}

    def __iter__(self) -> Iterator[Entry]:
        """Go through all entries in the order of their names."""
        for key in sorted(self._entries):
            yield self._entries[key]

    def get(self, key: EntryKey) -> Entry | None:
        """Return what is known of a registration."""
        return self._entries.get(key)

    def of_home(self, home: str) -> list[Entry]:
        """Return what is known of the registrations of a home."""
        return list(self._by_home.get(home, {}).values())

    def cells(self) -> list[int]:
        """Return the cells of which anything is kept, in order."""
        return sorted(self._by_cell)

    def in_cell(self, cell: int) -> list[Entry]:
        """Return what is kept of a cell, in the order of names."""
        found = self._by_cell.get(cell, {})
        return [found[key] for key in sorted(found)]

    def wanted(self, cell: int) -> bool:
        """Whether anybody is registered in a cell."""
        return any(matcher for matcher in self._matchers.get(cell, {}).values())

    def matches(
        self, cell: int, publication: Publication, tenant: str = "", *, tolerance: bool
    ) -> list[Registration]:
        """Return the registrations of a cell that a tenant's publication passes, in order."""
        matcher = self._matchers.get(cell, {}).get((tenant, tolerance))
        if matcher is None:
            return []
        found: list[Registration] = []
        for key in matcher.match(publication):
            registration = self._entries[key].registration
            assert registration is not None
            found.append(registration)
        return found

    @property
    def has_rivals(self) -> bool:
        """Whether anybody may have registered a subscription that somebody else has too."""
        return len(self._entries) != len(self._by_subscription)

    def rivals(
        self, cell: int, registration: Registration
    ) -> tuple[list[Registration], list[tuple[str, int]]] | None:
        """Return who else has registered a subscription in a cell, in whichever generation.

        Returns
        -------
            Their registrations, the highest claim first, and other homes that have withdrawn
            theirs, with the claim as far as it is known; None when nobody has registered it but
            its home, once.
        """
        entries = self._by_subscription.get(subscription_of(registration.id), {})
        if len(entries) < 2:
            return None
        registered: list[Registration] = []
        withdrawn: list[tuple[str, int]] = []
        for entry in entries.values():
            if cell not in entry.cells or entry.key[0] == registration.home:
                continue
            if entry.registration is None:
                withdrawn.append((entry.key[0], entry.claim))
            else:
                registered.append(entry.registration)
        return sorted(registered, key=lambda one: (-one.claim, one.home, one.id)), sorted(withdrawn)

    def moved(self, home: str, name: str) -> list[Registration]:
        """Return what other homes have registered of a subscription whose client has moved."""
        known = self._entries.get((home, name))
        claim = 0 if known is None else known.claim
        entries = self._by_subscription.get(subscription_of(name), {})
        found: list[Registration] = []
        for key in sorted(entries):
            other = entries[key].registration
            # Whoever has begun anew is owed nothing of before.
            anew = other is not None and claim and other.claim - claim >= MOVES_MAX
            if other is not None and other.home != home and not anew:
                found.append(other)
        return found

    def load(self, record: EntryRecord) -> None:
        """Take back what was kept."""
        taken = self.take(record.copy)
        assert taken is not None, "there is one record for every registration"
        taken[0].entered_ns = record.entered_ns

    def take(self, copy: Copy) -> tuple[Entry, set[int], bool] | None:
        """Enter what was said about a registration.

        Returns
        -------
            The entry, the cells that are new in it and whether anything has changed; None
            when something later was said already.
        """
        held = copy.held
        key = (held.home, held.id)
        entry = self._entries.get(key)
        if entry is not None and entry.version > held.version:
            return None
        told = set(held.cells)
        claim = copy.claim if copy.registration is None else copy.registration.claim
        if entry is None or entry.version < held.version:
            if entry is not None:
                if copy.registration is None:
                    # It is withdrawn in all cells, of which others may have other roots. A cell
                    # in which nothing is known of it any more would seem never to have had it.
                    told |= entry.cells
                    claim = claim or entry.claim
                self.drop(entry, set(entry.cells))
            entry = self._entries[key] = Entry(key, copy, claim)
            self._by_home.setdefault(held.home, {})[held.id] = entry
            self._by_subscription.setdefault(subscription_of(held.id), {})[key] = entry
            changed = True
        else:
            changed = _newer(entry.registration, copy.registration)
            if changed:
                entry.registration = copy.registration
            entry.claim = claim or entry.claim
        new = told - entry.cells
        entry.cells |= new
        for cell in sorted(new):
            self._enter(entry, cell)
        return entry, new, changed or bool(new)

    def drop(self, entry: Entry, cells: set[int]) -> None:
        """Forget an entry in some cells, and altogether when none is left."""
        for cell in cells & entry.cells:
            found = self._by_cell[cell]
            del found[entry.key]
            if not found:
                del self._by_cell[cell]
            self._discard(entry.key, cell)
        entry.cells -= cells
        if not entry.cells and self._entries.pop(entry.key, None) is not None:
            home, name = entry.key
            del self._by_home[home][name]
            if not self._by_home[home]:
                del self._by_home[home]
            subscription = subscription_of(name)
            del self._by_subscription[subscription][entry.key]
            if not self._by_subscription[subscription]:
                del self._by_subscription[subscription]

    def keep(self, entry: Entry, turn: Turn) -> None:
        """Make durable what is known of a registration now."""
        home, subscription = entry.key
        key = f"rendezvous/r/{home}/{journal_key(subscription)}"
        if entry.cells:
            turn.persist(key, EntryRecord(entry.copy(), entry.entered_ns))
        else:
            turn.erase(key)

    def _enter(self, entry: Entry, cell: int) -> None:
        self._by_cell.setdefault(cell, {})[entry.key] = entry
        registration = entry.registration
        if registration is not None:
            matchers = self._matchers.setdefault(cell, {})
            matcher = matchers.setdefault((registration.tenant, registration.tolerance), Matcher())
            matcher.put(entry.key, filter_of(registration.filters))

    def _discard(self, key: EntryKey, cell: int) -> None:
        matchers = self._matchers.get(cell, {})
        for place, matcher in list(matchers.items()):
            matcher.discard(key)
            if not matcher:
                del matchers[place]


def _newer(known: Registration | None, told: Registration | None) -> bool:
    """Whether what is told says more than what is known, at the same version."""
    if known is None or told is None or known == told:
        return False
    # What was sent before the client got its confirmation may arrive after it.
    return told.confirmed or not known.confirmed


class Purpose(Enum):
    """What somebody waits for."""

    REGISTER = auto()
    WITHDRAW = auto()
    HAND_OVER = auto()
    COPY = auto()


class Request:
    """Somebody who waits for an answer about some cells of a registration."""

    __slots__ = ("_entry", "asker", "cells", "id", "purpose", "version")

    def __init__(self, entry: Entry, asker: Address, purpose: Purpose) -> None:
        self.id = entry.key[1]
        self.version = entry.version
        self._entry = entry
        self.asker = asker
        self.purpose = purpose
        self.cells: set[int] = set()

    def answer(self, cells: tuple[int, ...]) -> Registered | Withdrawn:
        """Return what a home is told."""
        if self.purpose is Purpose.REGISTER:
            return Registered(self.id, self.version, cells, self._entry.entered_ns)
        return Withdrawn(self.id, self.version, cells)


class Requests:
    """All requests that have not been answered."""

    def __init__(self) -> None:
        self._waiting: dict[EntryKey, dict[tuple[Address, Purpose], Request]] = {}

    def add(self, entry: Entry, asker: Address, purpose: Purpose, cells: Iterable[int]) -> None:
        """Have somebody wait for what was last said about a registration to be safe."""
        waiting = self._waiting.setdefault(entry.key, {})
        request = waiting.get((asker, purpose))
        if request is None or request.version != entry.version:
            request = waiting[asker, purpose] = Request(entry, asker, purpose)
        request.cells.update(cells)

    def settle(
        self, entry: Entry, safe: Callable[[Entry, Purpose, int], bool]
    ) -> list[tuple[Request, tuple[int, ...]]]:
        """Return the requests about a registration that can be answered, with their cells."""
        waiting = self._waiting.get(entry.key)
        if waiting is None:
            return []
        ready: list[tuple[Request, tuple[int, ...]]] = []
        for place, request in list(waiting.items()):
            if request.version == entry.version:
                cells = [c for c in sorted(request.cells) if safe(entry, request.purpose, c)]
                if cells:
                    request.cells.difference_update(cells)
                    ready.append((request, tuple(cells)))
            # Whoever waits for something that is no longer said waits for nothing.
            if request.version != entry.version or not request.cells:
                del waiting[place]
        if not waiting:
            del self._waiting[entry.key]
        return ready

    def forget(self, key: EntryKey) -> None:
        """Forget who waits for a registration that is not kept here any more."""
        self._waiting.pop(key, None)


# Replication: which broker keeps the registrations of a cell, and how they get there.
#
# The root of a cell keeps them, and so does the surrogate, which would be the root without it.
# Where one of the two is the registration's own home, the next in line keeps it as well: so
# there are two besides the home, and one may be lost for ever while the home is down. A root
# that is not the root any more hands them over. Everybody else who still has some hands them
# over too, and forgets them once the root has them safe.


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
        return self._core.membership.gossip.roster.away(MemberStatus.DOWN)


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
