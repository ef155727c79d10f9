"""Rendezvous: registrations and publications of a cell meet at the root of its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from distributary.broker.addresses import Address
from distributary.broker.client import Advertise
from distributary.broker.core import Core, Handler, Part
from distributary.broker.host import Turn
from distributary.broker.membership.roster import MembersChanged, MemberStatus
from distributary.broker.rendezvous.advertisements import (
    AdvertisementRecord,
    Advertisements,
    AdvertiserRecord,
    Advertisers,
)
from distributary.broker.rendezvous.messages import (
    CHECKS,
    AdvertiseCells,
    Copies,
    CopiesKept,
    Copy,
    Forget,
    HandedOver,
    Handover,
    Held,
    Interest,
    InterestTaken,
    Registration,
    since_ns,
)
from distributary.broker.rendezvous.table import (
    Entry,
    EntryRecord,
    Purpose,
    Replication,
    Requests,
    Table,
)
from distributary.broker.settings import ns
from distributary.broker.subscriptions.registrar import (
    Register,
    RegistrationsRenewed,
    RenewRegistrations,
    Withdraw,
    Withdrawn,
    digest_of,
)
from distributary.content import Publication
from distributary.errors import PeerMisbehaved

__all__ = ["LEASE_PERIODS", "Registrations", "Rendezvous"]


# The registry: registrations that are stored, copied, and only then vouched for.
#
# Whoever is told something about a registration merges it by version, so that registrations,
# copies and hand-overs can arrive in any order, late or twice.


LEASE_PERIODS = 3
"""For how many periods something is kept that nobody renews."""


class Registrations:
    """The registrations at one broker, and who waits for which of them to be safe."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.table = Table()
        self.replication = Replication(core)
        self.advertisers = Advertisers(core, self.replication)
        self._requests = Requests()
        self.lease_ns = ns(LEASE_PERIODS * core.settings.subscriptions.registration_s)

    def take(self, copy: Copy, turn: Turn, *, late: bool) -> Entry | None:
        """Enter what was said; None when something later is known already.

        Parameters
        ----------
        late
            Whether what was published before may be owed to a registration that is new here.
        """
        known = self.table.get((copy.held.home, copy.held.id))
        before = None if known is None else known.registration
        taken = self.table.take(copy)
        if taken is None:
            return None
        entry, new, changed = taken
        entry.expires_ns = turn.now_ns + self.lease_ns
        late_everywhere = self._missed(entry, before)
        if new:
            entry.entered_ns = turn.now_ns
        if changed:
            self.table.keep(entry, turn)
        if entry.registration is not None:
            for cell in sorted(entry.cells if late_everywhere else new):
                self._arrived(cell, entry.registration, turn, late=late)
        return entry

    def _missed(self, entry: Entry, before: Registration | None) -> bool:
        """Whether a client was told before its registration was entered here.

        What its home had said before that may come first, although others have confirmed it
        since: what was published between is owed all the same. Clocks that differ would have it
        so of many; but if it is this broker's answer by which the client was told, nothing was
        missed. What was published before may then not be sent any more: it would come behind
        what was published after.
        """
        now = entry.registration
        if before is None or now is None or now.confirmed <= before.confirmed:
            return False
        vouched = (self._core.identity, entry.entered_ns) in now.vouched
        return not vouched and now.since_ns < entry.entered_ns

    def renew(self, home: str, digest: bytes, turn: Turn) -> bool:
        """Keep all that a home has registered for longer, if that is what is here."""
        own: list[tuple[Entry, tuple[int, ...]]] = []
        for entry in self.table.of_home(home):
            cells = tuple(c for c in sorted(entry.cells) if self.replication.is_root(c))
            if cells and entry.registration is not None:
                own.append((entry, cells))
        if digest_of((entry.key[1], entry.version, cells) for entry, cells in own) != digest:
            return False
        for entry, _ in own:
            entry.expires_ns = turn.now_ns + self.lease_ns
        return True

    def take_all(
        self, copies: Iterable[Copy], sender: Address, purpose: Purpose, turn: Turn
    ) -> None:
        """Enter what another broker has been told, and answer it when that is safe."""
        stale: list[Held] = []
        entries: list[Entry] = []
        # Of a subscription that was changed, what it was before comes first.
        for copy in sorted(copies, key=since_ns):
            entry = self.take(self._with_own_path(copy), turn, late=True)
            if entry is None:
                stale.append(copy.held)
            else:
                entries.append(entry)
                cells: Iterable[int] = copy.held.cells
                if purpose is Purpose.HAND_OVER:
                    cells = self.replication.handed_over(entry, cells, sender)
                self._requests.add(entry, sender, purpose, cells)
        if stale:
            self._core.links.send(sender, _receipt(purpose, stale), turn)
        if purpose is Purpose.HAND_OVER:
            self.copy_own(entries, turn)
        self.settle(entries, turn)

    def ask(
        self, entry: Entry, asker: Address, purpose: Purpose, cells: Iterable[int], turn: Turn
    ) -> None:
        """Have a home answered once what it said is safe."""
        self._requests.add(entry, asker, purpose, cells)
        self.replication.copy([(entry, cells)], turn)
        self.settle([entry], turn)

    def kept(self, held: Iterable[Held], keeper: str, turn: Turn) -> None:
        """Note that another broker has copies, and answer whoever waited for that."""
        entries: list[Entry] = []
        for one in held:
            entry = self.table.get((one.home, one.id))
            if entry is not None and entry.version == one.version:
                self.replication.kept(entry, one.cells, keeper)
                entries.append(entry)
        self.settle(entries, turn)

    def copy_own(self, entries: Iterable[Entry], turn: Turn, *, again: bool = False) -> None:
        """Send others what they lack of the cells of which this broker is the root."""
        is_root = self.replication.is_root
        own = [(entry, [c for c in sorted(entry.cells) if is_root(c)]) for entry in entries]
        self.replication.copy(own, turn, again=again)

    def settle(self, entries: Iterable[Entry], turn: Turn) -> None:
        """Answer whoever waits for something that is true by now."""

        def safe(entry: Entry, purpose: Purpose, cell: int) -> bool:
            return self._safe(entry, purpose, cell, turn.now_ns)

        receipts: dict[tuple[Address, Purpose], list[Held]] = {}
        for entry in entries:
            for request, cells in self._requests.settle(entry, safe):
                if request.purpose in (Purpose.REGISTER, Purpose.WITHDRAW):
                    self._core.tell(request.asker, request.answer(cells), turn)
                else:
                    held = Held(*entry.key, entry.version, cells)
                    receipts.setdefault((request.asker, request.purpose), []).append(held)
        for (asker, purpose), kept in receipts.items():
            self._core.links.send(asker, _receipt(purpose, kept), turn)

    def settle_cell(self, turn: Turn, cell: int) -> None:
        """Answer whoever waits for something about a cell that is true by now."""
        self.settle(self.table.in_cell(cell), turn)

    def warn(self, cell: int, turn: Turn) -> None:
        """See to it that nobody believes for long that a cell is not wanted."""
        until_ns = self.advertisers.believed(cell, turn.now_ns)
        if until_ns is not None:
            self.advertisers.want(cell, turn)
            self._core.timers.at(until_ns, self._waited, cell)

    def _waited(self, turn: Turn, cell: int) -> None:
        # It may have become longer in the meantime.
        self.warn(cell, turn)
        self.settle_cell(turn, cell)

    def served(self, entry: Entry, cells: set[int]) -> set[int]:
        """Return the cells in which nothing is owed to the home of a registration.

        Elsewhere it is not to be forgotten, nor that it was withdrawn: by that a root knows
        that what follows goes there too, and not past it to the client's next home.
        """
        return cells - self._core.dissemination.cells_owed(entry.key[0])

    def drop(self, entry: Entry, cells: set[int], turn: Turn) -> None:
        """Forget a registration in some cells."""
        self.table.drop(entry, cells)
        self.table.keep(entry, turn)
        if not entry.cells:
            self.replication.forget(entry.key)
            self._requests.forget(entry.key)

    def _arrived(self, cell: int, registration: Registration, turn: Turn, *, late: bool) -> None:
        self.warn(cell, turn)
        if not self.replication.is_root(cell):
            return
        if registration.tolerance:
            self._core.streams.registered(cell, registration, turn)
        elif late:
            self._core.dissemination.registered_late(cell, registration, turn)

    def _safe(self, entry: Entry, purpose: Purpose, cell: int, now_ns: int) -> bool:
        if entry.registration is not None and self.advertisers.believed(cell, now_ns) is not None:
            return False
        if purpose is Purpose.COPY:
            return True
        if purpose is Purpose.WITHDRAW and self._core.dissemination.owes(entry.key[0], cell):
            # Whoever withdraws because its client has moved has to know when nothing is
            # on its way any more. It asks again.
            return False
        if self.replication.is_root(cell):
            return self.replication.safe(entry, cell)
        # A home asks the root that there is now. A former root is told what is true.
        return purpose is Purpose.HAND_OVER

    def _with_own_path(self, copy: Copy) -> Copy:
        """Keep the way on which a registration came here, which another broker's is not."""
        known = self.table.get((copy.held.home, copy.held.id))
        own = None if known is None or known.version != copy.held.version else known.registration
        told = copy.registration
        if own is None or told is None or own.path[-1].broker != self._core.identity:
            return copy
        return replace(copy, registration=replace(told, path=own.path))


