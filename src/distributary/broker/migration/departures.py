"""Clients that leave this broker for another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.core import Core, Transitions
from distributary.broker.deliveries.queues import Queued
from distributary.broker.dissemination.messages import PRESSURE_SINCE, Missed
from distributary.broker.encoding import encodable, journal_key, since
from distributary.broker.host import Turn
from distributary.broker.migration.messages import (
    AcceptMove,
    Arrived,
    MoveNow,
    Place,
    Redirect,
    RedirectEnd,
    Release,
    Replicate,
    RequestToMove,
    Reserve,
    blobs_in,
)
from distributary.broker.settings import ns
from distributary.broker.subscriptions.lifecycle import MISSED
from distributary.broker.subscriptions.subscription import LocalSubscription, SubscriptionRecord
from distributary.broker.telemetry import MoveRefused

if TYPE_CHECKING:
    from distributary.broker.migration.migration import Summary

__all__ = ["LEAVING", "DepartureRecord", "Departures", "Going", "Leaving"]

# How often the state of what this broker waits for is looked at.
_LOOK_S = 0.5
# How often a client is asked before its silence counts as a no.
_ASKED_MAX = 5


class Leaving(Enum):
    """How far a client has left its home."""

    RESERVING = auto()
    ASKED = auto()
    REPLICATING = auto()
    REDIRECTING = auto()
    DRAINING = auto()
    LEFT = auto()
    STAYING = auto()
    FORGOTTEN = auto()


class Going(Enum):
    """What can happen to a client that is to leave."""

    GRANTED = auto()
    REFUSED = auto()
    ACCEPTED = auto()
    DECLINED = auto()
    SILENT = auto()
    REPLICATED = auto()
    ARRIVED = auto()
    DRAINED = auto()
    RETURNED = auto()
    EXPIRED = auto()
    TARGET_LOST = auto()


# Room is reserved at the target before the client is asked, so that its consent is enough.
# From `accept` on the old home answers the client no more. What still comes for it is kept
# here, and passed on as well once the target has stored the rest: should the target be lost,
# or not take the client, nothing is missing. The client has come to the target, and its
# subscriptions are registered from there, when the target says so. Then they are withdrawn
# here, and when no root owes this broker anything for them any more, the target is told that
# nothing follows. What is reserved or asked is forgotten in a crash, and the client stays;
# from `accept` on everything is durable.
LEAVING: Transitions[Leaving, Going] = Transitions(
    "client that leaves",
    Leaving.RESERVING,
    {
        (Leaving.RESERVING, Going.GRANTED): Leaving.ASKED,
        (Leaving.RESERVING, Going.REFUSED): Leaving.STAYING,
        (Leaving.RESERVING, Going.SILENT): Leaving.STAYING,
        (Leaving.RESERVING, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.ASKED, Going.ACCEPTED): Leaving.REPLICATING,
        (Leaving.ASKED, Going.DECLINED): Leaving.STAYING,
        (Leaving.ASKED, Going.SILENT): Leaving.STAYING,
        (Leaving.ASKED, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.REPLICATING, Going.REPLICATED): Leaving.REDIRECTING,
        (Leaving.REPLICATING, Going.REFUSED): Leaving.STAYING,
        (Leaving.REPLICATING, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.REDIRECTING, Going.ARRIVED): Leaving.DRAINING,
        (Leaving.REDIRECTING, Going.TARGET_LOST): Leaving.STAYING,
        (Leaving.DRAINING, Going.DRAINED): Leaving.LEFT,
        (Leaving.DRAINING, Going.TARGET_LOST): Leaving.FORGOTTEN,
        (Leaving.LEFT, Going.RETURNED): Leaving.FORGOTTEN,
        (Leaving.LEFT, Going.EXPIRED): Leaving.FORGOTTEN,
        (Leaving.LEFT, Going.TARGET_LOST): Leaving.FORGOTTEN,
    },
)


@encodable(660)
@dataclass(frozen=True, slots=True)
class DepartureRecord:
    """A client that leaves, as it is kept.

    Attributes
    ----------
    state
        The number of a state of `Leaving`.
    redirected
        How much was redirected.
    since_ns
        When the client accepted.
    arrived
        Whether the target has said that the client has.
    subscriptions
        Those that it had here.
    passed
        The number of the last delivery of each subscription that the target has, or was sent.
    given_up
        The subscriptions of which something could not be passed on.
    """

    client: str
    target: str
    state: int
    redirected: int
    since_ns: int
    arrived: bool
    prices: tuple[tuple[str, float], ...]
    subscriptions: tuple[SubscriptionRecord, ...]
    passed: tuple[tuple[str, int], ...]
    given_up: tuple[str, ...] = since(2, ())


class Departure:
    """A client that leaves.

    Attributes
    ----------
    asked
        How often it, or the target, was asked.
    traffic, rates
        What it sends and is sent, and what it publishes by cell, in bytes per second.
    ghosts
        Subscriptions that are withdrawn, and may still be sent something.
    client, target, state, redirected, since_ns, arrived, prices, subscriptions, passed, given_up
        As in `DepartureRecord`.
    """

    def __init__(self, client: Address, target: str) -> None:
        self.client = client
        self.target = target
        self.state = LEAVING.initial
        self.redirected = 0
        self.since_ns = 0
        self.arrived = False
        self.asked = 0
        self.traffic = 0.0
        self.rates: tuple[tuple[int, float], ...] = ()
        self.prices: tuple[tuple[str, float], ...] = ()
        self.subscriptions: tuple[SubscriptionRecord, ...] = ()
        self.passed: dict[str, int] = {}
        self.given_up: set[str] = set()
        self.ghosts: list[LocalSubscription] = []

    def record(self) -> DepartureRecord:
        """Return it as it is kept."""
        return DepartureRecord(
            self.client,
            self.target,
            self.state.value,
            self.redirected,
            self.since_ns,
            self.arrived,
            self.prices,
            self.subscriptions,
            tuple(sorted(self.passed.items())),
            tuple(sorted(self.given_up)),
        )

    @classmethod
    def from_record(cls, record: DepartureRecord) -> Departure:
        """Return it as it was kept."""
        departure = cls(record.client, record.target)
        departure.state = Leaving(record.state)
        departure.redirected = record.redirected
        departure.since_ns = record.since_ns
        departure.arrived = record.arrived
        departure.prices = record.prices
        departure.subscriptions = record.subscriptions
        departure.passed = dict(record.passed)
        departure.given_up = set(record.given_up)
        if departure.state is Leaving.DRAINING:
            departure.haunt()
        return departure

    def haunt(self) -> None:
        """Have its subscriptions stay as ghosts; those to streams are not redirected."""
        found = [LocalSubscription.from_record(record) for record in self.subscriptions]
        self.ghosts = [local for local in found if local.subscription.tolerance is None]


class Departures:
    """The clients that leave one broker."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._by_client: dict[Address, Departure] = {}
        # Those that have stayed because their new home was lost, and have not been heard since.
        self._stayed: dict[Address, Departure] = {}

    # What is kept.

    def load(self, record: DepartureRecord) -> None:
        """Take back a client that was leaving."""
        departure = Departure.from_record(record)
        stayed = departure.state is Leaving.STAYING
        (self._stayed if stayed else self._by_client)[record.client] = departure

    def start(self, turn: Turn) -> None:
        """Go on where a crash has stopped it."""
        for client in sorted(self._by_client):
            departure = self._by_client[client]
            if departure.state is Leaving.LEFT:
                self._forget_later(departure, turn)
                continue
            # Whatever a crash may have left undone.
            if departure.state is Leaving.REDIRECTING:
                self._stop_publishing(client, turn)
                self._catch_up(departure, turn)
            elif departure.state is Leaving.DRAINING:
                self._withdraw(client, turn)
            self._look_later(client, turn)

    def _keep(self, departure: Departure, turn: Turn) -> None:
        turn.persist(_key(departure.client), departure.record())

    def snapshot(self) -> list[dict[str, str]]:
        """Return who leaves, for where, and how far that is."""
        return [
            {"client": client, "to": one.target, "state": one.state.name.lower()}
            for client, one in sorted(self._by_client.items())
        ]

    # What other parts ask.

    def busy(self, client: Address) -> bool:
        """Whether a client is being moved, or has been."""
        return client in self._by_client

    def has_left(self, client: Address) -> bool:
        """Whether what comes for a client is for its new home."""
        departure = self._by_client.get(client)
        return departure is not None and departure.state in (
            Leaving.REPLICATING,
            Leaving.REDIRECTING,
            Leaving.DRAINING,
            Leaving.LEFT,
        )

    def movable(self, client: Address) -> bool:
        """Whether a client can be moved now.

        The roots of streams do not move, and a subscription moves once it is in force: it
        would be confirmed in two places otherwise. Nor does one move while roots may owe
        something to what it was before a change and is not registered any more: its next home
        would not know what that is for.
        """
        subscriptions = self._core.subscriptions
        return (
            not self._core.streams.announces(client)
            and all(local.confirmed for local in subscriptions.of_client(client))
            and not subscriptions.haunted(client)
        )

    def keeps(self, client: Address) -> bool:
        """Whether what is for a client that has left is kept here too, as it may come back."""
        departure = self._by_client.get(client)
        return departure is not None and departure.state in (
            Leaving.REPLICATING,
            Leaving.REDIRECTING,
        )

    def turn_away(self, client: Address, turn: Turn) -> None:
        """Tell a client that has left where its home is, if that one is ready."""
        departure = self._by_client[client]
        if departure.state is not Leaving.REPLICATING:
            self._show_way(departure, turn)

    def _show_way(self, departure: Departure, turn: Turn) -> None:
        # Whoever comes from a home that is down should not be sent back to it.
        if self._core.membership.is_alive(departure.target):
            turn.send(departure.client, MoveNow(departure.target, departure.since_ns))

    def ghosts(self, registration: str) -> list[LocalSubscription]:
        """Return subscriptions that are withdrawn, and may still be sent something.

        Those that had the registration, or were included in it.
        """
        return [
            ghost
            for client in sorted(self._by_client)
            for ghost in self._by_client[client].ghosts
            if registration in (ghost.registration, ghost.coverer)
        ]

    def redirect(
        self, local: LocalSubscription, parcel: Queued, place: Place, published_ns: int, turn: Turn
    ) -> None:
        """Pass something for a client on to its new home, as soon as that one is ready."""
        departure = self._by_client[parcel.client]
        if departure.state is not Leaving.REPLICATING:
            origin = (local.registration, published_ns)
            self._pass_on(departure, local.id, parcel, place, turn, origin)

    def misses(self, local: LocalSubscription, turn: Turn) -> bool:
        """Whether something for a client that has left can neither be kept nor passed on.

        Its new home is away or slow, and what waits for that has its limits as everything has.
        That one is told, and the subscription ends where the client is.
        """
        departure = self._by_client[local.client]
        if local.id in departure.given_up:
            return True
        understood = self._core.membership.version >= PRESSURE_SINCE
        if not (understood and self._core.links.is_full(departure.target)):
            return False
        departure.given_up.add(local.id)
        self._keep(departure, turn)
        self.missed(local, 1, turn.now_ns, turn)
        return True

    def missed(self, local: LocalSubscription, count: int, given_up_ns: int, turn: Turn) -> None:
        """Tell a client's new home what this one has missed and cannot redirect."""
        if self.has_left(local.client):
            told = Missed(((local.registration, count),), given_up_ns)
            self._core.links.send(self._by_client[local.client].target, told, turn)

    def _pass_on(
        self,
        departure: Departure,
        subscription: str,
        parcel: Queued,
        place: Place,
        turn: Turn,
        origin: tuple[str, int] = ("", 0),
    ) -> None:
        departure.redirected += 1
        if parcel.number:
            departure.passed[subscription] = parcel.number
        self._keep(departure, turn)
        number, data = departure.redirected, self._core.encoded(parcel)
        self._core.content.lend(tenant_of(parcel.client), parcel.blob, departure.target, turn)
        message = Redirect(departure.client, number, subscription, data, *place, *origin)
        self._core.links.send(departure.target, message, turn)

    def _catch_up(self, departure: Departure, turn: Turn) -> None:
        """Pass on what is kept here and the target has not been sent."""
        kept = self._core.deliveries.export_client(departure.client)
        for subscription, _, _, waiting in kept.queues:
            for parcel in waiting:
                if parcel.number > departure.passed.get(subscription, 0):
                    place = self._core.deliveries.place_of(parcel.identity)
                    self._pass_on(departure, subscription, parcel, place, turn)

    # The steps.

    def begin(
        self, client: Address, target: str, party: Summary, traffic: float, turn: Turn
    ) -> None:
        """Try to move a client: reserve room for it first."""
        departure = self._by_client[client] = Departure(client, target)
        departure.prices = tuple(sorted(party.prices.items()))
        departure.rates = tuple(sorted(party.publishes.items()))
        departure.traffic = traffic
        turn.send(target, self._request(departure))
        self._look_later(client, turn)

    def _request(self, departure: Departure) -> Reserve:
        client = departure.client
        ids = tuple({one.id: None for one in self._core.subscriptions.of_client(client)})
        return Reserve(client, ids, departure.traffic)

    def reserved(self, client: Address, target: str, refusal: str, turn: Turn) -> bool:
        """Go on when there is room; say whether the client stays because there is none."""
        departure = self._departing(client, target)
        # Who was asked again, and hears that late, when the client is there already, answers
        # that it is moving. That does not refuse what was replicated meanwhile.
        if departure is None or departure.state is not Leaving.RESERVING:
            return False
        self._step(departure, Going.REFUSED if refusal else Going.GRANTED, turn)
        if not refusal:
            turn.send(client, RequestToMove(target))
            return False
        turn.report(MoveRefused(client, target, refusal))
        return True

    def answered(self, message: AcceptMove, client: Address, turn: Turn) -> None:
        """Go on when the client agrees."""
        target = message.target
        departure = self._departing(client, target)
        if departure is None:
            return
        agreed = message.accepted and self.movable(client)
        if not self._step(departure, Going.ACCEPTED if agreed else Going.DECLINED, turn):
            return
        if departure.state is not Leaving.REPLICATING:
            turn.send(target, Release(client))
            return
        core = self._core
        deliveries = core.deliveries.export_client(client)
        publications = core.publishing.export_client(client)
        for blob in blobs_in(deliveries, publications):
            core.content.lend(tenant_of(client), blob, target, turn)
        parts = (
            ("advertisements", core.encoded(core.rendezvous.advertisements.export_client(client))),
            ("deliveries", core.encoded(deliveries)),
            ("publishing", core.encoded(publications)),
            ("subscriptions", core.encoded(core.subscriptions.export_client(client))),
        )
        departure.since_ns = turn.now_ns
        departure.passed = {subscription: last for subscription, last, *_ in deliveries.queues}
        self._keep(departure, turn)
        replica = Replicate(client, departure.prices, departure.rates, parts, departure.since_ns)
        core.links.send(target, replica, turn)

    def replicated(self, client: Address, target: str, stored: bool, turn: Turn) -> None:
        """Tell the client where to connect, or keep it."""
        departure = self._departing(client, target)
        if departure is None:
            return
        if self._step(departure, Going.REPLICATED if stored else Going.REFUSED, turn) and stored:
            self._stop_publishing(client, turn)
            self._catch_up(departure, turn)
            self._show_way(departure, turn)

    def _stop_publishing(self, client: Address, turn: Turn) -> None:
        self._core.publishing.drop_client(client, turn)
        self._core.rendezvous.advertisements.drop_client(client, turn)

    def arrived(self, message: Arrived, target: Address, turn: Turn) -> None:
        """Withdraw the subscriptions here, now that they are registered from there."""
        departure = self._by_client.get(message.client)
        if departure is None:
            self._give_way(message, target, turn)
        elif (
            departure.state is Leaving.REDIRECTING
            and departure.target == target
            # It is said without a link too, and may come twice and late.
            and message.moved_ns in (0, departure.since_ns)
        ):
            departure.arrived = True
            self._keep(departure, turn)
            self._drain(departure, turn)

    def _give_way(self, message: Arrived, target: Address, turn: Turn) -> None:
        """Leave a client to a home that was taken for lost, and is back with it.

        The client has not come back here but waited there, and roots would go on serving this
        home. What has come here meanwhile is lost, as for every client of a home that was away
        for so long.
        """
        stayed = self._stayed.get(message.client)
        if message.connected and stayed is not None and stayed.since_ns == message.moved_ns:
            self._forget_stay(message.client, turn)
            self._withdraw(message.client, turn)
        turn.send(target, RedirectEnd(message.client, 0, message.moved_ns))

    def _drain(self, departure: Departure, turn: Turn) -> None:
        floor_ns = departure.since_ns + ns(self._core.settings.migration.redirect_s)
        if not departure.arrived or turn.now_ns < floor_ns:
            return
        # As they are now: which ones cover them may have changed.
        subscriptions = self._core.subscriptions.export_client(departure.client).subscriptions
        departure.subscriptions = subscriptions
        departure.haunt()
        self._step(departure, Going.ARRIVED, turn)
        self._withdraw(departure.client, turn)

    def _withdraw(self, client: Address, turn: Turn) -> None:
        self._core.subscriptions.drop_client(client, turn)
        self._core.deliveries.drop_client(client, turn)

    def target_lost(self, broker: str, turn: Turn) -> None:
        """Keep the clients that were to go to a broker that is lost for ever."""
        for client in sorted(self._by_client):
            departure = self._by_client[client]
            if departure.target == broker:
                self._step(departure, Going.TARGET_LOST, turn)

    # Waiting.

    def _look_later(self, client: Address, turn: Turn) -> None:
        self._core.timers.at(turn.now_ns + ns(_LOOK_S), self._look, client)

    def _look(self, turn: Turn, client: Address) -> None:
        departure = self._by_client.get(client)
        if departure is None:
            return
        if departure.state in (Leaving.RESERVING, Leaving.ASKED):
            departure.asked += 1
            if departure.asked > _ASKED_MAX:
                turn.send(departure.target, Release(client))
                self._step(departure, Going.SILENT, turn)
                return
            if departure.state is Leaving.ASKED:
                turn.send(client, RequestToMove(departure.target))
            else:
                turn.send(departure.target, self._request(departure))
        elif departure.state is Leaving.REDIRECTING:
            self._show_way(departure, turn)
            self._drain(departure, turn)
        elif departure.state is Leaving.DRAINING:
            ghosts = [ghost.registration for ghost in departure.ghosts]
            if not self._core.subscriptions.withdrawing(ghosts):
                self._step(departure, Going.DRAINED, turn)
                departure.ghosts = []
                end = RedirectEnd(client, departure.redirected, departure.since_ns)
                self._core.links.send(departure.target, end, turn)
                self._forget_later(departure, turn)
                return
        self._look_later(client, turn)

    def _forget_later(self, departure: Departure, turn: Turn) -> None:
        """Tell whoever asks here where the client is, for as long as anything is remembered.

        The client may be away as soon as it has been told to go. Whoever did not know any more that
        it has left would take what it still says here for that of a new client, and have it served
        where it is not.
        """
        settings = self._core.settings
        kept_ns = ns(max(settings.content.retention_s, settings.publishing.dedupe_s))
        self._core.timers.at(turn.now_ns + kept_ns, self._expire, departure)

    def _expire(self, turn: Turn, departure: Departure) -> None:
        if self._by_client.get(departure.client) is not departure:
            return
        if self._core.membership.is_alive(departure.target):
            self._step(departure, Going.EXPIRED, turn)
        else:
            # What was redirected waits for it, and counts when it is back.
            self._forget_later(departure, turn)

    def came_back(self, client: Address, epoch: int, turn: Turn) -> None:
        """Forget that a client has left, as it comes back by itself: it begins anew then.

        What it said when it came here, before it left, may come twice and late. Whoever believed
        that would take the client's old subscriptions for new ones as well, and have them served
        here, where nobody listens. One that another broker sends back is brought by that.
        """
        departure = self._by_client.get(client)
        if departure is None:
            return
        known = [record.epoch for record in departure.subscriptions]
        if not known or epoch > max(known):
            self.returned(client, turn)

    def heard(self, client: Address, turn: Turn) -> None:
        """Learn that a client has stayed here whose new home is lost, and have it stay.

        It may still look for the other one. When that is back, it has what the client had when
        it was to come, and knows nothing of what it has ended since.
        """
        if self._forget_stay(client, turn):
            turn.send(client, MoveNow(self._core.identity))

    def _forget_stay(self, client: Address, turn: Turn) -> bool:
        if self._stayed.pop(client, None) is None:
            return False
        turn.erase(_key(client))
        return True

    def returned(self, client: Address, turn: Turn) -> None:
        """Forget that a client has left, as it comes back."""
        self._forget_stay(client, turn)
        departure = self._by_client.get(client)
        if departure is not None:
            self._step(departure, Going.RETURNED, turn)

    def _departing(self, client: Address, target: str) -> Departure | None:
        departure = self._by_client.get(client)
        return departure if departure is not None and departure.target == target else None

    def _step(self, departure: Departure, event: Going, turn: Turn) -> bool:
        following = LEAVING.step(departure.state, event)
        if following is None:
            return False
        durable, kept = self.has_left(departure.client), self.keeps(departure.client)
        departure.state = following
        if following in (Leaving.STAYING, Leaving.FORGOTTEN):
            del self._by_client[departure.client]
            if event is Going.TARGET_LOST and kept:
                self._stayed[departure.client] = departure
                self._keep(departure, turn)
            elif durable:
                turn.erase(_key(departure.client))
            if kept:
                self._core.deliveries.resume_client(departure.client, turn)
                for name in sorted(departure.given_up):
                    local = self._core.subscriptions.get(name)
                    if local is not None:
                        self._core.subscriptions.give_up(local, MISSED, turn, missed=1)
        elif self.has_left(departure.client):
            self._keep(departure, turn)
        return True


def _key(client: Address) -> str:
    return f"migration/leaving/{journal_key(client)}"
