"""The queues of a broker's subscriptions, and how what is in them gets to clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import NamedTuple

from distributary.broker.addresses import Address, Blob, tenant_of
from distributary.broker.client import Acknowledge, Delivery, Received, Undeliverable
from distributary.broker.core import Core
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.encoding import encodable, journal_key, replaced
from distributary.broker.host import Turn
from distributary.broker.settings import ns
from distributary.broker.subscriptions.lifecycle import TOO_MANY_BYTES, TOO_OLD, Depth
from distributary.broker.subscriptions.subscription import LocalSubscription, own_id, scoped_id
from distributary.broker.telemetry import Delivered
from distributary.broker.timers import Backoff, Timer

__all__ = ["Acknowledged", "Queue", "Queued", "QueuedTogether", "Queues"]


# The queue of one subscription: numbered, kept until its client has acknowledged.
#
# No more of it is under way than fits into a window, which moves on as the client acknowledges:
# whoever is slow has what is for it kept here, and not in buffers on the way. A client that gets
# it for somebody else says that it has received it long before it acknowledges: then it is not
# under way any more, though still kept.


@encodable(571)
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
    queued_ns
        When it got its number.
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
    queued_ns: int = 0

    @property
    def size_bytes(self) -> int:
        """How many bytes its client is sent."""
        return len(self.event.encode()) + (0 if self.blob is None else self.blob.size_bytes)

    @property
    def identity(self) -> ItemId:
        """What tells the item from others."""
        return ItemId(tenant_of(self.client), self.source, self.id)

    def message(self) -> Delivery | Undeliverable:
        """Return it as the client is told."""
        if self.reason is None:
            return Delivery(own_id(self.subscription), self.number, self.event, self.blob)
        own = own_id(self.subscription)
        return Undeliverable(own, self.number, self.source, self.id, self.reason)


@encodable(572)
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
    waiting, size_bytes
        What lies between, by number and in order, and how many bytes that is.
    received, received_bytes
        The first of these, of which the client has said that it has received them since the
        broker started or the client came.
    unsent, unsent_bytes
        The last of these, which have not been sent since the broker started or the client came.
    shared
        Whether its numbers are those that the client counts by: it has acknowledged some of
        them, or they came with it from its last home. A client whose home was lost begins
        anew, and what it says of the numbers of that home means nothing here.
    timer, attempts
        When it is sent again, and how often it was.
    watch
        When it is looked at whether something has waited for too long.
    """

    __slots__ = (
        "acknowledged",
        "attempts",
        "client",
        "last",
        "received",
        "received_bytes",
        "shared",
        "size_bytes",
        "timer",
        "unsent",
        "unsent_bytes",
        "waiting",
        "watch",
    )

    def __init__(self, client: Address) -> None:
        self.client = client
        self.acknowledged = 0
        self.last = 0
        self.shared = False
        self.waiting: dict[int, Queued] = {}
        self.size_bytes = 0
        self.received: dict[int, Queued] = {}
        self.received_bytes = 0
        self.unsent: dict[int, Queued] = {}
        self.unsent_bytes = 0
        self.watch: Timer | None = None
        self.timer: Timer | None = None
        self.attempts = 0

    def put(self, queued: Queued) -> None:
        """Add something that has its number already."""
        size_bytes = queued.size_bytes
        self.waiting[queued.number] = self.unsent[queued.number] = queued
        self.size_bytes += size_bytes
        self.unsent_bytes += size_bytes
        self.last = max(self.last, queued.number)

    def acknowledge(self, number: int) -> list[Queued]:
        """Return what need not be kept any more."""
        self.shared = True
        self.acknowledged = max(self.acknowledged, number)
        self.last = max(self.last, self.acknowledged)
        done = list(takewhile(lambda waiting: waiting <= self.acknowledged, self.waiting))
        entries = [self.waiting.pop(waiting) for waiting in done]
        for entry in entries:
            self.size_bytes -= entry.size_bytes
            # After a restart, or by a client that had it from another home.
            if self.unsent.pop(entry.number, None) is not None:
                self.unsent_bytes -= entry.size_bytes
            elif self.received.pop(entry.number, None) is not None:
                self.received_bytes -= entry.size_bytes
        return entries

    def receive(self, number: int) -> bool:
        """Note that everything sent up to a number has come; return whether that is news."""
        begin = max(self.acknowledged, next(reversed(self.received), 0)) + 1
        before = len(self.received)
        for place in range(begin, min(number, self.last) + 1):
            entry = self.waiting.get(place)
            if entry is None or place in self.unsent:
                break
            self.received[place] = entry
            self.received_bytes += entry.size_bytes
        return len(self.received) > before

    def replace(self, queued: Queued) -> None:
        """Have something else in the place of what has the same number and was not sent."""
        size_bytes = self.waiting[queued.number].size_bytes - queued.size_bytes
        self.waiting[queued.number] = self.unsent[queued.number] = queued
        self.size_bytes -= size_bytes
        self.unsent_bytes -= size_bytes

    def begin(self) -> None:
        """Take everything as not sent, and what was loaded in any order in that of numbers."""
        self.waiting = dict(sorted(self.waiting.items()))
        self.unsent = dict(self.waiting)
        self.unsent_bytes = self.size_bytes
        self.received, self.received_bytes = {}, 0

    @property
    def under_way(self) -> int:
        """How many were sent and have not been received, as far as it is known."""
        return len(self.waiting) - len(self.unsent) - len(self.received)

    def next_within(self, items: int, size_bytes: int) -> Queued | None:
        """Return what is to be sent next, unless more would be under way than a window allows."""
        following = next(iter(self.unsent.values()), None)
        if following is None or self.under_way == 0:
            return following
        under_way_bytes = self.size_bytes - self.unsent_bytes - self.received_bytes
        full = self.under_way >= items or under_way_bytes + following.size_bytes > size_bytes
        return None if full else following

    def sent(self, queued: Queued) -> None:
        """Note that something is under way."""
        del self.unsent[queued.number]
        self.unsent_bytes -= queued.size_bytes

    def depth(self, now_ns: int) -> Depth:
        """Return how much waits."""
        oldest = self.oldest
        oldest_s = 0.0 if oldest is None else max(now_ns - oldest.queued_ns, 0) / 1e9
        return Depth(len(self.waiting), self.size_bytes, self.acknowledged, self.last, oldest_s)

    @property
    def oldest(self) -> Queued | None:
        """What has waited for the longest time."""
        return next(iter(self.waiting.values()), None)

    @property
    def left(self) -> tuple[int, int, int]:
        """How many wait, and the numbers of the first and the last of them."""
        if not self.waiting:
            return 0, 0, 0
        return len(self.waiting), min(self.waiting), max(self.waiting)


