"""Upkeep: bringing registrations to where they belong, and letting go of old ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.broker.membership import MembersChanged, Status
from distributary.broker.messages.rendezvous import Forget, Held
from distributary.broker.rendezvous.custody import Role
from distributary.broker.rendezvous.registry import LEASE_PERIODS, Registry
from distributary.broker.rendezvous.table import Entry
from distributary.broker.settings import ns
from distributary.broker.turn import Turn

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Upkeep"]


class Upkeep:
    """Looks after a registry when brokers come and go, and from time to time."""

    def __init__(self, core: Core, registry: Registry) -> None:
        self.core = core
        self._registry = registry
        self._table = registry.table
        self._custody = registry.custody
        self._advertisers = registry.advertisers
        # Of which cells this broker took itself for the root when it looked last.
        self._rooted: set[int] = set()

    def start(self, turn: Turn) -> None:
        """Begin; after a restart others may be the roots of what was kept."""
        for entry in self._table:
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
        """Hand over what others are to keep now, and copy to new surrogates."""
        if change.gone:
            self._custody.lost(change.gone)
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
        leaving: set[int] = set()
        for cell in self._cells():
            role = self._custody.role(cell)
            if role is Role.ROOT:
                if cell not in self._rooted:
                    self._took_over(cell, turn)
            elif cell in self._rooted or role is Role.NOBODY:
                self._rooted.discard(cell)
                leaving.add(cell)
        entries = list(self._table)
        self._registry.copy_own(entries, turn, again=again)
        is_root = self._custody.is_root
        pairs = self._advertisers.pairs(self._advertisers.cells())
        self._advertisers.copy((pair for pair in pairs if is_root(pair[0])), turn)
        going = [(entry, sorted(entry.cells & leaving)) for entry in entries]
        pairs = self._advertisers.pairs(leaving)
        self._custody.hand_over(((e, cells) for e, cells in going if cells), pairs, turn)
        for cell, home in pairs:
            if self._custody.role(cell) is Role.NOBODY:
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
            if entry.registration is None:
                self._registry.drop(entry, set(entry.cells), turn)
            elif self.core.membership.status(entry.key[0]) is Status.DOWN:
                # A home that cannot renew keeps what it has until it is back or lost.
                entry.expires_ns = turn.now_ns + self._registry.lease_ns
            else:
                self._expire(entry, forgotten, turn)
        for peer in sorted(forgotten):
            self.core.links.send(peer, Forget(tuple(forgotten[peer])), turn)
        interest_ns = LEASE_PERIODS * ns(self.core.settings.subscriptions.interest_s)
        for cell, home in self._advertisers.silent(turn.now_ns - interest_ns):
            if self._custody.is_root(cell):
                self._advertisers.drop(cell, home, turn)
        self._rearrange(turn, again=True)
        self._sweep_later(turn, 1.0)

    def _sweep_later(self, turn: Turn, share: float) -> None:
        period_s = self.core.settings.subscriptions.registration_s
        self.core.timers.at(turn.now_ns + ns(share * period_s), self._sweep)

    def _expire(self, entry: Entry, forgotten: dict[str, list[Held]], turn: Turn) -> None:
        own = {cell for cell in entry.cells if self._custody.is_root(cell)}
        for cell in sorted(own):
            surrogate = self._custody.surrogate_of(cell)
            if surrogate is not None:
                held = Held(*entry.key, entry.version, (cell,))
                forgotten.setdefault(surrogate, []).append(held)
        self._registry.drop(entry, own, turn)

    def _cells(self) -> list[int]:
        return sorted({*self._table.cells(), *self._advertisers.cells()})
