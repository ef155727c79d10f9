"""What a broker asks its host to do, and what the host answers.

A turn is a transaction: every `Persist` and `Erase` among its effects becomes durable together
or not at all, and the others are carried out after that, in order. `Spend` takes time of the
broker's processor before the next effect. `driver.Driver` does all this for a host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from distributary.broker.addresses import Address, Speaker
from distributary.broker.blob import Blob
from distributary.broker.encoding import since, wire

if TYPE_CHECKING:
    from distributary.broker.planning import Planning, PlanningProblem

__all__ = [
    "ConversionRefused",
    "Convert",
    "Converted",
    "Effect",
    "Erase",
    "Fetch",
    "FetchFailed",
    "Fetched",
    "Free",
    "Left",
    "MakePlan",
    "Persist",
    "PlanMade",
    "Report",
    "Send",
    "Serve",
    "Spend",
    "Turn",
]


class Send(msgspec.Struct, frozen=True):
    """Send a message to a broker or a client; it may be lost, repeated or overtaken."""

    to: Address
    message: object


class Persist(msgspec.Struct, frozen=True):
    """Keep a record under a key, in place of what was there."""

    key: str
    record: object


class Erase(msgspec.Struct, frozen=True):
    """Forget what is kept under a key."""

    key: str


class Convert(msgspec.Struct, frozen=True):
    """Convert content; answered by `Converted` or `ConversionRefused`, at least once.

    The same ticket comes again while there is no answer. To a host that is at work on it this
    says nothing new; one that has forgotten it begins anew.

    Attributes
    ----------
    blob
        What to convert. Its bytes are in the host's content store, unless they are in `data`.
    data
        The bytes of content that is inside of an event, and in no store.
    """

    ticket: int
    blob: Blob
    target: str
    data: bytes | None = None


class Fetch(msgspec.Struct, frozen=True):
    """Get the bytes of content into the host's store; answered by `Fetched` or `FetchFailed`.

    As with `Convert`, the same ticket comes again while there is no answer. Bytes go from host
    to host, in as many pieces as these like, and are what the digest says when they are there.

    Attributes
    ----------
    holder
        The broker whose host has them.
    """

    ticket: int
    blob: Blob
    holder: str


class Free(msgspec.Struct, frozen=True):
    """Delete the bytes of content from the host's store: nothing here refers to it any more."""

    digest: str


class MakePlan(msgspec.Struct, frozen=True):
    """Solve a problem beside the broker, in a thread; answered by `PlanMade`.

    As with `Convert`, the same ticket comes again while there is no answer.
    """

    ticket: int
    problem: PlanningProblem


class Serve(msgspec.Struct, frozen=True):
    """Call `Broker.serve` with this ticket when the processor gets round to it."""

    ticket: int


class Spend(msgspec.Struct, frozen=True):
    """Take the time that a kind of work needs: `filter` or `send`."""

    work: str


class Report(msgspec.Struct, frozen=True):
    """Tell whoever watches; see `telemetry`. Never needed for the protocol itself."""

    record: object


class Left(msgspec.Struct, frozen=True):
    """Know that the broker has left in good order: nobody waits for anything of it."""


Effect: TypeAlias = (
    Send | Persist | Erase | Convert | Fetch | Free | MakePlan | Serve | Spend | Report | Left
)


class Turn:
    """What happens between a message and the effects that answer it.

    Attributes
    ----------
    now_ns
        The broker's own clock, which may be off from those of others.
    effects
        What the host is asked to do, in order.
    """

    __slots__ = ("effects", "now_ns")

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns
        self.effects: list[Effect] = []

    def send(self, to: Address, message: object) -> None:
        """Send a message that may get lost; `Links.send` is for those that may not."""
        self.effects.append(Send(to, message))

    def persist(self, key: str, record: object) -> None:
        """Keep a record under a key before anything of this turn leaves the broker."""
        self.effects.append(Persist(key, record))

    def erase(self, key: str) -> None:
        """Forget what is kept under a key."""
        self.effects.append(Erase(key))

    def spend(self, work: str) -> None:
        """Take processor time."""
        self.effects.append(Spend(work))

    def report(self, record: object) -> None:
        """Tell whoever watches."""
        self.effects.append(Report(record))


@wire(1, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class Converted:
    """A conversion is done, and its result in the host's content store, durably.

    Attributes
    ----------
    seconds
        How long the converter was at work, without what the conversion waited for.
    """

    ticket: int
    blob: Blob
    seconds: float = since(2, 0.0)


@wire(2, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ConversionRefused:
    """A conversion failed.

    Attributes
    ----------
    lasting
        Whether it would fail again, because of the content. Otherwise the host was busy, or
        had to kill it, and the broker asks again later.
    """

    ticket: int
    reason: str
    lasting: bool = since(2, True)


@wire(370, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class Fetched:
    """Content is in the host's store, durably: what was asked for by a ticket.

    Attributes
    ----------
    came_bytes, seconds
        How many bytes have come from the holder for it, and how long that took; 0 where they
        were there, or came for another ticket.
    """

    ticket: int
    blob: Blob
    came_bytes: int = since(2, 0)
    seconds: float = since(2, 0.0)


@wire(371, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class FetchFailed:
    """Content could not be fetched from the broker that was said to have it.

    Attributes
    ----------
    lasting
        Whether it would fail again: the holder does not have it, and is not about to, or has
        something else. Otherwise the holder could not be reached, or had too much to do, and the
        broker asks again later.
    """

    ticket: int
    reason: str
    lasting: bool


@dataclass(frozen=True, slots=True)
class PlanMade:
    """A plan is made; it stays within the process, and is never encoded."""

    ticket: int
    planning: Planning
