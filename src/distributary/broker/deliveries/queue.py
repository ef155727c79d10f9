"""The queue of one subscription: numbered, kept until its client has acknowledged."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.addresses import Address
from distributary.broker.blob import Blob
from distributary.broker.encoding import wire
from distributary.broker.messages.client import Delivery, Undeliverable
from distributary.broker.timers import Timer

__all__ = ["Acknowledged", "Queue", "Queued"]


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

    def message(self, subscription: str) -> Delivery | Undeliverable:
        """Return it as the client is told."""
        if self.reason is None:
            return Delivery(subscription, self.number, self.event, self.blob)
        return Undeliverable(subscription, self.number, self.source, self.id, self.reason)


@wire(572)
@dataclass(frozen=True, slots=True)
class Acknowledged:
    """How far a client has acknowledged a subscription, as it is kept."""

    client: str
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
