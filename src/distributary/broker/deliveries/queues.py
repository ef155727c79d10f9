"""The queues of a broker's subscriptions, and how what is in them gets to clients.

The queue of one subscription: numbered, kept until its client has acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address
from distributary.broker.blob import Blob
from distributary.broker.client import Acknowledge, Delivery, Undeliverable
from distributary.broker.effects import Turn
from distributary.broker.encoding import journal_key, wire
from distributary.broker.settings import ns
from distributary.broker.subscriptions.subscription import own_id, scoped_id
from distributary.broker.telemetry import Delivered
from distributary.broker.timers import Backoff, Timer

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Acknowledged", "Queue", "Queued", "Queues"]


@wire(571)
@dataclass(frozen=True, slots=True)
class Queued:
    """Something that a client has not acknowledged, as it is kept.

    Attributes
    ----------
    number
        Counts what the subscription got from 1; 0 before it has a number.
    source, id
        Of the item.
    event, blob, media_type
        What is delivered, and its format.
    reason
        Why it cannot be, or None.
    """

    client: str
    subscription: str
    number: int
    source: str
    id: str
    event: str
    blob: Blob | None
    media_type: str
    reason: str | None

    @property
    def identity(self) -> tuple[str, str]:
        """(`source`, `id`)."""
        return self.source, self.id

    def message(self) -> Delivery | Undeliverable:
        """Return it as the client is told."""
        if self.reason is None:
            return Delivery(own_id(self.subscription), self.number, self.event, self.blob)
        own = own_id(self.subscription)
        return Undeliverable(own, self.number, self.source, self.id, self.reason)


@wire(572)
@dataclass(frozen=True, slots=True)
class Acknowledged:
    """How far a client has acknowledged a subscription, as it is kept."""

    client: str
    subscription: str
    number: int


class Queue:
    """What a client has not acknowledged of one subscription.

    Attributes
    ----------
    client
        Whose it is.
    acknowledged, last
        The last number that was acknowledged, and the last that was given.
    waiting
        What lies between, by number.
    shared
        Whether its numbers are those that the client counts by: it has acknowledged some of
        them, or they came with it from its last home. A client whose home was lost begins
        anew, and what it says of the numbers of that home means nothing here.
    timer, attempts
        When it is sent again, and how often it was.
    """

    __slots__ = ("acknowledged", "attempts", "client", "last", "shared", "timer", "waiting")

    def __init__(self, client: Address) -> None:
        self.client = client
        self.acknowledged = 0
        self.last = 0
        self.shared = False
        self.waiting: dict[int, Queued] = {}
        self.timer: Timer | None = None
        self.attempts = 0

    def put(self, queued: Queued) -> None:
        """Add something that has its number already."""
        self.waiting[queued.number] = queued
        self.last = max(self.last, queued.number)

    def acknowledge(self, number: int) -> list[int]:
        """Return the numbers that need not be kept any more."""
        self.shared = True
        self.acknowledged = max(self.acknowledged, number)
        self.last = max(self.last, self.acknowledged)
        done = [waiting for waiting in self.waiting if waiting <= self.acknowledged]
        for waiting in done:
            del self.waiting[waiting]
        return done


# How many of the oldest are sent again at once to a client that does not acknowledge.
_REPEATED_MAX = 32


class Queues:
    """Queues by subscription.

    Parameters
    ----------
    core
        The broker's.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._queues: dict[str, Queue] = {}
        links = core.settings.links
        self._backoff = Backoff(ns(links.retry_s), ns(links.retry_s_max))

    def __iter__(self) -> Iterator[tuple[str, Queue]]:
        """Go through subscriptions and their queues, in order."""
        yield from sorted(self._queues.items())

    def of_client(self, client: Address) -> list[tuple[str, Queue]]:
        """Return the queues of a client's subscriptions, in order."""
        return [(name, queue) for name, queue in self if queue.client == client]

    def load(self, record: Queued | Acknowledged) -> None:
        """Take back what was kept by `put` or `acknowledge`."""
        queue = self._queue(record.subscription, record.client)
        if isinstance(record, Acknowledged):
            queue.acknowledge(record.number)
        else:
            queue.put(record)

    def start(self, turn: Turn) -> None:
        """Send again what was not acknowledged."""
        for subscription, queue in self:
            if queue.waiting:
                self._repeat(turn, subscription)

    def put(self, subscription: str, parcel: Queued, turn: Turn) -> Queued:
        """Give something its number and keep it; return it as it is kept."""
        queue = self._queue(subscription, parcel.client)
        entry = replace(parcel, number=queue.last + 1)
        self._keep(subscription, queue, entry, turn)
        return entry

    def transmit(self, entries: list[tuple[str, Queued]], turn: Turn) -> None:
        """Send clients what was put into their queues."""
        for subscription, entry in entries:
            turn.send(entry.client, entry.message())
            self._arm(subscription, self._queues[subscription], turn)
            if entry.reason is None:
                turn.report(
                    Delivered(
                        entry.client,
                        own_id(subscription),
                        entry.number,
                        entry.source,
                        entry.id,
                        entry.media_type,
                    )
                )

    def acknowledged(self, message: Acknowledge, sender: Address, turn: Turn) -> None:
        """Forget what has arrived."""
        subscription = scoped_id(sender, message.subscription)
        queue = self._queues.get(subscription)
        if queue is not None:
            self._advance(subscription, queue, min(message.number, queue.last), turn)

    def resume(self, subscription: str, client: Address, number: int, turn: Turn) -> None:
        """Go on with a client that has come from elsewhere, and has received so much."""
        queue = self._queues.get(subscription)
        if queue is None or queue.client != client:
            return
        self._advance(subscription, queue, number, turn)
        queue.attempts = 0
        if queue.waiting:
            self._repeat(turn, subscription)

    def adopt(
        self,
        subscription: str,
        client: Address,
        *,
        last: int,
        acknowledged: int,
        waiting: tuple[Queued, ...],
        turn: Turn,
    ) -> None:
        """Take over the queue of a subscription that has come from elsewhere."""
        if subscription in self._queues:
            # Of an earlier subscription of this id, which has ended.
            self.drop(subscription, turn)
        queue = self._queue(subscription, client)
        queue.acknowledge(acknowledged)
        cursor = Acknowledged(client, subscription, queue.acknowledged)
        turn.persist(_cursor_key(subscription), cursor)
        for entry in waiting:
            if entry.number > queue.acknowledged:
                self._keep(subscription, queue, entry, turn)
        queue.last = max(queue.last, last)
        if queue.waiting:
            self._arm(subscription, queue, turn)

    def drop(self, subscription: str, turn: Turn) -> None:
        """Forget a queue with all that is in it."""
        queue = self._queues.pop(subscription)
        if queue.timer is not None:
            queue.timer.cancel()
        for number in sorted(queue.waiting):
            turn.erase(_entry_key(subscription, number))
        turn.erase(_cursor_key(subscription))

    def sweep(self, turn: Turn) -> None:
        """Forget the queues of subscriptions that have ended."""
        for subscription, _ in self:
            if self._core.subscriptions.get(subscription) is None:
                self.drop(subscription, turn)

    def _queue(self, subscription: str, client: Address) -> Queue:
        queue = self._queues.get(subscription)
        if queue is None:
            queue = self._queues[subscription] = Queue(client)
        return queue

    def _keep(self, subscription: str, queue: Queue, entry: Queued, turn: Turn) -> None:
        queue.put(entry)
        turn.persist(_entry_key(subscription, entry.number), entry)

    def _advance(self, subscription: str, queue: Queue, number: int, turn: Turn) -> None:
        if number <= queue.acknowledged:
            return
        turn.persist(_cursor_key(subscription), Acknowledged(queue.client, subscription, number))
        for done in queue.acknowledge(number):
            turn.erase(_entry_key(subscription, done))
        queue.attempts = 0
        if queue.timer is not None and not queue.waiting:
            queue.timer.cancel()
            queue.timer = None

    def _arm(self, subscription: str, queue: Queue, turn: Turn) -> None:
        if queue.timer is None:
            at_ns = turn.now_ns + self._backoff.after(queue.attempts)
            queue.timer = self._core.timers.at(at_ns, self._repeat, subscription)

    def _repeat(self, turn: Turn, subscription: str) -> None:
        queue = self._queues[subscription]
        if self._core.subscriptions.get(subscription) is None:
            self.drop(subscription, turn)
            return
        if queue.timer is not None:
            queue.timer.cancel()
            queue.timer = None
        if self._core.migration.has_left(queue.client):
            # Its new home would not know what it has got from here.
            return
        for number in sorted(queue.waiting)[:_REPEATED_MAX]:
            turn.send(queue.client, queue.waiting[number].message())
        queue.attempts += 1
        self._arm(subscription, queue, turn)


def _entry_key(subscription: str, number: int) -> str:
    return f"deliveries/entry/{journal_key(subscription)}/{number}"


def _cursor_key(subscription: str) -> str:
    return f"deliveries/cursor/{journal_key(subscription)}"
