"""Which home is best for a client, as far as its present home can tell.

Every other broker counts as one big user, which publishes and wants what its clients do
(Zhao and Wu, section IV.D). What a wiring costs is `wiring`'s to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from distributary.wiring.cost import cost
from distributary.wiring.problem import WiringProblem

__all__ = ["Choice", "Summary", "best_home", "total", "traffic"]


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
