"""The queues of a broker's subscriptions, and how what is in them gets to clients."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address, tenant_of
from distributary.broker.client import Acknowledge, Received
from distributary.broker.deliveries.queue import (
    Acknowledged,
    Queue,
    Queued,
    QueuedTogether,
    Together,
)
from distributary.broker.encoding import journal_key, replaced
from distributary.broker.host import Turn
from distributary.broker.settings import ns
from distributary.broker.subscriptions.lifecycle import TOO_MANY_BYTES, TOO_OLD
from distributary.broker.subscriptions.subscription import LocalSubscription, own_id, scoped_id
from distributary.broker.telemetry import Delivered
from distributary.broker.timers import Backoff

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["Acknowledged", "Queue", "Queued", "QueuedTogether", "Queues"]


# How many of the oldest are sent again at once to a client that does not acknowledge.
_REPEATED_MAX = 32


class Queues:
    """Queues by subscription."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._queues: dict[str, Queue] = {}
        self._together = Together()
        links = core.settings.links
        self._backoff = Backoff(ns(links.retry_s), ns(links.retry_s_max))
        subscriptions = core.settings.subscriptions
        self._window = subscriptions.window_items, subscriptions.window_bytes

    def __iter__(self) -> Iterator[tuple[str, Queue]]:
        """Go through subscriptions and their queues, in order."""
        yield from sorted(self._queues.items())

    def get(self, subscription: str) -> Queue | None:
        """Return the queue of a subscription, if there is one."""
        return self._queues.get(subscription)

    def of_client(self, client: Address) -> list[tuple[str, Queue]]:
        """Return the queues of a client's subscriptions, in order."""
        return [(name, queue) for name, queue in self if queue.client == client]

    def load(self, key: str, record: Queued | QueuedTogether | Acknowledged) -> None:
        """Take back what was kept by `keep` or `acknowledge`."""
        if isinstance(record, QueuedTogether):
            self._load_together(key, record)
            return
        queue = self._queue(record.subscription, record.client)
        if isinstance(record, Acknowledged):
            queue.acknowledge(record.number)
        else:
            queue.put(record)
            self._core.content.refer(tenant_of(record.client), record.blob)

    def _load_together(self, key: str, record: QueuedTogether) -> None:
        waiting = []
        for entry in record:
            queue = self._queue(entry.subscription, entry.client)
            # How far it was acknowledged, and what else is in its place, has been loaded before:
            # keys are in order.
            if entry.number > queue.acknowledged and entry.number not in queue.waiting:
                queue.put(entry)
                self._core.content.refer(tenant_of(entry.client), entry.blob)
                waiting.append(entry)
        self._together.load(key, record, waiting)

    def start(self, turn: Turn) -> None:
        """Send again what was not acknowledged."""
        for subscription, queue in self:
            if queue.waiting:
                self._watch(subscription, queue, turn.now_ns)
                self._fill(subscription, queue, turn)

    def put(self, subscription: str, parcel: Queued, turn: Turn) -> Queued:
        """Give something its number; return it as it is to be kept in this turn, by `keep`."""
        queue = self._queue(subscription, parcel.client)
        entry = replaced(parcel, number=queue.last + 1, queued_ns=turn.now_ns)
        self._enter(subscription, queue, entry, turn)
        return entry

    def keep(self, entries: list[Queued], turn: Turn) -> None:
        """Write down what was put into queues in this turn, all of one item."""
        if len(entries) > 1:
            self._together.keep(entries, turn)
            return
        for entry in entries:
            turn.persist(_entry_key(entry.subscription, entry.number), entry)

    def transmit(self, entries: list[tuple[str, Queued]], turn: Turn) -> None:
        """Send clients what was put into their queues, as far as there is room under way."""
        for subscription, entry in entries:
            self._fill(subscription, self._queues[subscription], turn)
            if entry.reason is None:
                self._core.measured.delivered(entry.media_type)
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
            self._fill(subscription, queue, turn)

    def received(self, message: Received, sender: Address, turn: Turn) -> None:
        """Send more in the place of what has come, and keep that."""
        subscription = scoped_id(sender, message.subscription)
        queue = self._queues.get(subscription)
        if queue is not None and queue.receive(message.number):
            queue.attempts = 0
            self._disarm(queue)
            self._fill(subscription, queue, turn)

    def resume(self, subscription: str, client: Address, number: int, turn: Turn) -> None:
        """Go on with a client that has come, from elsewhere or back, and has received so much."""
        queue = self._queues.get(subscription)
        if queue is None or queue.client != client:
            return
        self._advance(subscription, queue, number, turn)
        self.pause(subscription)
        self._fill(subscription, queue, turn)

    def pause(self, subscription: str) -> None:
        """Send nothing more, and take everything as not sent."""
        queue = self._queues.get(subscription)
        if queue is not None:
            queue.attempts = 0
            queue.begin()
            self._disarm(queue)

    def adopt(
        self,
        subscription: str,
        client: Address,
        *,
        last: int,
        acknowledged: int,
        waiting: tuple[Queued, ...],
        home: str,
        turn: Turn,
    ) -> None:
        """Take over the queue of a subscription that has come from elsewhere, from a home."""
        if subscription in self._queues:
            # Of an earlier subscription of this id, which has ended.
            self.drop(subscription, turn)
        queue = self._queue(subscription, client)
        queue.acknowledge(acknowledged)
        cursor = Acknowledged(client, subscription, queue.acknowledged)
        turn.persist(_cursor_key(subscription), cursor)
        for entry in waiting:
            if entry.number > queue.acknowledged:
                self._enter(subscription, queue, entry, turn)
                self.keep([entry], turn)
                self._core.content.borrow(entry.blob, home, turn)
            else:
                self._core.content.decline(entry.blob, home, turn)
        queue.last = max(queue.last, last)
        if queue.waiting:
            self._arm(subscription, queue, turn)

    def skip(self, subscription: str, turn: Turn) -> None:
        """Forget all that is in a queue, and go on with the next number."""
        queue = self._queues.get(subscription)
        if queue is not None:
            self._advance(subscription, queue, queue.last, turn)
            queue.shared = False

    def left(self, subscription: str) -> tuple[int, int, int]:
        """Return what a client has not acknowledged: how many, the first and the last number."""
        queue = self._queues.get(subscription)
        return (0, 0, 0) if queue is None else queue.left

    def drop(self, subscription: str, turn: Turn) -> None:
        """Forget a queue with all that is in it."""
        queue = self._queues.pop(subscription, None)
        if queue is None:
            return
        for timer in (queue.timer, queue.watch):
            if timer is not None:
                timer.cancel()
        self._release(subscription, list(queue.waiting.values()), turn)
        self._together.end(subscription, turn)
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

    def _release(self, subscription: str, entries: list[Queued], turn: Turn) -> None:
        """Keep entries no longer."""
        for entry in entries:
            if not self._together.release(subscription, entry.number, turn):
                turn.erase(_entry_key(subscription, entry.number))
            self._core.content.release(tenant_of(entry.client), entry.blob, turn)

    def _enter(self, subscription: str, queue: Queue, entry: Queued, turn: Turn) -> None:
        queue.put(entry)
        self._core.content.refer(tenant_of(entry.client), entry.blob)
        local = self._core.subscriptions.get(subscription)
        if local is not None:
            bytes_max, age_ns = self._limits(local)
            if queue.size_bytes > bytes_max:
                self._watch(subscription, queue, turn.now_ns)
            elif queue.watch is None:
                self._watch(subscription, queue, entry.queued_ns + age_ns)

    # Limits. Whoever does not acknowledge must not fill the disk.

    def _limits(self, local: LocalSubscription) -> tuple[int, int]:
        """Return the bytes and the nanoseconds that a subscription may have waiting."""
        settings = self._core.settings.subscriptions
        size_bytes, age_s = settings.queue_bytes, settings.queue_s
        config = local.subscription.config
        if config is not None:
            size_bytes = min(size_bytes, config.queue_bytes or size_bytes)
            age_s = min(age_s, config.queue_s or age_s)
        return size_bytes, ns(age_s)

    def _watch(self, subscription: str, queue: Queue, at_ns: int) -> None:
        """Look at a queue at some time; not in this turn, which may have more to put in."""
        if queue.watch is not None:
            queue.watch.cancel()
        queue.watch = self._core.timers.at(at_ns, self._look, subscription)

    def _look(self, turn: Turn, subscription: str) -> None:
        queue = self._queues[subscription]
        queue.watch = None
        local, oldest = self._core.subscriptions.get(subscription), queue.oldest
        if local is None or oldest is None:
            return
        if self._core.migration.departures.has_left(queue.client):
            # Its new home sees to it, unless the client comes back.
            self._watch(subscription, queue, turn.now_ns + self._backoff.longest_ns)
            return
        bytes_max, age_ns = self._limits(local)
        if queue.size_bytes > bytes_max:
            self._core.subscriptions.give_up(local, TOO_MANY_BYTES, turn)
        elif turn.now_ns >= oldest.queued_ns + age_ns:
            self._core.subscriptions.give_up(local, TOO_OLD, turn)
        else:
            self._watch(subscription, queue, oldest.queued_ns + age_ns)

    def reconsider(self, subscription: str, turn: Turn) -> None:
        """Look at a queue whose limits may have changed."""
        queue = self._queues.get(subscription)
        if queue is not None:
            self._watch(subscription, queue, turn.now_ns)

    def _advance(self, subscription: str, queue: Queue, number: int, turn: Turn) -> None:
        if number <= queue.acknowledged:
            return
        turn.persist(_cursor_key(subscription), Acknowledged(queue.client, subscription, number))
        self._release(subscription, queue.acknowledge(number), turn)
        queue.attempts = 0
        # Whoever goes on sending sets it anew: a client that answers is not slow.
        self._disarm(queue)

    def _disarm(self, queue: Queue) -> None:
        if queue.timer is not None:
            queue.timer.cancel()
            queue.timer = None

    def _fill(self, subscription: str, queue: Queue, turn: Turn) -> None:
        """Send what has not been sent, as far as there is room under way."""
        if not self._reaches(queue.client):
            return
        while (entry := queue.next_within(*self._window)) is not None:
            if entry.blob is not None and not self._core.content.has(entry.blob):
                # It came by way of another home, and so does its content.
                name = ("queue", subscription)
                self._core.content.fetch(
                    entry.blob, None, turn, name, self._fetched, subscription, entry.blob.digest
                )
                break
            turn.send(queue.client, entry.message())
            queue.sent(entry)
        if len(queue.waiting) > len(queue.received):
            self._arm(subscription, queue, turn)

    def _fetched(self, turn: Turn, failure: str, subscription: str, digest: str) -> None:
        """Go on with a queue whose content is here, or tell the client that it is lost."""
        queue = self._queues.get(subscription)
        if queue is None:
            return
        for entry in [*queue.waiting.values()] if failure else ():
            if entry.blob is not None and entry.blob.digest == digest:
                reason = f"its content could not be fetched: {failure}"
                told = replaced(entry, event="", blob=None, media_type="", reason=reason)
                queue.replace(told)
                self._together.release(subscription, told.number, turn)
                turn.persist(_entry_key(subscription, told.number), told)
                self._core.content.release(tenant_of(entry.client), entry.blob, turn)
        self._fill(subscription, queue, turn)

    def _reaches(self, client: Address) -> bool:
        """Whether a client is to be sent what is in its queues, by this broker."""
        # The new home of one that has left would not know what it has got from here.
        core = self._core
        return client not in core.gone and not core.migration.departures.has_left(client)

    def _arm(self, subscription: str, queue: Queue, turn: Turn) -> None:
        if queue.timer is None:
            at_ns = turn.now_ns + self._backoff.after(queue.attempts)
            queue.timer = self._core.timers.at(at_ns, self._repeat, subscription)

    def _repeat(self, turn: Turn, subscription: str) -> None:
        queue = self._queues[subscription]
        if self._core.subscriptions.get(subscription) is None:
            self.drop(subscription, turn)
            return
        self._disarm(queue)
        if not self._reaches(queue.client):
            return
        first = len(queue.received)
        count = min(queue.under_way, _REPEATED_MAX)
        for entry in islice(queue.waiting.values(), first, first + count):
            turn.send(queue.client, entry.message())
        queue.attempts += 1
        if len(queue.waiting) > first:
            self._arm(subscription, queue, turn)


def _entry_key(subscription: str, number: int) -> str:
    return f"deliveries/entry/{journal_key(subscription)}/{number}"


def _cursor_key(subscription: str) -> str:
    return f"deliveries/cursor/{journal_key(subscription)}"
