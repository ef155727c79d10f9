"""The rendezvous table: what was last said about every registration, by cell.

A broker keeps the same table for cells of which it is the root and for those of which it has
replicas, so that one that becomes the root has nothing to do but to serve.

Requests: who waits until something about a registration is safe.

A home waits for `Registered` or `Withdrawn`, a former root for `HandedOver`, a root for
`CopiesKept` of its surrogate, or of the next in line. Each is answered cell by cell, as soon as
what it promises is true, and forgotten in a crash: whoever waits asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from distributary.broker.addresses import Address
from distributary.broker.encoding import journal_key, since, wire
from distributary.broker.host import Turn
from distributary.broker.rendezvous.messages import Copy, Held, Registration
from distributary.broker.subscriptions.ledger import Matcher
from distributary.broker.subscriptions.registrar import Registered, Withdrawn
from distributary.broker.subscriptions.subscription import filter_of, subscription_of
from distributary.content import Publication

__all__ = ["Entry", "EntryKey", "EntryRecord", "Purpose", "Request", "Requests", "Table"]

EntryKey = tuple[str, str]
"""(home, id of the subscription): what names a registration."""


@wire(550)
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
    """

    __slots__ = ("cells", "entered_ns", "expires_ns", "key", "registration", "version")

    def __init__(self, key: EntryKey, version: int, registration: Registration | None) -> None:
        self.key = key
        self.version = version
        self.registration = registration
        self.cells: set[int] = set()
        self.entered_ns = 0
        self.expires_ns = 0

    def copy(self, cells: set[int] | None = None) -> Copy:
        """Return it as it is told to others, for some of its cells or for all."""
        told = self.cells if cells is None else cells & self.cells
        return Copy(Held(*self.key, self.version, tuple(sorted(told))), self.registration)


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
    ) -> tuple[list[Registration], list[str]] | None:
        """Return who else has registered a subscription in a cell, in whichever generation.

        Returns
        -------
            Their registrations, the highest claim first, and other homes that have withdrawn
            theirs; None when nobody has registered it but its home, once.
        """
        entries = self._by_subscription.get(subscription_of(registration.id), {})
        if len(entries) < 2:
            return None
        registered: list[Registration] = []
        withdrawn: list[str] = []
        for entry in entries.values():
            if cell not in entry.cells or entry.key[0] == registration.home:
                continue
            if entry.registration is None:
                withdrawn.append(entry.key[0])
            else:
                registered.append(entry.registration)
        return sorted(registered, key=lambda one: (-one.claim, one.home, one.id)), sorted(withdrawn)

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
        if entry is None or entry.version < held.version:
            if entry is not None:
                if copy.registration is None:
                    # It is withdrawn in all cells, of which others may have other roots. A cell
                    # in which nothing is known of it any more would seem never to have had it.
                    told |= entry.cells
                self.drop(entry, set(entry.cells))
            entry = self._entries[key] = Entry(key, held.version, copy.registration)
            self._by_home.setdefault(held.home, {})[held.id] = entry
            self._by_subscription.setdefault(subscription_of(held.id), {})[key] = entry
            changed = True
        else:
            changed = _newer(entry.registration, copy.registration)
            if changed:
                entry.registration = copy.registration
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