# What several subscriptions of one broker wait for, written once.
#
# An item comes to a home for all its subscribers at once. A record for each of them would contain
# the same event as often, and be as many writes. So there is one record for all of them, which
# stays until the last has acknowledged. How far each of them is says its own record, which is
# written for every acknowledgement and not for every item.


class _Content(NamedTuple):
    """What some subscriptions get: as in `Queued`, with (client, subscription, number) of each."""

    event: str
    blob: Blob | None
    media_type: str
    reason: str | None
    places: tuple[tuple[str, str, int], ...]


@encodable(605)
@dataclass(frozen=True, slots=True)
class QueuedTogether:
    """Something that not all of several subscriptions have acknowledged, as it is kept."""

    source: str
    id: str
    queued_ns: int
    contents: tuple[_Content, ...]

    @classmethod
    def of(cls, entries: Iterable[Queued]) -> QueuedTogether:
        """Return what is kept for the subscriptions that are sent one item."""
        places: dict[tuple[str, Blob | None, str, str | None], list[tuple[str, str, int]]] = {}
        first = None
        for one in entries:
            first = first or one
            content = (one.event, one.blob, one.media_type, one.reason)
            places.setdefault(content, []).append((one.client, one.subscription, one.number))
        assert first is not None
        contents = tuple(_Content(*content, tuple(some)) for content, some in places.items())
        return cls(first.source, first.id, first.queued_ns, contents)

    def __iter__(self) -> Iterator[Queued]:
        """Go through what is for each of them."""
        for event, blob, media_type, reason, places in self.contents:
            for client, subscription, number in places:
                yield Queued(
                    client,
                    subscription,
                    number,
                    self.source,
                    self.id,
                    event,
                    blob,
                    media_type,
                    reason,
                    self.queued_ns,
                )

    def subscriptions(self) -> list[str]:
        """Return who stands in it."""
        return [place[1] for content in self.contents for place in content.places]

    def without(self, subscription: str) -> QueuedTogether:
        """Return what is left when one of them has ended."""
        contents = [
            content._replace(
                places=tuple(place for place in content.places if place[1] != subscription)
            )
            for content in self.contents
        ]
        return replace(self, contents=tuple(content for content in contents if content.places))


class _Kept:
    __slots__ = ("key", "left", "record")

    def __init__(self, key: str, record: QueuedTogether) -> None:
        self.key = key
        self.record = record
        self.left = 0


class Together:
    """The records for several subscriptions that one broker keeps."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], _Kept] = {}
        # Also those in which it has acknowledged its entry, and others have not.
        self._named: dict[str, dict[str, _Kept]] = {}

    def load(self, key: str, record: QueuedTogether, waiting: Iterable[Queued]) -> None:
        """Take back a record, with those of its entries that were not acknowledged."""
        kept = _Kept(key, record)
        for subscription in record.subscriptions():
            self._named.setdefault(subscription, {})[key] = kept
        for entry in waiting:
            self._waiting[entry.subscription, entry.number] = kept
            kept.left += 1

    def keep(self, entries: list[Queued], turn: Turn) -> None:
        """Write down what several subscriptions are sent of one item."""
        record = QueuedTogether.of(entries)
        # No two entries of a subscription have a number.
        first = entries[0]
        name = journal_key(*first.identity, first.subscription, str(first.number))
        key = f"deliveries/together/{name}"
        self.load(key, record, entries)
        turn.persist(key, record)

    def release(self, subscription: str, number: int, turn: Turn) -> bool:
        """Note that an entry need not be kept; return whether it was in a record of several."""
        kept = self._waiting.pop((subscription, number), None)
        if kept is None:
            return False
        kept.left -= 1
        if not kept.left:
            turn.erase(kept.key)
            for name in kept.record.subscriptions():
                self._unname(name, kept)
        return True

    def end(self, subscription: str, turn: Turn) -> None:
        """Strike out a subscription that has ended, all of whose entries are released.

        Another one of the same name would take them for its own after a crash: that these were
        acknowledged is forgotten with the first.
        """
        for kept in self._named.pop(subscription, {}).values():
            kept.record = kept.record.without(subscription)
            turn.persist(kept.key, kept.record)

    def _unname(self, subscription: str, kept: _Kept) -> None:
        named = self._named[subscription]
        del named[kept.key]
        if not named:
            del self._named[subscription]


# How many of the oldest are sent again at once to a client that does not acknowledge.
_REPEATED_MAX = 32


class Queues:
    """What a home keeps for its subscriptions until clients acknowledge it, a queue for each."""

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
