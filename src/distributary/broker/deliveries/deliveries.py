"""Deliveries: what a home broker hands to its clients, once, in order, until they have it.

Every subscription has a queue. What is put in gets the next number, is kept, and is sent until
the client has acknowledged it. An item is confirmed to its root as soon as it is kept in the
queues of all subscriptions that it came for. Who has got what is known for longer than any
root could send it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.client import Acknowledge, Received
from distributary.broker.core import Core, Handler, Part, check_client
from distributary.broker.deliveries.finished import Arrival, Finished, FinishedItems
from distributary.broker.deliveries.queues import Acknowledged, Queued, QueuedTogether, Queues
from distributary.broker.dissemination.messages import (
    REPEATS_MAX,
    AskOwed,
    AskServed,
    Item,
    ItemId,
    Missed,
    Owed,
    SequenceName,
    Served,
)
from distributary.broker.encoding import encodable, journal_key
from distributary.broker.host import ClientBack, ClientGone, Turn
from distributary.broker.plan_part import Grant
from distributary.broker.planning import delivered_event, publication_of
from distributary.broker.settings import ns
from distributary.broker.subscriptions.lifecycle import MISSED, NOTHING_QUEUED, Depth
from distributary.broker.subscriptions.subscription import LocalSubscription, superseded_in
from distributary.broker.timers import Backlog, Retention

__all__ = ["ClientDeliveries", "Deliveries"]


@encodable(573)
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
    uses = ("membership", "links", "content", "subscriptions", "migration")
    checks = MappingProxyType({ClientGone: check_client, ClientBack: check_client})

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        settings = core.settings
        self._queues = Queues(core)
        content = settings.content
        self._items = FinishedItems(content.early_items, content.early_bytes)
        self._identities_max = settings.publishing.identities_max
        self._doubted_max = content.early_items
        # Longer than anybody may send an item again. A root can go down before it hears that we
        # have served the item; another takes over, and is told; the first comes back any time
        # before it counts as lost, still waits for us, and sends it anew. So does a root to
        # which a publisher's home offers what it could not while it was away. It may wait for the
        # home that had the subscription before, and come to us only when that is lost, too. Each
        # of the two keeps an item for so long after that. And where that is short, a root whose
        # question or whose answer gets lost is not heard for longer: not before it sends again.
        kept_s = max(settings.membership.lost_s, REPEATS_MAX * content.repeat_s)
        self._kept_ns = 2 * ns(kept_s) + 2 * ns(content.retention_s)
        self._backlog = Backlog(core.timers)
        self._forgetting = Retention(core.timers, self._forget)
        # When a root last sent something that is known here, or asked about it. Another than the
        # one that was answered may have it, and not get an answer before all that is to come first
        # has come: so nothing is forgotten while it is sent.
        self._sent_ns: dict[ItemId, int] = {}
        self._abandoning = Retention(core.timers, self._abandon)
        # What has come so late that it may have been had and forgotten: by item.
        self._doubted: dict[ItemId, Arrival] = {}
        self._doubting = Retention(core.timers, self._stop_doubting)
        self._skew_ns = ns(settings.subscriptions.clock_skew_s)

    def handlers(self) -> Mapping[type, Handler]:
        """Return who handles which kind of message."""
        return {
            Acknowledge: self._queues.acknowledged,
            Received: self._queues.received,
            AskServed: self._asked,
            Owed: self._owed,
            Missed: self._missed,
            ClientGone: self._gone,
            ClientBack: self._back,
        }

    def snapshot(self) -> dict[str, Any]:
        """Return how much waits for which client."""
        return {
            "queues": [
                {
                    "client": queue.client,
                    "subscription": subscription,
                    "waiting": len(queue.waiting),
                    "bytes": queue.size_bytes,
                    "oldest_ns": next((one.queued_ns for one in queue.waiting.values()), None),
                    "under_way": queue.under_way,
                    "acknowledged": queue.acknowledged,
                    "last": queue.last,
                }
                for subscription, queue in self._queues
            ]
        }

    def load(self, key: str, record: Any) -> None:
        """Take back what was kept."""
        if isinstance(record, Finished):
            self._items.put(record)
        else:
            assert isinstance(record, Queued | QueuedTogether | Acknowledged)
            self._queues.load(f"{self.name}/{key}", record)

    def loaded(self) -> None:
        """Know what is in queues, and in which order: relays that begin may have more for them."""
        for subscription, queue in self._queues:
            queue.begin()
            for entry in queue.waiting.values():
                self._note(subscription, entry)

    def start(self, turn: Turn) -> None:
        """Send again what was not acknowledged."""
        known = (finished.identity for finished in self._items)
        self._forgetting.keep_all(known, turn.now_ns + self._kept_ns)
        self._queues.start(turn)
        self.core.timers.at(turn.now_ns + self._kept_ns, self._sweep)

    def _note(self, subscription: str, entry: Queued) -> None:
        """See to it that what is in a queue counts as got, whatever else was kept of it."""
        known = self._items.get(entry.identity)
        if known is None:
            known = Finished(entry.identity, 0, 0, 0, 0, "", 0, ())
        if subscription not in known.subscriptions:
            self._items.put(replace(known, subscriptions=(*known.subscriptions, subscription)))

    # What comes for clients.

    def receive(self, arrival: Arrival, turn: Turn) -> None:
        """Take an item for clients of this broker, in its turn."""
        item = arrival.item
        self._note_sent(item.identity, turn.now_ns)
        if len(self._items) >= self._identities_max and self._items.get(item.identity) is None:
            # It could not be remembered, and come twice. Its root sends it again, and slows
            # publishers down until then.
            return
        if self._is_doubtful(item, turn.now_ns):
            self._stop_doubting(item.identity, turn)
            if self._give_way(arrival, turn):
                self._doubted[item.identity] = arrival
                self._refer(arrival)
                self._doubting.keep(item.identity, turn.now_ns + self._kept_ns)
                self._ask_owed(arrival, turn)
        else:
            self._take(arrival, turn)

    def _note_sent(self, identity: ItemId, now_ns: int) -> None:
        if self._items.get(identity) is not None:
            self._sent_ns[identity] = now_ns

    def _take(self, arrival: Arrival, turn: Turn) -> None:
        if self._items.holds_back(arrival):
            if self._items.hold(arrival):
                self._refer(arrival)
                self._release(self._items.surplus(), turn)
            self._abandoning.keep(arrival.awaited, turn.now_ns + self._kept_ns)
            return
        self._store(arrival, turn)
        released = self._items.released(arrival.item)
        if released:
            # Each of them may be the one for which the next has waited, and so on.
            self._backlog.each(self._take_released, released, turn)

    def _take_released(self, arrival: Arrival, turn: Turn) -> None:
        self._take(arrival, turn)
        self._release((arrival,), turn)

    def _refer(self, arrival: Arrival) -> None:
        """Have the content of an item that waits here not be freed."""
        for blob in arrival.blobs.values():
            self.core.content.refer(arrival.item.tenant, blob)

    def _release(self, arrivals: Iterable[Arrival], turn: Turn) -> None:
        for arrival in arrivals:
            for blob in arrival.blobs.values():
                self.core.content.release(arrival.item.tenant, blob, turn)

    def _is_doubtful(self, item: Item, now_ns: int) -> bool:
        """Whether an item is so old that it may have been handed out and forgotten."""
        old = now_ns >= item.published_ns + self._kept_ns - self._skew_ns
        return old and self._items.get(item.identity) is None

    def _give_way(self, arrival: Arrival, turn: Turn) -> bool:
        """Have room for one more item of which it is doubtful whether it is owed; False if not.

        The latest gives way, be it this one, and is sent again. All others wait for the first: if
        it gave way to them, it would be gone whenever its root has answered. It is asked about
        once more, as the answer may be lost, unless its root is.
        """
        if len(self._doubted) < self._doubted_max:
            return True
        first = min(self._doubted.values(), key=_order)
        latest = max(self._doubted.values(), key=_order)
        if self.core.membership.is_gone(first.root):
            self._stop_doubting(first.item.identity, turn)
        elif _order(latest) > _order(arrival):
            self._stop_doubting(latest.item.identity, turn)
        else:
            self._ask_owed(first, turn)
            return False
        return True

    def _ask_owed(self, arrival: Arrival, turn: Turn) -> None:
        item = arrival.item
        self.core.tell(arrival.root, AskOwed(item.identity, arrival.attempt), turn)

    def _owed(self, message: Owed, sender: Address, turn: Turn) -> None:
        """Hand out what has come late to those who have not had it."""
        identity = message.identity
        arrival = self._doubted.get(identity)
        if arrival is None or (arrival.root, arrival.attempt) != (sender, message.attempt):
            return
        del self._doubted[identity]
        self._release((arrival,), turn)
        owed = tuple(one for one in arrival.grants if one.registration in message.registrations)
        if owed:
            # What it was to come after may be done and forgotten, too, if conversions took
            # long: it would wait in vain, and so would each attempt that was planned before.
            self._take(arrival._replace(grants=owed, after=message.after), turn)

    def _stop_doubting(self, identity: ItemId, turn: Turn) -> None:
        arrival = self._doubted.pop(identity, None)
        if arrival is not None:
            self._release((arrival,), turn)

    def _store(self, arrival: Arrival, turn: Turn) -> None:
        """Put an item into the queues that the root has named, and say which these are."""
        item = arrival.item
        identity = item.identity
        known = self._items.get(identity)
        got = set() if known is None else set(known.subscriptions)
        served = set() if known is None else set(known.served)
        unknown: set[str] = set()
        # One that is getting a registration of its own is still covered by another.
        seen = set(got)
        entries: list[tuple[str, Queued]] = []
        kept: list[Queued] = []
        for grant in arrival.grants:
            is_known, behind = self._behind(grant.registration, item)
            (served if is_known else unknown).add(grant.registration)
            for one in behind:
                if one.id in seen or not self._owes(one, item):
                    continue
                seen.add(one.id)
                if self._put(one, _parcel(arrival, one, grant), item, entries, kept, turn):
                    got.add(one.id)
        self._queues.keep(kept, turn)
        if known is None:
            self._forgetting.keep(identity, turn.now_ns + self._kept_ns)
        attempt = arrival.attempt
        if known is not None and known.root == arrival.root:
            # An attempt that was overtaken by a later one takes nothing back.
            attempt = max(attempt, known.attempt)
            unknown.update(known.unknown)
        finished = Finished(
            identity,
            item.cell,
            item.publisher,
            item.series,
            item.number,
            arrival.root,
            attempt,
            tuple(sorted(got)),
            done=True,
            served=tuple(sorted(served)),
            unknown=tuple(sorted(unknown - served)),
        )
        self._items.put(finished)
        # After the entries: a crash between them and this finds the entries again.
        turn.persist(_item_key(finished), finished)
        self._queues.transmit(entries, turn)
        self.core.links.tell_soon(arrival.root, _served(finished), turn)
        for grant in arrival.grants:
            superseded = superseded_in(grant.registration)
            if superseded is not None:
                self.core.subscriptions.supersede(*superseded, turn)

    def _behind(self, name: str, item: Item) -> tuple[bool, list[LocalSubscription]]:
        """Return whether there is a registration, and those that get an item by it.

        The subscription that it is of, and those that this covers. Of a subscription that has a
        registration the root has said that the item matches, and what it gets. Roots do not know
        those that are covered: whether the item matches them is found out here. Their devices are
        alike, so that they get the same. A client that is leaving, or has left, counts as long as
        something may be on its way to it, and so does what a subscription was before it was
        changed. One that has begun anew elsewhere does not.
        """
        subscriptions, tenant = self.core.subscriptions, item.tenant
        superseded = superseded_in(name)
        registration = name if superseded is None else superseded[0]
        named = subscriptions.registered(registration)
        ghosts = self._ghosts(registration)
        own: list[LocalSubscription] = []
        for one in ghosts if named is None else (named, *ghosts):
            # Somebody else may have the id by now.
            mine = one.subscription.tolerance is None and tenant_of(one.client) == tenant
            if one.registration == registration and mine:
                own.append(one)
                break
        covered = [
            one
            for one in (*subscriptions.covered_by(registration), *ghosts)
            if one.coverer == registration and tenant_of(one.client) == tenant
        ]
        if covered:
            publication = publication_of(item.event)
            covered = [one for one in covered if one.filter.matches(publication)]
        return bool(own), covered if superseded else [*own, *covered]

    def _ghosts(self, registration: str) -> list[LocalSubscription]:
        """Return what had a registration here, and may still be owed something."""
        departures, subscriptions = self.core.migration.departures, self.core.subscriptions
        return [*departures.ghosts(registration), *subscriptions.ghosts(registration)]

    def _owes(self, local: LocalSubscription, item: Item) -> bool:
        """Whether an item is owed to a subscription that the root means.

        What was published about when it came it need not get: not from a new root that still
        has the item, after later ones. While its client does not know that it is in force,
        everything that comes was published before that.
        """
        if not (local.confirmed and local.owes(item.published_ns, self._skew_ns)):
            return False
        return not (
            local.may_follow(item.published_ns, self._skew_ns)
            and self._items.is_past(local.id, item.sequence, item.number)
        )

    def _put(
        self,
        local: LocalSubscription,
        parcel: Queued,
        item: Item,
        entries: list[tuple[str, Queued]],
        kept: list[Queued],
        turn: Turn,
    ) -> bool:
        """Give something a number, to be kept, or pass it on for a client that moves.

        Returns whether the client counts as having got it here.
        """
        departures, arrivals = self.core.migration.departures, self.core.migration.arrivals
        subscription = local.id
        place = (item.cell, item.publisher, item.series, item.number)
        if departures.has_left(parcel.client):
            if departures.misses(local, turn):
                return True
            if departures.keeps(parcel.client):
                parcel = self._queues.put(subscription, parcel, turn)
                kept.append(parcel)
            departures.redirect(local, parcel, place, item.published_ns, turn)
            return True
        if arrivals.holds(parcel.client):
            doubtful = local.may_follow(item.published_ns, self._skew_ns)
            arrivals.hold(subscription, parcel, place, turn, doubtful=doubtful)
            return False
        entry = self._queues.put(subscription, parcel, turn)
        entries.append((subscription, entry))
        kept.append(entry)
        return True

    def hand(
        self,
        subscription: str,
        parcel: Queued,
        place: tuple[int, int, int, int],
        turn: Turn,
        *,
        doubtful: bool,
    ) -> None:
        """Deliver what came by way of a client's old home, or had to wait for that.

        Parameters
        ----------
        place
            Its cell, publisher, series and number.
        doubtful
            Whether it was published about when the subscription came, and need not be got
            after something later.
        """
        known = self._items.get(parcel.identity)
        if known is None:
            known = Finished(parcel.identity, *place, "", 0, ())
            self._forgetting.keep(parcel.identity, turn.now_ns + self._kept_ns)
        if subscription in known.subscriptions:
            return
        if doubtful and self._items.is_past(subscription, known.sequence, known.number):
            return
        # Not held again: it is what others wait for, or has waited long enough.
        entry = self._queues.put(subscription, parcel, turn)
        self._queues.keep([entry], turn)
        finished = replace(known, subscriptions=tuple(sorted((*known.subscriptions, subscription))))
        self._items.put(finished)
        turn.persist(_item_key(finished), finished)
        self._queues.transmit([(subscription, entry)], turn)

    def resume(self, subscription: str, client: Address, number: int, turn: Turn) -> None:
        """Go on with a client that has come, and has received so much."""
        self._queues.resume(subscription, client, number, turn)

    def left(self, subscription: str) -> tuple[int, int, int]:
        """Return what a client has not acknowledged: how many, the first and the last number."""
        return self._queues.left(subscription)

    def skip(self, subscription: str, turn: Turn) -> None:
        """Forget what waits for a client that has begun anew; numbers go on."""
        self._queues.skip(subscription, turn)

    def depth(self, subscription: str, now_ns: int) -> Depth:
        """Return how much waits for the client of a subscription."""
        queue = self._queues.get(subscription)
        return NOTHING_QUEUED if queue is None else queue.depth(now_ns)

    def close(self, subscription: str, turn: Turn) -> None:
        """Forget the queue of a subscription that ends."""
        self._queues.drop(subscription, turn)

    def reconsider(self, subscription: str, turn: Turn) -> None:
        """Look at a queue whose limits may have changed."""
        self._queues.reconsider(subscription, turn)

    def place_of(self, identity: ItemId) -> tuple[int, int, int, int]:
        """Return cell, publisher, series and number of an item; 0 where it is not known."""
        known = self._items.get(identity)
        if known is None:
            return 0, 0, 0, 0
        return known.cell, known.publisher, known.series, known.number

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

    # Clients that come and go.

    def _gone(self, message: ClientGone, sender: Address, turn: Turn) -> None:
        # Of one for whom there is nothing here nothing needs to be known: it is sent answers
        # only, when it says something.
        if self.core.subscriptions.knows(message.client):
            self.core.client_gone(message.client, turn)

    def _back(self, message: ClientBack, sender: Address, turn: Turn) -> None:
        self.core.client_back(message.client, turn)

    def client_gone(self, client: Address, turn: Turn) -> None:
        """Stop sending to a client."""
        for subscription in self._subscriptions_of(client):
            self._queues.pause(subscription)

    def client_back(self, client: Address, turn: Turn) -> None:
        """Send a client what has waited for it, from the first that it has not acknowledged."""
        for subscription in self._subscriptions_of(client):
            self._queues.resume(subscription, client, 0, turn)

    def _subscriptions_of(self, client: Address) -> list[str]:
        # Not by way of the queues: many clients may come back at once.
        return sorted({local.id for local in self.core.subscriptions.of_client(client)})

    # Confirmations.

    def _asked(self, message: AskServed, sender: Address, turn: Turn) -> None:
        identity = message.identity
        self._note_sent(identity, turn.now_ns)
        if identity in self._doubted:
            self._ask_owed(self._doubted[identity], turn)
        known = self._items.get(identity)
        if known is not None and known.root == sender and known.attempt >= message.attempt:
            turn.send(sender, _served(known))

    # What roots have given up.

    def _missed(self, message: Missed, sender: Address, turn: Turn) -> None:
        """End the subscriptions that have missed something, and those that they cover.

        Of a client that has left for another home that one is told as well: it goes on with
        what this one has redirected, and would not know of the gap.
        """
        subscriptions, departures = self.core.subscriptions, self.core.migration.departures
        for told, count in message.registrations:
            superseded = superseded_in(told)
            name = told if superseded is None else superseded[0]
            named = subscriptions.registered(name)
            found = [*subscriptions.covered_by(name), *self._ghosts(name)]
            for local in found if named is None else (named, *found):
                if superseded is not None and local.registration == name:
                    continue
                if not local.confirmed or local.since_ns > message.given_up_ns:
                    continue
                departures.missed(local, count, message.given_up_ns, turn)
                if subscriptions.get(local.id) is not None:
                    subscriptions.give_up(local, MISSED, turn, missed=count)

    # Forgetting.

    def _sweep(self, turn: Turn) -> None:
        self._queues.sweep(turn)
        for client in sorted(self.core.gone):
            if not self.core.subscriptions.knows(client):
                self.core.client_back(client, turn)
        self.core.timers.at(turn.now_ns + self._kept_ns, self._sweep)

    def _forget(self, identity: ItemId, turn: Turn) -> None:
        known = self._items.get(identity)
        if known is None:
            return
        until_ns = self._sent_ns.get(identity, turn.now_ns - self._kept_ns) + self._kept_ns
        if until_ns > turn.now_ns:
            self._forgetting.keep(identity, until_ns)
            return
        self._sent_ns.pop(identity, None)
        self._items.forget(identity)
        turn.erase(_item_key(known))

    def _abandon(self, place: tuple[SequenceName, int], turn: Turn) -> None:
        self._release(self._items.abandon(*place), turn)

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
                told = replace(known, done=False, attempt=0, subscriptions=common)
                finished.append(replace(told, served=(), unknown=()))
        return ClientDeliveries(client, tuple(queues), tuple(finished))

    def adopt_client(self, record: ClientDeliveries, home: str, turn: Turn) -> None:
        """Take over all that another broker has kept for a client."""
        for subscription, last, acknowledged, waiting in record.queues:
            self._queues.adopt(
                subscription,
                record.client,
                last=last,
                acknowledged=acknowledged,
                waiting=waiting,
                home=home,
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


def _parcel(arrival: Arrival, local: LocalSubscription, grant: Grant) -> Queued:
    """Return what a subscription gets, as the root has decided."""
    item, format_ = arrival.item, grant.format
    event, blob, media_type, reason = item.event, None, item.media_type, None
    if format_ is None:
        event, media_type, reason = "", "", grant.reason
    elif format_ != arrival.original:
        event, media_type = delivered_event(item.event, format_), format_
        blob = arrival.blobs[format_]
    elif not item.inline:
        blob = arrival.blobs[format_]
    return Queued(local.client, local.id, 0, item.source, item.id, event, blob, media_type, reason)


def _served(finished: Finished) -> Served:
    return Served(finished.identity, finished.attempt, finished.served, finished.unknown)


def _order(arrival: Arrival) -> tuple[int, int, int]:
    item = arrival.item
    return item.published_ns, item.series, item.number


def _item_key(item: Item | Finished) -> str:
    return f"deliveries/item/{journal_key(*item.identity)}"
