"""Deliveries: what a home broker hands to its clients, once, in order, until they have it.

Every subscription has a queue. What is put in gets the next number, is kept, and is sent until
the client has acknowledged it. An item is confirmed to its root as soon as it is kept in the
queues of all subscriptions that it came for. Who has got what is known for longer than any
root could send it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from distributary.broker.addresses import Address
from distributary.broker.client import Acknowledge
from distributary.broker.core import Handler, Part
from distributary.broker.deliveries.finished import Arrival, Finished, FinishedItems
from distributary.broker.deliveries.queues import Acknowledged, Queued, Queues
from distributary.broker.dissemination.messages import AskOwed, AskServed, Item, Owed, Served
from distributary.broker.effects import Turn
from distributary.broker.encoding import journal_key, wire
from distributary.broker.formats import (
    choice,
    delivered_event,
    formats_of,
    publication_of,
)
from distributary.broker.membership.messages import Status
from distributary.broker.membership.roster import MembersChanged
from distributary.broker.settings import ns
from distributary.broker.subscriptions.subscription import LocalSubscription
from distributary.broker.timers import Retention
from distributary.content.format_choice import NoFormat

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["ClientDeliveries", "Deliveries"]


@wire(573)
@dataclass(frozen=True, slots=True)
class ClientDeliveries:
    """What a client that moves takes with it.

    Attributes
    ----------
    queues
        (subscription, last number given, last number acknowledged, what lies between).
    finished
        What its subscriptions have got.
    """

    client: str
    queues: tuple[tuple[str, int, int, tuple[Queued, ...]], ...]
    finished: tuple[Finished, ...]


class Deliveries(Part):
    """What one broker hands to its clients."""

    name = "deliveries"
    uses = ("membership", "subscriptions", "migration")

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        settings = core.settings
        self._queues = Queues(core)
        self._items = FinishedItems()
        # Twice as long as roots keep an item, which is as long as they may send it again.
        self._kept_ns = 2 * ns(settings.content.retention_s)
        self._forgetting = Retention(core.timers, self._forget)
        self._abandoning = Retention(core.timers, self._abandon)
        # What has come so late that it may have been had and forgotten: by item.
        self._doubted: dict[tuple[str, str], Arrival] = {}
        self._doubting = Retention(core.timers, self._stop_doubting)
        self._skew_ns = ns(settings.subscriptions.clock_skew_s)
        self._changed_ns: dict[str, int] = {}

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Acknowledge: self._queues.acknowledged,
            AskServed: self._asked,
            Owed: self._owed,
        }

    def load(self, key: str, record: Any) -> None:
        """Take back what was kept."""
        if isinstance(record, Finished):
            self._items.put(record)
        else:
            assert isinstance(record, Queued | Acknowledged)
            self._queues.load(record)

    def start(self, turn: Turn) -> None:
        """Send again what was not acknowledged."""
        for subscription, queue in self._queues:
            for entry in queue.waiting.values():
                self._note(subscription, entry)
        for finished in self._items:
            self._forgetting.keep(finished.identity, turn.now_ns + self._kept_ns)
        self._queues.start(turn)
        self.core.timers.at(turn.now_ns + self._kept_ns, self._sweep)

    def _note(self, subscription: str, entry: Queued) -> None:
        """See to it that what is in a queue counts as got, whatever else was kept of it."""
        known = self._items.get((entry.source, entry.id))
        if known is None:
            known = Finished(*entry.identity, 0, 0, 0, "", 0, ())
        if subscription not in known.subscriptions:
            self._items.put(replace(known, subscriptions=(*known.subscriptions, subscription)))

    def members_changed(self, change: MembersChanged, turn: Turn) -> None:
        """Remember who may have more to send than it has sent by now."""
        for broker in (*change.came, *change.gone):
            self._changed_ns[broker] = turn.now_ns

    # What comes for clients.

    def receive(self, arrival: Arrival, turn: Turn) -> None:
        """Take an item for clients of this broker, in its turn."""
        item = arrival.item
        if self._is_doubtful(item, turn.now_ns):
            self._doubted[item.identity] = arrival
            self._doubting.keep(item.identity, turn.now_ns + self._kept_ns)
            self._ask_owed(arrival, turn)
        else:
            self._take(arrival, turn)

    def _take(self, arrival: Arrival, turn: Turn) -> None:
        ready = [arrival]
        while ready:
            following = ready.pop()
            item = following.item
            if self._items.holds_back(following):
                place = (item.sequence, following.after[0])
                self._abandoning.keep(place, turn.now_ns + self._kept_ns)
                continue
            self._store(following, turn)
            ready.extend(reversed(self._items.released(item)))

    def _is_doubtful(self, item: Item, now_ns: int) -> bool:
        """Whether an item is so old that it may have been handed out and forgotten."""
        old = now_ns >= item.published_ns + self._kept_ns - self._skew_ns
        return old and self._items.get(item.identity) is None

    def _ask_owed(self, arrival: Arrival, turn: Turn) -> None:
        item = arrival.item
        self.core.tell(arrival.root, AskOwed(item.source, item.id, arrival.attempt), turn)

    def _owed(self, message: Owed, sender: Address, turn: Turn) -> None:
        """Hand out what has come late to those who have not had it."""
        identity = (message.source, message.id)
        arrival = self._doubted.get(identity)
        if arrival is None or (arrival.root, arrival.attempt) != (sender, message.attempt):
            return
        del self._doubted[identity]
        owed = tuple(name for name in arrival.registrations if name in message.registrations)
        if owed:
            self._take(arrival._replace(registrations=owed), turn)

    def _stop_doubting(self, identity: tuple[str, str], turn: Turn) -> None:
        self._doubted.pop(identity, None)

    def _store(self, arrival: Arrival, turn: Turn) -> None:
        item = arrival.item
        known = self._items.get(item.identity)
        got = set() if known is None else set(known.subscriptions)
        entries: list[tuple[str, Queued]] = []
        for local in self._locals(arrival):
            if local.id in got or not self._is_for(local, arrival):
                continue
            parcel = self._parcel(arrival, local)
            if parcel is not None and self._put(local, parcel, item, entries, turn):
                got.add(local.id)
        if known is None:
            self._forgetting.keep(item.identity, turn.now_ns + self._kept_ns)
        finished = Finished(
            item.source,
            item.id,
            item.cell,
            item.series,
            item.number,
            arrival.root,
            arrival.attempt,
            tuple(sorted(got)),
            done=True,
            unknown=tuple(name for name in arrival.registrations if not self._knows(name)),
        )
        self._items.put(finished)
        # After the entries: a crash between them and this finds the entries again.
        turn.persist(_item_key(item), finished)
        self._queues.transmit(entries, turn)
        self.core.tell(arrival.root, _served(finished), turn)

    def _knows(self, subscription: str) -> bool:
        """Whether a client of this broker has a subscription, or one that is leaving it had."""
        if self.core.subscriptions.registered(subscription) is not None:
            return True
        return self.core.migration.has_ghost(subscription)

    def _locals(self, arrival: Arrival) -> list[LocalSubscription]:
        publication = publication_of(arrival.item.event)
        return [
            *self.core.subscriptions.matching(publication),
            *self.core.migration.ghosts(publication),
        ]

    def _is_for(self, local: LocalSubscription, arrival: Arrival) -> bool:
        """Whether the root meant a subscription, and owes it the item.

        One that the root did not know of is left out even if the item matches: the root will
        send it everything in order once it knows. What was published about when it came
        it need not get: not from a new root that still has the item, after later ones.
        """
        item = arrival.item
        if not local.owes(item.published_ns, self._skew_ns):
            return False
        if _is_doubtful(local, item) and self._items.is_past(local.id, item.sequence, item.number):
            return False
        names = arrival.registrations
        return local.registration in names or local.coverer in names

    def _parcel(self, arrival: Arrival, local: LocalSubscription) -> Queued | None:
        """Return what a device gets; None when it is not there."""
        item = arrival.item
        lost = tuple(sorted({name for name, _ in arrival.lost}))
        formats = formats_of(self.core.settings, item, lost)
        chosen = choice(formats, local.reading.profile)
        event, blob, media_type, reason = item.event, None, item.media_type, None
        if isinstance(chosen, NoFormat):
            event, media_type, reason = "", "", _reason(arrival, chosen)
        elif chosen != formats.held:
            media_type = formats.graph.names[chosen]
            event, blob = delivered_event(item.event, media_type), arrival.blobs.get(media_type)
            if blob is None:
                return None
        elif not item.inline:
            blob = arrival.blobs.get(formats.own)
            if blob is None:
                return None
        return Queued(
            local.client, local.id, 0, item.source, item.id, event, blob, media_type, reason
        )

    def _put(
        self,
        local: LocalSubscription,
        parcel: Queued,
        item: Item,
        entries: list[tuple[str, Queued]],
        turn: Turn,
    ) -> bool:
        """Give something a number and keep it, or pass it on for a client that moves.

        Returns whether the client counts as having got it here.
        """
        migration, subscription = self.core.migration, local.id
        place = (item.cell, item.series, item.number)
        if migration.has_left(parcel.client):
            if migration.keeps(parcel.client):
                parcel = self._queues.put(subscription, parcel, turn)
            migration.redirect(subscription, parcel, place, turn)
            return True
        if migration.holds(parcel.client):
            doubtful = _is_doubtful(local, item)
            migration.hold(subscription, parcel, place, turn, doubtful=doubtful)
            return False
        entries.append((subscription, self._queues.put(subscription, parcel, turn)))
        return True

    def hand(
        self,
        subscription: str,
        parcel: Queued,
        place: tuple[int, int, int],
        turn: Turn,
        *,
        doubtful: bool,
    ) -> None:
        """Deliver what came by way of a client's old home, or had to wait for that.

        Parameters
        ----------
        place
            Its cell, series and number.
        doubtful
            Whether it was published about when the subscription came, and need not be got
            after something later.
        """
        known = self._items.get(parcel.identity)
        if known is None:
            known = Finished(*parcel.identity, *place, "", 0, ())
            self._forgetting.keep(parcel.identity, turn.now_ns + self._kept_ns)
        if subscription in known.subscriptions:
            return
        if doubtful and self._items.is_past(subscription, known.sequence, known.number):
            return
        # Not held again: it is what others wait for, or has waited long enough.
        entries = [(subscription, self._queues.put(subscription, parcel, turn))]
        finished = replace(known, subscriptions=tuple(sorted((*known.subscriptions, subscription))))
        self._items.put(finished)
        turn.persist(_item_key(finished), finished)
        self._queues.transmit(entries, turn)

    def resume(self, subscription: str, client: Address, number: int, turn: Turn) -> None:
        """Go on with a client that has come, and has received so much."""
        self._queues.resume(subscription, client, number, turn)

    def left(self, subscription: str) -> tuple[int, int, int]:
        """Return what a client has not acknowledged: how many, the first and the last number."""
        return self._queues.left(subscription)

    def close(self, subscription: str, turn: Turn) -> None:
        """Forget the queue of a subscription that ends."""
        self._queues.drop(subscription, turn)

    def reconsider(self, subscription: str, turn: Turn) -> None:
        """Look at a queue whose limits may have changed."""
        self._queues.reconsider(subscription, turn)

    def place_of(self, identity: tuple[str, str]) -> tuple[int, int, int]:
        """Return the cell, the series and the number of an item; 0 where it is not known."""
        known = self._items.get(identity)
        return (0, 0, 0) if known is None else (known.cell, known.series, known.number)

    def resume_client(self, client: Address, turn: Turn) -> None:
        """Go on with a client that was to leave and stays."""
        for subscription, _ in self._queues.of_client(client):
            self._queues.resume(subscription, client, 0, turn)

    def received_by(self, client: Address, told: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        """Return how far a client has received each of its subscriptions, as it says itself."""
        return tuple(
            (name, max(queue.acknowledged, told.get(name, 0) if queue.shared else 0))
            for name, queue in self._queues.of_client(client)
        )

    # Confirmations.

    def _asked(self, message: AskServed, sender: Address, turn: Turn) -> None:
        identity = (message.source, message.id)
        if identity in self._doubted:
            self._ask_owed(self._doubted[identity], turn)
        known = self._items.get(identity)
        if known is not None and known.root == sender and known.attempt >= message.attempt:
            turn.send(sender, _served(known))

    # Forgetting.

    def _sweep(self, turn: Turn) -> None:
        self._queues.sweep(turn)
        self.core.timers.at(turn.now_ns + self._kept_ns, self._sweep)

    def _forget(self, identity: tuple[str, str], turn: Turn) -> None:
        known = self._items.get(identity)
        if known is None:
            return
        changed_ns = self._changed_ns.get(known.root)
        away = self.core.membership.status(known.root) is Status.DOWN
        if away or (changed_ns is not None and turn.now_ns < changed_ns + self._kept_ns):
            # The root, or whoever comes after it, may not know yet that we have served it.
            self._forgetting.keep(identity, turn.now_ns + self._kept_ns)
            return
        self._items.forget(identity)
        turn.erase(_item_key(known))

    def _abandon(self, place: tuple[tuple[str, int, int], int], turn: Turn) -> None:
        self._items.abandon(*place)

    # Clients that move.

    def export_client(self, client: Address) -> ClientDeliveries:
        """Return all that is kept for a client."""
        queues = [
            (
                subscription,
                queue.last,
                queue.acknowledged,
                tuple(queue.waiting[number] for number in sorted(queue.waiting)),
            )
            for subscription, queue in self._queues.of_client(client)
        ]
        own = {subscription for subscription, *_ in queues}
        finished = []
        for known in self._items:
            common = tuple(s for s in known.subscriptions if s in own)
            if common:
                # What this home was sent in an attempt, the next one was not.
                finished.append(replace(known, done=False, attempt=0, subscriptions=common))
        return ClientDeliveries(client, tuple(queues), tuple(finished))

    def adopt_client(self, record: ClientDeliveries, turn: Turn) -> None:
        """Take over all that another broker has kept for a client."""
        for subscription, last, acknowledged, waiting in record.queues:
            self._queues.adopt(
                subscription,
                record.client,
                last=last,
                acknowledged=acknowledged,
                waiting=waiting,
                turn=turn,
            )
        for told in record.finished:
            known = self._items.get(told.identity)
            subscriptions = set(told.subscriptions)
            if known is None:
                self._forgetting.keep(told.identity, turn.now_ns + self._kept_ns)
            else:
                subscriptions.update(known.subscriptions)
            finished = replace(known or told, subscriptions=tuple(sorted(subscriptions)))
            self._items.put(finished)
            turn.persist(_item_key(finished), finished)

    def drop_client(self, client: Address, turn: Turn) -> None:
        """Forget all that is kept for a client, which has moved."""
        for subscription, _ in self._queues.of_client(client):
            self._queues.drop(subscription, turn)


def _is_doubtful(local: LocalSubscription, item: Item) -> bool:
    """Whether clocks leave open if a subscription or an item came first."""
    return local.since_ns > item.published_ns


def _reason(arrival: Arrival, nothing: NoFormat) -> str:
    if arrival.lost:
        name, reason = arrival.lost[0]
        return f"{name} could not be made: {reason}"
    return nothing.reason


def _served(finished: Finished) -> Served:
    return Served(finished.source, finished.id, finished.attempt, finished.unknown)


def _item_key(item: Item | Finished) -> str:
    return f"deliveries/item/{journal_key(item.source, item.id)}"
