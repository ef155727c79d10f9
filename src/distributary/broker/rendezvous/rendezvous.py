"""Rendezvous: registrations and publications of a cell meet at the root of its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from distributary.broker.addresses import Address
from distributary.broker.client import Advertise
from distributary.broker.core import Handler, Part
from distributary.broker.host import Turn
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.rendezvous.advertisements import (
    AdvertisementRecord,
    Advertisements,
    AdvertiserRecord,
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
)
from distributary.broker.rendezvous.registry import Registry, Upkeep
from distributary.broker.rendezvous.table import EntryRecord, Purpose
from distributary.broker.subscriptions.registrar import (
    Register,
    RegistrationsRenewed,
    RenewRegistrations,
    Withdraw,
    Withdrawn,
)
from distributary.content import Publication
from distributary.errors import PeerMisbehaved

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Rendezvous"]


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
        self._registry = Registry(core)
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
    ) -> tuple[list[Registration], list[str]] | None:
        """Return who else has registered a subscription: with a higher claim, or until lately."""
        return self._table.rivals(cell, registration)

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
