"""Advertisers: publishers' homes that ask a root whether anybody is interested in a cell.

A home that was told that nobody is drops what its publishers publish there. It may do so for
`interest_s` from when it asked, so a root that counts from when it answered counts longer.
Before the first registration of a cell is confirmed, every such home has said that it knows
better now, or its time is over. The surrogate knows all advertisers too: a broker that takes
over does not know who was told what, and waits for the longest time that it can have been.

Where the surrogate is such a home itself, nobody else need know of it, unlike of a registration
(see `replication`). Without root and surrogate the next in line waits in any case. What a home
was told it forgets in a crash, and does not believe once it takes the root for down.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distributary.broker.effects import Turn
from distributary.broker.encoding import wire
from distributary.broker.rendezvous.messages import Copies, Interest
from distributary.broker.settings import ns

if TYPE_CHECKING:
    from distributary.broker.core import Core
    from distributary.broker.rendezvous.replication import Replication

__all__ = ["AdvertiserRecord", "Advertisers"]


@wire(551)
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
        """Forget an advertiser."""
        homes = self._by_cell[cell]
        del homes[home]
        if not homes:
            del self._by_cell[cell]
        turn.erase(_key(cell, home))

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
        turn.persist(_key(cell, home), AdvertiserRecord(cell, home))
        return advertiser


def _key(cell: int, home: str) -> str:
    return f"rendezvous/a/{cell}/{home}"
