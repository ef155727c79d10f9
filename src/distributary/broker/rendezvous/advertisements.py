"""Advertisements: what publishers of a broker say that they will publish.

Their home asks the roots of the advertised cells, again and again, whether anybody is
interested. While a root's answer that nobody is holds, what is published in the cell ends
here. In doubt somebody is: after a restart, when another broker has become the root, and when
two roots say different things.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address
from distributary.broker.client import Advertise, Advertised, Refused
from distributary.broker.effects import Turn
from distributary.broker.encoding import journal_key, wire
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.rendezvous.messages import AdvertiseCells, Interest, InterestTaken
from distributary.broker.settings import ns
from distributary.broker.subscriptions.registrar import Registrar
from distributary.broker.timers import Timer
from distributary.errors import BadInput

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["AdvertisementRecord", "Advertisements", "ClientAdvertisements"]

_ALL = "advertised"
# A question is repeated this often in the time for which an answer holds.
_QUESTIONS = 2


@wire(552)
@dataclass(frozen=True, slots=True)
class AdvertisementRecord:
    """What a client says that a source will publish: events per second by cell."""

    client: str
    source: str
    rates: tuple[tuple[int, float], ...]


@wire(553)
@dataclass(frozen=True, slots=True)
class ClientAdvertisements:
    """All advertisements of a client, for its next home."""

    client: str
    advertisements: tuple[AdvertisementRecord, ...]


class Advertisements:
    """What the clients of this broker have advertised, and who is interested."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._interest_ns = ns(core.settings.subscriptions.interest_s)
        self._kept: dict[tuple[Address, str], AdvertisementRecord] = {}
        self._unconfirmed: set[tuple[Address, str]] = set()
        self._registrar = Registrar(core)
        self._timer: Timer | None = None
        self._asked: set[int] = set()
        self._heard: set[int] = set()
        # By cell, the root that said so last, and until when or since when.
        self._unwanted: dict[int, tuple[str, int]] = {}
        self._wanted: dict[int, tuple[str, int]] = {}

    def load(self, record: AdvertisementRecord) -> None:
        """Take back an advertisement."""
        self._kept[record.client, record.source] = record

    def start(self, turn: Turn) -> None:
        """Ask about what was advertised before a restart."""
        self._ask(turn)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Ask roots that are new or have come back."""
        self._registrar.members_changed(change, turn)

    def unwanted(self, cell: int, now_ns: int) -> bool:
        """Whether the root of a cell has said that nobody is interested, and it still holds."""
        known = self._unwanted.get(cell)
        if known is None or known[1] <= now_ns:
            return False
        return self._core.membership.root_of(self._core.rendezvous.key_of(cell)) == known[0]

    def clients(self) -> list[Address]:
        """Return the clients that have advertised something, in order."""
        return sorted({owner for owner, _ in self._kept})

    def rates(self, client: Address) -> dict[int, float]:
        """Return how many events per second a client has advertised, by cell."""
        rates: dict[int, float] = {}
        for (owner, _), record in sorted(self._kept.items()):
            if owner == client:
                for cell, rate in record.rates:
                    rates[cell] = rates.get(cell, 0.0) + rate
        return rates

    def advertise(self, message: Advertise, sender: Address, turn: Turn) -> None:
        """Take an advertisement, in place of an earlier one of the same source."""
        fault = self._fault(message, sender)
        if fault is not None:
            turn.send(sender, Refused("advertisement", fault, message.source))
            return
        record = AdvertisementRecord(sender, message.source, message.rates)
        self._unconfirmed.add((sender, message.source))
        if self._kept.get((sender, message.source)) != record:
            self._keep(record, turn)
            self._ask(turn)
        self._confirm(turn)

    def interest(self, message: Interest, sender: Address, turn: Turn) -> None:
        """Take a root's answer, or what it says unasked."""
        cell, now_ns = message.cell, turn.now_ns
        self._heard.add(cell)
        if message.wanted:
            self._wanted[cell] = (sender, now_ns)
            self._unwanted.pop(cell, None)
            if not message.asked_ns:
                taken = InterestTaken(cell, message.told_ns)
                self._core.links.send(sender, taken, turn)
        elif not self._doubtful(cell, sender, message.asked_ns, now_ns):
            self._unwanted[cell] = (sender, message.asked_ns + self._interest_ns)
        if message.asked_ns:
            self._registrar.answered(_ALL, (cell,), turn)
        self._confirm(turn)

    def export_client(self, client: Address) -> ClientAdvertisements:
        """Return all advertisements of a client, for its next home."""
        own = (record for (owner, _), record in sorted(self._kept.items()) if owner == client)
        return ClientAdvertisements(client, tuple(own))

    def adopt_client(self, moved: ClientAdvertisements, turn: Turn) -> None:
        """Take over the advertisements of a client."""
        for record in moved.advertisements:
            self._keep(record, turn)
        self._ask(turn)

    def drop_client(self, client: Address, turn: Turn) -> None:
        """Forget the advertisements of a client."""
        for key in sorted(self._kept):
            if key[0] == client:
                del self._kept[key]
                self._unconfirmed.discard(key)
                turn.erase(_key(*key))
        self._ask(turn)

    def _fault(self, message: Advertise, client: Address) -> str | None:
        try:
            self._core.publishing.check_source(message.source, client)
        except BadInput as error:
            return str(error)
        count = self._core.settings.space.cell_count
        cells = [cell for cell, _ in message.rates]
        if not all(0 <= cell < count for cell in cells):
            return f"a cell is a number from 0 to {count - 1:,}"
        if len(set(cells)) < len(cells):
            return "a cell is given twice"
        most = self._core.settings.subscriptions.client_max
        known = (client, message.source) in self._kept
        if not known and sum(owner == client for owner, _ in self._kept) >= most:
            return f"a client advertises at most {most:,} sources"
        if not all(rate >= 0.0 and math.isfinite(rate) for _, rate in message.rates):
            return "a rate is at least 0 and finite"
        return None

    def _doubtful(self, cell: int, root: str, asked_ns: int, now_ns: int) -> bool:
        """Whether something said before contradicts that nobody is interested."""
        wanted = self._wanted.get(cell)
        if wanted is None:
            return False
        said_by, since_ns = wanted
        if said_by == root:
            # The answer to an earlier question may come after later news.
            return asked_ns <= since_ns
        return now_ns < since_ns + self._interest_ns

    def _keep(self, record: AdvertisementRecord, turn: Turn) -> None:
        self._kept[record.client, record.source] = record
        turn.persist(_key(record.client, record.source), record)

    def _confirm(self, turn: Turn) -> None:
        """Tell clients whose cells have all been heard of."""
        for key in sorted(self._unconfirmed):
            if self._heard.issuperset(cell for cell, _ in self._kept[key].rates):
                self._unconfirmed.discard(key)
                turn.send(key[0], Advertised(key[1]))

    def _ask(self, turn: Turn) -> None:
        """Ask about all cells that are advertised now."""
        cells = {cell for record in self._kept.values() for cell, _ in record.rates}
        if cells == self._asked:
            return
        self._asked = cells
        self._heard &= cells
        self._registrar.pursue(_ALL, cells, _question, turn)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if cells:
            self._again_later(turn)

    def _again_later(self, turn: Turn) -> None:
        at_ns = turn.now_ns + self._interest_ns // _QUESTIONS
        self._timer = self._core.timers.at(at_ns, self._ask_again)

    def _ask_again(self, turn: Turn) -> None:
        self._registrar.again(turn)
        self._again_later(turn)


def _question(cells: tuple[int, ...], turn: Turn) -> AdvertiseCells:
    return AdvertiseCells(cells, turn.now_ns)


def _key(client: Address, source: str) -> str:
    # Both may contain anything: the length says where one ends.
    return f"rendezvous/p/{journal_key(client, source)}"