def _receipt(purpose: Purpose, held: list[Held]) -> CopiesKept | HandedOver:
    return CopiesKept(tuple(held)) if purpose is Purpose.COPY else HandedOver(tuple(held))


# Upkeep: bringing registrations to where they belong, and letting go of old ones.


class Upkeep:
    """Looks after a registry when brokers come and go, and from time to time."""

    def __init__(self, core: Core, registry: Registrations) -> None:
        self.core = core
        self._registry = registry
        self._table = registry.table
        self._replication = registry.replication
        self._advertisers = registry.advertisers
        # Of which cells this broker took itself for the root when it looked last.
        self._rooted: set[int] = set()

    def start(self, turn: Turn) -> None:
        """Begin; after a restart others may be the roots of what was kept."""
        for entry in self._table:
            # What was kept by a version that does not say when counts as heard of now.
            entry.entered_ns = entry.entered_ns or turn.now_ns
            entry.expires_ns = turn.now_ns + self._registry.lease_ns
        self._rooted.update(self._cells())
        for cell in self._cells():
            self._advertisers.took_over(cell, turn)
        self._rearrange(turn)
        self._sweep_later(turn, self.core.rng.uniform(0.5, 1.0))

    def act(self, cells: tuple[int, ...], turn: Turn) -> None:
        """Act as the root of some cells; messages may come before the news that we are."""
        for cell in cells:
            if cell not in self._rooted:
                self._took_over(cell, turn)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Hand over what others are to keep now, and copy to whoever is to keep it too."""
        if change.gone:
            self._replication.lost(change.gone)
            self._bury(change.gone, turn)
        for entry in self._table:
            if entry.key[0] in change.came:
                entry.expires_ns = turn.now_ns + self._registry.lease_ns
        if self.core.membership.alive():
            self._rearrange(turn)

    def _bury(self, gone: tuple[str, ...], turn: Turn) -> None:
        """Forget all that brokers have said that are lost for ever."""
        for entry in list(self._table):
            if entry.key[0] in gone:
                self._registry.drop(entry, set(entry.cells), turn)
        for cell, home in self._advertisers.pairs(self._advertisers.cells()):
            if home in gone:
                self._advertisers.drop(cell, home, turn)
                self._registry.settle_cell(turn, cell)

    def _rearrange(self, turn: Turn, *, again: bool = False) -> None:
        """Bring everything to where it belongs.

        Parameters
        ----------
        again
            Whether to send also what is on its way already.
        """
        is_root, is_near = self._replication.is_root, self._replication.is_near
        keeps = self._replication.keeps
        # Of which cells this broker was the root, and does not know whether others are told.
        former: set[int] = set()
        for cell in self._cells():
            if not is_root(cell):
                if cell in self._rooted:
                    self._rooted.discard(cell)
                    former.add(cell)
            elif cell not in self._rooted:
                self._took_over(cell, turn)
        entries = list(self._table)
        self._registry.copy_own(entries, turn, again=again)
        pairs = self._advertisers.pairs(self._advertisers.cells())
        self._advertisers.copy((pair for pair in pairs if is_root(pair[0])), turn)
        going = [
            (entry, [c for c in sorted(entry.cells) if c in former or not keeps(entry.key[0], c)])
            for entry in entries
        ]
        pairs = [pair for pair in pairs if pair[0] in former or not is_near(pair[0])]
        self._replication.hand_over(((e, cells) for e, cells in going if cells), pairs, turn)
        for cell, home in pairs:
            if not is_near(cell):
                self._advertisers.drop(cell, home, turn)
        self._registry.settle(entries, turn)

    def _took_over(self, cell: int, turn: Turn) -> None:
        self._rooted.add(cell)
        self._advertisers.took_over(cell, turn)
        if self._table.wanted(cell):
            self._registry.warn(cell, turn)
        for entry in self._table.in_cell(cell):
            entry.expires_ns = turn.now_ns + self._registry.lease_ns

    def _sweep(self, turn: Turn) -> None:
        """Let go what nobody has renewed, and try again what did not work out."""
        forgotten: dict[str, list[Held]] = {}
        for entry in list(self._table):
            if entry.expires_ns > turn.now_ns:
                continue
            down = self.core.membership.status(entry.key[0]) is MemberStatus.DOWN
            if entry.registration is None:
                cells = self._registry.served(entry, entry.cells) if down else set(entry.cells)
                self._registry.drop(entry, cells, turn)
            elif down:
                # A home that cannot renew keeps what it has until it is back or lost.
                entry.expires_ns = turn.now_ns + self._registry.lease_ns
            else:
                self._expire(entry, forgotten, turn)
        for peer in sorted(forgotten):
            self.core.links.send(peer, Forget(tuple(forgotten[peer])), turn)
        interest_ns = LEASE_PERIODS * ns(self.core.settings.subscriptions.interest_s)
        for cell, home in self._advertisers.silent(turn.now_ns - interest_ns):
            if self._replication.is_root(cell):
                self._advertisers.drop(cell, home, turn)
        self._rearrange(turn, again=True)
        self._sweep_later(turn, 1.0)

    def _sweep_later(self, turn: Turn, share: float) -> None:
        period_s = self.core.settings.subscriptions.registration_s
        self.core.timers.at(turn.now_ns + ns(share * period_s), self._sweep)

    def _expire(self, entry: Entry, forgotten: dict[str, list[Held]], turn: Turn) -> None:
        own = {cell for cell in entry.cells if self._replication.is_root(cell)}
        if not own:
            # Others keep what the root does.
            return
        for cell in sorted(own):
            held = Held(*entry.key, entry.version, (cell,))
            for peer in self._replication.replicas(entry, cell):
                forgotten.setdefault(peer, []).append(held)
        self._registry.drop(entry, own, turn)

    def _cells(self) -> list[int]:
        return sorted({*self._table.cells(), *self._advertisers.cells()})


class Rendezvous(Part):
    """The registrations of the cells of which this broker is the root or keeps a replica.

    Attributes
    ----------
    advertisements
        What publishers of this broker have advertised.
    """

    name = "rendezvous"
    uses = ("membership", "links", "publishing", "dissemination", "streams")
    checks = CHECKS

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.advertisements = Advertisements(core)
        self._registry = Registrations(core)
        self._table = self._registry.table
        self._replication = self._registry.replication
        self._advertisers = self._registry.advertisers
        self._keys: dict[int, str] = {}
        self._upkeep = Upkeep(core, self._registry)

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Register: self._register,
            RenewRegistrations: self._renew,
            Withdraw: self._withdraw,
            Copies: self._copies,
            CopiesKept: self._copies_kept,
            Handover: self._handover,
            HandedOver: self._handed_over,
            Forget: self._forget,
            Advertise: self.advertisements.advertise,
            AdvertiseCells: self._advertise_cells,
            Interest: self.advertisements.interest,
            InterestTaken: self._interest_taken,
        }

    def load(self, key: str, record: Any) -> None:
        """Take back a registration, an advertiser or an advertisement."""
        if isinstance(record, EntryRecord):
            self._table.load(record)
        elif isinstance(record, AdvertiserRecord):
            self._advertisers.load(record)
        else:
            assert isinstance(record, AdvertisementRecord)
            self.advertisements.load(record)

    def start(self, turn: Turn) -> None:
        """Begin, or go on with what was kept."""
        self._upkeep.start(turn)
        self.advertisements.start(turn)

    def snapshot(self) -> dict[str, Any]:
        """Return how many registrations there are, as a root and as a replica alike."""
        entries = [entry for entry in self._table if entry.registration is not None]
        cells = {cell for entry in entries for cell in entry.cells}
        return {"registrations": len(entries), "cells": len(cells)}

    # What other parts ask.

    def key_of(self, cell: int) -> str:
        """Return the key of a cell, whose root is the cell's rendezvous broker."""
        key = self._keys.get(cell)
        if key is None:
            digits = len(self.core.identity)
            key = self._keys[cell] = self.core.settings.space.key(cell).hex()[:digits]
        return key

    def registration(self, home: str, name: str) -> Registration | None:
        """Return what a home has registered under a name, if it has not withdrawn that."""
        entry = self._table.get((home, name))
        return None if entry is None else entry.registration

    def matches(self, cell: int, publication: Publication, tenant: str = "") -> list[Registration]:
        """Return the registrations to content that a tenant's publication is for, in order."""
        return self._table.matches(cell, publication, tenant, tolerance=False)

    @property
    def has_rivals(self) -> bool:
        """Whether some subscriptions are registered more than once, which is rare."""
        return self._table.has_rivals

    def rivals(
        self, cell: int, registration: Registration
    ) -> tuple[list[Registration], list[tuple[str, int]]] | None:
        """Return who else has registered a subscription, and who has until lately."""
        return self._table.rivals(cell, registration)

    def moved(self, home: str, name: str) -> list[Registration]:
        """Return what other homes have registered of a subscription whose client has moved."""
        return self._table.moved(home, name)

    def followers(
        self, cell: int, publication: Publication, tenant: str = ""
    ) -> list[Registration]:
        """Return the registrations with a tolerance that a tenant's object is for, in order."""
        return self._table.matches(cell, publication, tenant, tolerance=True)

    def unwanted(self, cell: int, now_ns: int) -> bool:
        """Whether what is published here in a cell can be dropped: nobody wants it."""
        return self.advertisements.unwanted(cell, now_ns)

    def wanted(self, cell: int) -> bool:
        """Whether somebody is registered in a cell here, or may be elsewhere.

        As long as some broker is down, it may be that others cannot reach this one either,
        and have found another root.
        """
        return not self._replication.complete or self._table.wanted(cell)

    # What homes say.

    def _register(self, message: Register, sender: Address, turn: Turn) -> None:
        path = self.core.links.path
        if not path:
            raise PeerMisbehaved(f"a Register from {sender} that was not routed")
        cells = self._own(message.cells, turn)
        for earlier, some in message.before:
            # The home tells that one too, and this one again.
            known = self._table.get((sender, earlier))
            lacking = set(some) if known is None else set(some) - known.cells
            cells = tuple(cell for cell in cells if cell not in lacking)
        if not cells:
            return
        registration = Registration(
            sender,
            message.id,
            message.version,
            message.filters,
            message.profile,
            message.tolerance,
            message.since_ns,
            message.confirmed,
            path,
            message.claim,
            message.tenant,
            message.vouched,
        )
        copy = Copy(Held(sender, message.id, message.version, cells), registration)
        entry = self._registry.take(copy, turn, late=message.confirmed)
        if entry is not None:
            self._registry.ask(entry, sender, Purpose.REGISTER, cells, turn)

    def _renew(self, message: RenewRegistrations, sender: Address, turn: Turn) -> None:
        renewed = self._registry.renew(sender, message.digest, turn)
        self.core.tell(sender, RegistrationsRenewed(message.digest, renewed), turn)

    def _withdraw(self, message: Withdraw, sender: Address, turn: Turn) -> None:
        cells = self._own(message.cells, turn)
        if not cells:
            return
        copy = Copy(Held(sender, message.id, message.version, cells), None)
        entry = self._registry.take(copy, turn, late=False)
        if entry is None:
            self.core.tell(sender, Withdrawn(message.id, message.version, cells), turn)
        else:
            self._registry.ask(entry, sender, Purpose.WITHDRAW, cells, turn)

    def _own(self, cells: tuple[int, ...], turn: Turn) -> tuple[int, ...]:
        """Return the cells of which this broker is the root; homes ask again for others."""
        own = tuple(cell for cell in cells if self._replication.is_root(cell))
        self._upkeep.act(own, turn)
        return own

    # What roots say to each other.

    def _copies(self, message: Copies, sender: Address, turn: Turn) -> None:
        self._learn(message, turn)
        if message.advertisers:
            self.core.links.send(sender, CopiesKept((), message.advertisers), turn)
        self._registry.take_all(message.copies, sender, Purpose.COPY, turn)

    def _copies_kept(self, message: CopiesKept, sender: Address, turn: Turn) -> None:
        self._advertisers.kept(message.advertisers, sender, turn)
        self._registry.kept(message.held, sender, turn)

    def _handover(self, message: Handover, sender: Address, turn: Turn) -> None:
        self._learn(message, turn)
        self._registry.take_all(message.copies, sender, Purpose.HAND_OVER, turn)

    def _handed_over(self, message: HandedOver, sender: Address, turn: Turn) -> None:
        for held in message.held:
            entry = self._table.get((held.home, held.id))
            if entry is not None and entry.version <= held.version:
                free = {c for c in held.cells if not self._replication.keeps(held.home, c)}
                # What is left is handed over again later.
                self._registry.drop(entry, self._registry.served(entry, free), turn)

    def _forget(self, message: Forget, sender: Address, turn: Turn) -> None:
        is_root = self._replication.is_root
        for held in message.held:
            entry = self._table.get((held.home, held.id))
            if entry is not None and entry.version == held.version:
                self._registry.drop(entry, {c for c in held.cells if not is_root(c)}, turn)

    def _learn(self, message: Copies | Handover, turn: Turn) -> None:
        self._advertisers.learn(message.advertisers, turn)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Hand over what others are to keep now, and copy to whoever is to keep it too."""
        self.advertisements.members_changed(change, turn)
        self._upkeep.members_changed(change, turn)

    # Advertisements.

    def _advertise_cells(self, message: AdvertiseCells, sender: Address, turn: Turn) -> None:
        self._advertisers.ask(sender, self._own(message.cells, turn), message.asked_ns, turn)

    def _interest_taken(self, message: InterestTaken, sender: Address, turn: Turn) -> None:
        self._advertisers.taken(message.cell, sender, message.told_ns)
        self._registry.settle_cell(turn, message.cell)
