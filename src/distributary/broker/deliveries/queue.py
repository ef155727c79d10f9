"""The queue of one subscription: numbered, kept until its client has acknowledged.

No more of it is under way than fits into a window, which moves on as the client acknowledges:
whoever is slow has what is for it kept here, and not in buffers on the way. A client that gets it
for somebody else says that it has received it long before it acknowledges: then it is not under way
any more, though still kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import NamedTuple

from distributary.broker.addresses import Address, Blob, tenant_of
from distributary.broker.client import Delivery, Undeliverable
from distributary.broker.dissemination.messages import ItemId
from distributary.broker.encoding import journal_key, wire
from distributary.broker.host import Turn
from distributary.broker.subscriptions.lifecycle import Depth
from distributary.broker.subscriptions.subscription import own_id
from distributary.broker.timers import Timer

__all__ = ["Acknowledged", "Queue", "Queued", "QueuedTogether", "Together"]


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


@wire(605)
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
