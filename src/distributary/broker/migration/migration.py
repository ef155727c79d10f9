"""Moving clients to brokers at which they cost less.

Periodically every broker tells the others what its clients publish and want, looks at its
heaviest clients, tries every broker for each of them, and asks those to move that would save
enough (Zhao and Wu, sections IV.D and V). Nothing is missed and nothing is seen twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distributary.broker.addresses import Address
from distributary.broker.core import Handler, Part
from distributary.broker.deliveries.queues import Queued
from distributary.broker.encoding import decode, journal_key, wire
from distributary.broker.host import OrderMove, Turn
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.migration.arrivals import Arrivals
from distributary.broker.migration.choice import PublishingRates, Summary, best_home, total, traffic
from distributary.broker.migration.departures import Departures
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
from distributary.broker.migration.transfers import (
    ArrivalRecord,
    DepartureRecord,
    HeldRecord,
)
from distributary.broker.settings import ns
from distributary.broker.subscriptions.subscription import own_id, scoped_id
from distributary.broker.telemetry import MoveRefused

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Migration"]


@wire(663)
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
