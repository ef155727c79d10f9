"""Which home is best for a client, as far as its present home can tell.

Every other broker counts as one big user, which publishes and wants what its clients do
(Zhao and Wu, section IV.D). What a wiring costs is `wiring`'s to say.

What clients publish: as this broker has measured it, and until then as they advertise it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distributary.broker.addresses import Address
from distributary.wiring.cost import cost
from distributary.wiring.problem import WiringProblem

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Choice", "PublishingRates", "Summary", "best_home", "total", "traffic"]


@dataclass(frozen=True)
class Summary:
    """What the clients of one broker, or one client, publish and want.

    Attributes
    ----------
    publishes
        Bytes per second by cell.
    interests
        Cells that are wanted.
    prices
        What a unit of traffic costs on the way to each broker.
    """

    publishes: Mapping[int, float]
    interests: frozenset[int]
    prices: Mapping[str, float]


@dataclass(frozen=True)
class Choice:
    """The best home for a client.

    Attributes
    ----------
    home
        Which broker that is; the present one where no other is better.
    saving
        The share of what the client costs at its present home that it would save.
    """

    home: str
    saving: float


def best_home(
    client: Summary,
    home: str,
    crowds: Mapping[str, Summary],
    candidates: Iterable[str],
) -> Choice:
    """Return the broker at which a client costs least.

    Parameters
    ----------
    client
        The client; its prices are those of access.
    home
        Where it is now.
    crowds
        By broker, all its clients together; the client is not among those of its home.
        Prices between brokers, where only one of two has told, are taken from that one.
    candidates
        Brokers to try, its home among them or not; those whose access price is not known are
        left out.
    """
    brokers = sorted(crowds)
    cells = sorted(
        set(client.publishes)
        | client.interests
        | {cell for crowd in crowds.values() for cell in (*crowd.publishes, *crowd.interests)}
    )
    tried = sorted({b for b in candidates if b in client.prices and b in crowds} | {home})
    if not cells or home not in client.prices or len(tried) < 2:
        return Choice(home, 0.0)
    column = {cell: at for at, cell in enumerate(cells)}
    parties = [client, *(crowds[b] for b in brokers)]
    publishes = np.zeros((len(parties), len(cells)))
    subscribes = np.zeros((len(parties), len(cells)), dtype=np.bool_)
    for row, party in enumerate(parties):
        for cell, rate in party.publishes.items():
            publishes[row, column[cell]] = rate
        subscribes[row, [column[cell] for cell in sorted(party.interests)]] = True
    access = np.zeros((len(parties), len(brokers)))
    access[0] = [client.prices.get(b, 0.0) for b in brokers]
    core = _prices(brokers, crowds)
    # A client's name sorts before those of the crowds, so that rows stay as they are.
    problem = WiringProblem.in_order(
        users=["", *brokers],
        brokers=brokers,
        publishes=publishes,
        subscribes=subscribes,
        access_prices=access,
        core_prices=core,
    )
    places = {b: at for at, b in enumerate(brokers)}
    costs: dict[str, float] = {}
    for b in tried:
        costs[b] = cost(problem, np.array([places[b], *range(len(brokers))])).total
    # What everybody else costs is the same wherever the client is, and is not its to save.
    alone = WiringProblem.in_order(
        users=brokers,
        brokers=brokers,
        publishes=publishes[1:],
        subscribes=subscribes[1:],
        access_prices=access[1:],
        core_prices=core,
    )
    others = cost(alone, np.arange(len(brokers))).total
    best = min(tried, key=lambda b: (costs[b], b != home, b))
    own = costs[home] - others
    return Choice(best, (costs[home] - costs[best]) / own if own > 0.0 else 0.0)


def traffic(client: Summary, published: Mapping[int, float]) -> float:
    """Return what a client sends and is sent, in bytes per second, as far as is known.

    Parameters
    ----------
    published
        What everybody publishes in each cell, the client included; it is not sent its own.
    """
    received = sum(
        published.get(cell, 0.0) - client.publishes.get(cell, 0.0)
        for cell in sorted(client.interests)
    )
    return sum(client.publishes.values()) + max(received, 0.0)


def total(crowds: Iterable[Summary]) -> dict[int, float]:
    """Return what everybody publishes in each cell."""
    published: dict[int, float] = {}
    for crowd in crowds:
        for cell, rate in crowd.publishes.items():
            published[cell] = published.get(cell, 0.0) + rate
    return published


def _prices(brokers: list[str], crowds: Mapping[str, Summary]) -> np.ndarray:
    """Return what traffic costs between brokers: symmetric, zero on the diagonal."""
    prices = np.zeros((len(brokers), len(brokers)))
    for one, a in enumerate(brokers):
        for other, b in enumerate(brokers[:one]):
            told = [
                price
                for price in (crowds[a].prices.get(b), crowds[b].prices.get(a))
                if price is not None
            ]
            prices[one, other] = prices[other, one] = sum(told) / len(told) if told else 1.0
    return prices


# Clients may advertise what they like, and others must not be told what they would refuse.
_ADVERTISED_MAX = 1e12


class PublishingRates:
    """Bytes per second by cell that each client of a broker publishes.

    A client that advertises counts by its word until it has published something for a whole
    period: half a period would make it seem to publish half as much. One that moves here counts
    as its old home has measured it, for as long.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._published: dict[Address, Counter[int]] = {}
        self._measured: dict[Address, dict[int, float]] = {}
        # Those that were here and publishing when the period began.
        self._watched: set[Address] = set()

    def note(self, client: Address, cell: int, size_bytes: int) -> None:
        """Note that a client has published something."""
        self._published.setdefault(client, Counter())[cell] += size_bytes

    def bring(self, client: Address, rates: Mapping[int, float]) -> None:
        """Take over what the old home of a client has measured."""
        if rates:
            self._measured[client] = dict(rates)

    def drop(self, client: Address) -> None:
        """Forget a client."""
        self._published.pop(client, None)
        self._measured.pop(client, None)
        self._watched.discard(client)

    def end_period(self, period_s: float) -> None:
        """Make rates of what was published since this was called last."""
        for client in sorted({*self._published, *self._measured, *self._watched}):
            sizes: Mapping[int, int] = self._published.get(client, {})
            if client in self._watched or not self.of(client):
                self._measured[client] = {
                    cell: size / period_s for cell, size in sorted(sizes.items()) if size
                }
            self._watched.add(client)
            if not sizes and not self._advertised(client) and not self._measured[client]:
                self.drop(client)
        self._published = {}

    def of(self, client: Address) -> Mapping[int, float]:
        """Return what a client publishes, in bytes per second by cell."""
        measured = self._measured.get(client)
        return self._advertised(client) if measured is None else measured

    def clients(self) -> list[Address]:
        """Return the clients that publish something, in order."""
        advertisers = self._core.rendezvous.advertisements.clients()
        return [client for client in sorted({*self._measured, *advertisers}) if self.of(client)]

    def _advertised(self, client: Address) -> dict[int, float]:
        event_bytes = self._core.settings.migration.event_bytes
        rates = self._core.rendezvous.advertisements.rates(client)
        return {
            cell: min(rate * event_bytes, _ADVERTISED_MAX)
            for cell, rate in sorted(rates.items())
            if rate > 0.0
        }
