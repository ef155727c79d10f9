"""Moving clients to brokers at which they cost less.

Periodically every broker tells the others what its clients publish and want, looks at its
heaviest clients, tries every broker for each of them, and asks those to move that would save
enough (Zhao and Wu, sections IV.D and V). Nothing is missed and nothing is seen twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from distributary.broker.addresses import Address
from distributary.broker.core import Core, Handler, Part
from distributary.broker.deliveries.queues import Queued
from distributary.broker.encoding import decode, encodable, journal_key
from distributary.broker.host import OrderMove, Turn
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.migration.arrivals import ArrivalRecord, Arrivals, HeldRecord
from distributary.broker.migration.departures import DepartureRecord, Departures
from distributary.broker.migration.messages import (
    CHECKS,
    AcceptMove,
    Arrived,
    Connect,
    Connected,
    Redirect,
    RedirectEnd,
    RegisterClient,
    Release,
    Replicate,
    Replicated,
    Reserve,
    Reserved,
    Summarize,
)
from distributary.broker.settings import ns
from distributary.broker.subscriptions.subscription import own_id, scoped_id
from distributary.broker.telemetry import MoveRefused
from distributary.wiring.cost import cost
from distributary.wiring.problem import WiringProblem

__all__ = ["Choice", "Migration", "Summary", "best_home", "total", "traffic"]


# Which home is best for a client, as far as its present home can tell.
#
# Every other broker counts as one big user, which publishes and wants what its clients do
# (Zhao and Wu, section IV.D). What a wiring costs is `wiring`'s to say.


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


# What clients publish: as this broker has measured it, and until then as they advertise it.


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


@encodable(663)
@dataclass(frozen=True, slots=True)
class PricesRecord:
    """What a unit of traffic costs a client at each broker, as it is kept."""

    client: str
    prices: tuple[tuple[str, float], ...]


class Migration(Part):
    """Moves clients to brokers at which they cost less.

    Attributes
    ----------
    departures, arrivals
        The clients that leave, and those that come.
    """

    name = "migration"
    uses = (
        "membership",
        "links",
        "content",
        "subscriptions",
        "rendezvous",
        "publishing",
        "deliveries",
        "streams",
    )
    checks = CHECKS

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.departures = Departures(core)
        self.arrivals = Arrivals(core)
        self._prices: dict[Address, Mapping[str, float]] = {}
        self._summaries: dict[str, Summary] = {}
        self._rates = PublishingRates(core)
        # Who had no room for a client when it was asked last.
        self._full: dict[Address, set[str]] = {}

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            RegisterClient: self._register,
            Summarize: self._summarize,
            Reserve: self._reserve,
            Reserved: self._reserved,
            Release: self._release,
            AcceptMove: self.departures.answered,
            Replicate: self._replicate,
            Replicated: self._replicated,
            Arrived: self.departures.arrived,
            Connect: self._connect,
            Redirect: self._redirect,
            RedirectEnd: self.arrivals.ended,
            OrderMove: self._ordered,
        }

    def load(self, key: str, record: Any) -> None:
        """Take back what was kept."""
        if isinstance(record, PricesRecord):
            self._prices[record.client] = dict(record.prices)
        elif isinstance(record, DepartureRecord):
            self.departures.load(record)
        else:
            assert isinstance(record, ArrivalRecord | HeldRecord)
            self.arrivals.load(key, record)

    def start(self, turn: Turn) -> None:
        """Look at clients from time to time."""
        self.departures.start(turn)
        self.arrivals.start(turn)
        settings = self.core.settings.migration
        if settings.enabled:
            # Brokers that start together should not all look at the same moment.
            first_s = settings.period_s * self.core.rng.uniform(0.5, 1.0)
            self.core.timers.at(turn.now_ns + ns(first_s), self._look)

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Do without brokers that are lost for ever."""
        for broker in change.gone:
            self._summaries.pop(broker, None)
            self.departures.target_lost(broker, turn)
            self.arrivals.home_lost(broker, turn)

    def snapshot(self) -> dict[str, Any]:
        """Return who is on the move."""
        return {"leaving": self.departures.snapshot(), "arriving": self.arrivals.snapshot()}

    # What other parts ask.

    def turns_away(self, message: object, client: Address, turn: Turn) -> bool:
        """Whether a client's message is for its new home; if so it is told where that is."""
        self.departures.heard(client, turn)
        if isinstance(message, Connect):
            self.departures.came_back(client, message.epoch, turn)
        if not self.departures.has_left(client):
            return False
        self.departures.turn_away(client, turn)
        return True

    def moves(self, client: Address) -> bool:
        """Whether a client is on its way to another home, or from one to this."""
        return self.departures.has_left(client) or self.arrivals.holds(client)

    def published(self, client: Address, cell: int, size_bytes: int) -> None:
        """Note that a client has published something."""
        if self.core.settings.migration.enabled:
            self._rates.note(client, cell, size_bytes)

    # Choosing.

    def _look(self, turn: Turn) -> None:
        settings = self.core.settings.migration
        period_ns = ns(settings.period_s)
        self.core.timers.at(turn.now_ns + period_ns, self._look)
        self._rates.end_period(settings.period_s)
        parties = {client: self._of_client(client) for client in self._movable()}
        others = [peer for peer in self.core.membership.alive() if peer != self.core.identity]
        own = self._crowd(None)
        message = Summarize(
            tuple(sorted(own.publishes.items())),
            tuple(sorted(own.interests)),
            tuple(sorted(own.prices.items())),
        )
        for peer in others:
            turn.send(peer, message)
        if any(peer not in self._summaries for peer in others):
            return
        crowds = {peer: self._summaries[peer] for peer in others}
        published = total([*crowds.values(), own])
        loads = {client: traffic(party, published) for client, party in parties.items()}
        for client in sorted(parties, key=lambda c: (-loads[c], c))[: settings.clients]:
            crowds[self.core.identity] = self._crowd(client)
            # One that is full is asked again the time after next; until then the next best is.
            full = self._full.pop(client, set())
            candidates = [peer for peer in others if peer not in full]
            choice = best_home(parties[client], self.core.identity, crowds, candidates)
            if choice.home != self.core.identity and choice.saving >= settings.threshold:
                self.departures.begin(client, choice.home, parties[client], loads[client], turn)

    def _movable(self) -> list[Address]:
        return [
            client
            for client in sorted(self._prices)
            if client not in self.core.gone
            and not self.departures.busy(client)
            and not self.arrivals.holds(client)
            and self.departures.movable(client)
        ]

    def _of_client(self, client: Address) -> Summary:
        interests = {
            cell for local in self.core.subscriptions.of_client(client) for cell in local.cells
        }
        return Summary(self._rates.of(client), frozenset(interests), self._prices.get(client, {}))

    def _clients(self) -> list[Address]:
        """Return the clients that subscribe, publish or advertise here, in order."""
        return sorted({*self.core.subscriptions.clients(), *self._rates.clients()})

    def _traffic(self) -> float:
        """Return what all clients of this broker send and are sent, in bytes per second."""
        published = total([*self._summaries.values(), self._crowd(None)])
        return sum(traffic(self._of_client(client), published) for client in self._clients())

    def _crowd(self, without: Address | None) -> Summary:
        """Return all clients of this broker as one, except one of them."""
        parties = [self._of_client(client) for client in self._clients() if client != without]
        publishes = total(parties)
        interests = {cell for party in parties for cell in party.interests}
        membership = self.core.membership
        prices = {
            peer: membership.link_cost_to(peer)
            for peer in membership.alive()
            if peer != self.core.identity
        }
        return Summary(publishes, frozenset(interests), prices)

    def _ordered(self, message: OrderMove, sender: Address, turn: Turn) -> None:
        client, target = message.client, message.target
        reason = self._objection(client, target)
        if reason:
            turn.report(MoveRefused(client, target, reason))
            return
        party = self._of_client(client)
        published = total([*self._summaries.values(), self._crowd(None)])
        self.departures.begin(client, target, party, traffic(party, published), turn)

    def _objection(self, client: Address, target: str) -> str:
        """Return why a client cannot be told to move, if it cannot."""
        if self.departures.busy(client) or self.arrivals.holds(client):
            return "it is moving already"
        if client not in self._clients() and client not in self._prices:
            return "it is no client of this broker"
        if client in self.core.gone:
            return "it has no connection, and cannot be asked"
        if target == self.core.identity:
            return "this broker is its home"
        if not self.core.membership.is_alive(target):
            return "the broker that it should go to is not there"
        if not self.departures.movable(client):
            return "it announces objects, or has a subscription that is not in force yet"
        return ""

    # What clients and brokers say.

    def _register(self, message: RegisterClient, sender: Address, turn: Turn) -> None:
        self._prices[sender] = dict(message.prices)
        turn.persist(_prices_key(sender), PricesRecord(sender, message.prices))

    def _summarize(self, message: Summarize, sender: Address, turn: Turn) -> None:
        self._summaries[sender] = Summary(
            dict(message.publishes), frozenset(message.interests), dict(message.prices)
        )

    def _reserve(self, message: Reserve, sender: Address, turn: Turn) -> None:
        refusal = self.arrivals.reserve(
            message, sender, clients=len(self._clients()), traffic=self._traffic(), turn=turn
        )
        turn.send(sender, Reserved(message.client, refusal))

    def _reserved(self, message: Reserved, sender: Address, turn: Turn) -> None:
        if self.departures.reserved(message.client, sender, message.refusal, turn):
            self._full.setdefault(message.client, set()).add(sender)

    def _release(self, message: Release, sender: Address, turn: Turn) -> None:
        self.arrivals.release(message.client, sender)

    def _replicate(self, message: Replicate, sender: Address, turn: Turn) -> None:
        self.departures.returned(message.client, turn)
        if self.arrivals.replicate(message, sender, turn):
            self._rates.bring(message.client, dict(message.rates))
            self._prices[message.client] = dict(message.prices)
            turn.persist(_prices_key(message.client), PricesRecord(message.client, message.prices))

    def _replicated(self, message: Replicated, sender: Address, turn: Turn) -> None:
        self.departures.replicated(message.client, sender, message.stored, turn)
        if message.stored:
            self._full.pop(message.client, None)
            self._rates.drop(message.client)
            self._prices.pop(message.client, None)
            turn.erase(_prices_key(message.client))

    def _connect(self, message: Connect, sender: Address, turn: Turn) -> None:
        deliveries = self.core.deliveries
        wanted = None if message.wanted is None else dict(message.wanted)
        anew = self.core.subscriptions.begin_anew(sender, message.epoch, wanted, turn)
        if anew is None:
            # What is here would be delivered as it was before. The client goes on saying both,
            # and does not listen until it has an answer to this.
            return
        told = {scoped_id(sender, own): number for own, number in message.received}
        received = deliveries.received_by(sender, told)
        self.arrivals.connected(sender, message.moved_ns, turn, anew=anew)
        # Before anything else: until then the client does not listen to this broker.
        turn.send(sender, Connected(tuple((own_id(name), n) for name, n in received)))
        for subscription, number in received:
            deliveries.resume(subscription, sender, number, turn)

    def _redirect(self, message: Redirect, sender: Address, turn: Turn) -> None:
        parcel: Queued = decode(message.parcel)
        place = (message.cell, message.publisher, message.series, message.place)
        record = HeldRecord(
            message.client,
            message.subscription,
            parcel,
            *place,
            registration=message.registration,
            published_ns=message.published_ns,
        )
        self.arrivals.redirected(message.number, record, sender, turn)


def _prices_key(client: Address) -> str:
    return f"migration/prices/{journal_key(client)}"
