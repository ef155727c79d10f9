"""Advertisements: what publishers will publish, and whether anybody is interested."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address
from distributary.broker.client import Advertise, Advertised, Refused
from distributary.broker.core import Core
from distributary.broker.encoding import encodable, journal_key
from distributary.broker.host import Turn
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.rendezvous.messages import AdvertiseCells, Copies, Interest, InterestTaken
from distributary.broker.settings import ns
from distributary.broker.subscriptions.registrar import Registrar
from distributary.broker.timers import Timer
from distributary.errors import BadInput

if TYPE_CHECKING:
    from distributary.broker.rendezvous.table import Replication

__all__ = [
    "AdvertisementRecord",
    "Advertisements",
    "AdvertiserRecord",
    "Advertisers",
    "ClientAdvertisements",
]

# Advertisements: what publishers of a broker say that they will publish.
#
# Their home asks the roots of the advertised cells, again and again, whether anybody is
# interested. While a root's answer that nobody is holds, what is published in the cell ends
# here. In doubt somebody is: after a restart, when another broker has become the root, and when
# two roots say different things.

_ALL = "advertised"
# A question is repeated this often in the time for which an answer holds.
_QUESTIONS = 2


@encodable(552)
@dataclass(frozen=True, slots=True)
class AdvertisementRecord:
    """What a client says that a source will publish: events per second by cell."""

    client: str
    source: str
    rates: tuple[tuple[int, float], ...]


@encodable(553)
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


# Advertisers: publishers' homes that ask a root whether anybody is interested in a cell.
#
# A home that was told that nobody is drops what its publishers publish there. It may do so for
# `interest_s` from when it asked, so a root that counts from when it answered counts longer.
# Before the first registration of a cell is confirmed, every such home has said that it knows
# better now, or its time is over. The surrogate knows all advertisers too: a broker that takes
# over does not know who was told what, and waits for the longest time that it can have been.
#
# Where the surrogate is such a home itself, nobody else need know of it, unlike of a registration
# (see `Replication`). Without root and surrogate the next in line waits in any case. What a home
# was told it forgets in a crash, and does not believe once it takes the root for down.


@encodable(551)
@dataclass(frozen=True, slots=True)
class AdvertiserRecord:
    """That the home of a publisher has advertised a cell."""

    cell: int
    home: str


class _Advertiser:
    """One home that advertises a cell.

    `asked_ns` is its question that has not been answered, `told_ns` when it was last told
    that nobody is interested, `until_ns` how long it may believe that, `warned` whether it has
    been told better since, `copied` the surrogate that knows of it, `seen_ns` when it asked
    last.
    """

    __slots__ = ("asked_ns", "copied", "seen_ns", "told_ns", "until_ns", "warned")

    def __init__(self) -> None:
        self.asked_ns: int | None = None
        self.copied: str | None = None
        self.seen_ns = 0
        self.told_ns = 0
        self.until_ns = 0
        self.warned = False

    def believe(self, now_ns: int, until_ns: int) -> None:
        """Note that it may believe from now on that nobody is interested."""
        self.told_ns = now_ns
        self.until_ns = until_ns
        self.warned = False


class Advertisers:
    """The homes of publishers that ask about cells of which this broker is the root."""

    def __init__(self, core: Core, replication: Replication) -> None:
        self._core = core
        self._replication = replication
        self._interest_ns = ns(core.settings.subscriptions.interest_s)
        membership = core.settings.membership
        # Two brokers do not notice at the same moment that others are down.
        self._takeover_ns = self._interest_ns + ns(membership.suspicion_s + membership.period_s)
        self._by_cell: dict[int, dict[str, _Advertiser]] = {}

    def load(self, record: AdvertiserRecord) -> None:
        """Take back an advertiser."""
        self._by_cell.setdefault(record.cell, {})[record.home] = _Advertiser()

    def cells(self) -> list[int]:
        """Return the cells that are advertised, in order."""
        return sorted(self._by_cell)

    def pairs(self, cells: Iterable[int]) -> list[tuple[int, str]]:
        """Return (cell, home) of all that advertise some cells, in order."""
        return [(cell, home) for cell in sorted(cells) for home in sorted(self._of(cell))]

    def ask(self, home: str, cells: Iterable[int], asked_ns: int, turn: Turn) -> None:
        """Have a home's question answered, once the surrogate knows of the home."""
        for cell in cells:
            advertiser = self._of(cell).get(home)
            if advertiser is None:
                advertiser = self._enter(cell, home, turn)
            advertiser.asked_ns = asked_ns
            advertiser.seen_ns = turn.now_ns
        self.copy(((cell, home) for cell in cells), turn)
        for cell in cells:
            self.answer(cell, home, turn)

    def answer(self, cell: int, home: str, turn: Turn) -> None:
        """Answer a question, if there is one and it can be answered."""
        advertiser = self._of(cell).get(home)
        if advertiser is None or advertiser.asked_ns is None or not self._replication.is_root(cell):
            return
        wanted = self._core.rendezvous.wanted(cell)
        if not wanted:
            surrogate = self._replication.surrogate_of(cell)
            if surrogate is not None and advertiser.copied != surrogate:
                return
            advertiser.believe(turn.now_ns, turn.now_ns + self._interest_ns)
        asked_ns, advertiser.asked_ns = advertiser.asked_ns, None
        self._core.tell(home, Interest(cell, wanted, asked_ns, turn.now_ns), turn)

    def copy(self, pairs: Iterable[tuple[int, str]], turn: Turn) -> None:
        """Send surrogates the advertisers that they do not know."""
        missing: dict[str, list[tuple[int, str]]] = {}
        for cell, home in pairs:
            surrogate = self._replication.surrogate_of(cell)
            if surrogate is not None and self._by_cell[cell][home].copied != surrogate:
                missing.setdefault(surrogate, []).append((cell, home))
        for peer in sorted(missing):
            self._core.links.send(peer, Copies((), tuple(missing[peer])), turn)

    def kept(self, pairs: Iterable[tuple[int, str]], peer: str, turn: Turn) -> None:
        """Note that a surrogate knows advertisers, and answer their questions."""
        for cell, home in pairs:
            advertiser = self._of(cell).get(home)
            if advertiser is not None:
                advertiser.copied = peer
                self.answer(cell, home, turn)

    def learn(self, pairs: Iterable[tuple[int, str]], turn: Turn) -> None:
        """Note advertisers of another root, which may have told them anything."""
        for cell, home in pairs:
            if home not in self._of(cell):
                self._enter(cell, home, turn).seen_ns = turn.now_ns
            if self._replication.is_root(cell):
                self.took_over(cell, turn)

    def took_over(self, cell: int, turn: Turn) -> None:
        """Wait as long as the root before may have told advertisers that nobody cares."""
        for advertiser in self._of(cell).values():
            advertiser.believe(turn.now_ns, turn.now_ns + self._takeover_ns)
            advertiser.seen_ns = turn.now_ns

    def believed(self, cell: int, now_ns: int) -> int | None:
        """Return until when somebody may believe that nobody is interested in a cell.

        While the root and its surrogate are both away, it is not known who that might be.
        """
        until_ns = max((one.until_ns for one in self._of(cell).values()), default=0)
        since_ns = self._replication.stand_in_since(cell, now_ns)
        if since_ns is not None and self._replication.is_root(cell):
            until_ns = max(until_ns, since_ns + self._takeover_ns)
        return until_ns if until_ns > now_ns else None

    def want(self, cell: int, turn: Turn) -> None:
        """Tell those who believe that nobody is interested that somebody is."""
        for home, advertiser in sorted(self._of(cell).items()):
            if advertiser.until_ns > turn.now_ns and not advertiser.warned:
                advertiser.warned = True
                self._core.links.send(home, Interest(cell, True, 0, turn.now_ns), turn)

    def taken(self, cell: int, home: str, told_ns: int) -> None:
        """Note that a home knows that somebody is interested."""
        advertiser = self._of(cell).get(home)
        # What it knew before it was told otherwise does not count.
        if advertiser is not None and told_ns >= advertiser.told_ns:
            advertiser.until_ns = 0

    def drop(self, cell: int, home: str, turn: Turn) -> None:
        """Forget, durably, that a home advertises for a cell."""
        homes = self._by_cell[cell]
        del homes[home]
        if not homes:
            del self._by_cell[cell]
        turn.erase(_advertiser_key(cell, home))

    def silent(self, since_ns: int) -> list[tuple[int, str]]:
        """Return those that have not asked for a long time, in order."""
        return [
            (cell, home)
            for cell, homes in sorted(self._by_cell.items())
            for home, advertiser in sorted(homes.items())
            if advertiser.seen_ns < since_ns
        ]

    def _of(self, cell: int) -> dict[str, _Advertiser]:
        return self._by_cell.get(cell, {})

    def _enter(self, cell: int, home: str, turn: Turn) -> _Advertiser:
        advertiser = self._by_cell.setdefault(cell, {})[home] = _Advertiser()
        turn.persist(_advertiser_key(cell, home), AdvertiserRecord(cell, home))
        return advertiser


def _advertiser_key(cell: int, home: str) -> str:
    return f"rendezvous/a/{cell}/{home}"
