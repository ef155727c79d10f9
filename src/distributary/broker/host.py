"""What a broker asks its host to do, what the host answers, and what it tells the broker itself.

A turn is a transaction: every `Persist` and `Erase` among its effects becomes durable together
or not at all, and the others are carried out after that, in order. `Spend` takes time of the
broker's processor before the next effect. `driver.Driver` does all this for a host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from distributary.broker.addresses import Address, Blob, Speaker
from distributary.broker.encoding import VERSION, encodable, since

if TYPE_CHECKING:
    from distributary.broker.planning import Planning, PlanningProblem

__all__ = [
    "ClientBack",
    "ClientGone",
    "ContentHeld",
    "ContentPut",
    "ConversionRefused",
    "Convert",
    "Converted",
    "Detached",
    "Effect",
    "Erase",
    "Fetch",
    "FetchFailed",
    "Fetched",
    "Free",
    "Leave",
    "Left",
    "MakePlan",
    "Neighbour",
    "OrderMove",
    "OrderTree",
    "Persist",
    "PlanMade",
    "PlantTree",
    "Reattached",
    "Report",
    "Send",
    "Serve",
    "ServiceTimes",
    "SetAside",
    "SourceOwners",
    "Spend",
    "StorageLow",
    "StorageRecovered",
    "Surroundings",
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


@encodable(1, Speaker.HOST)
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


@encodable(2, Speaker.HOST)
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


@encodable(370, Speaker.HOST)
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


@encodable(371, Speaker.HOST)
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


class Neighbour(msgspec.Struct, frozen=True):
    """Another broker as the network sees it.

    Attributes
    ----------
    delay_ns
        The delay to it, as first measured.
    link_cost
        What a unit of size costs on the link to it, as a factor.
    """

    identity: str
    delay_ns: int
    link_cost: float = 1.0


@encodable(3, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a broker stands: to be told once before `start`, and again when it changes.

    Attributes
    ----------
    neighbours
        Every broker that can be reached; not all of them need be there.
    members
        Those that are part of the overlay already, for a broker that starts with it; empty
        for one that joins later.
    contact
        The broker to join by, for one that joins later.
    node_cost
        What a unit of conversion costs at this broker, as a factor.
    version
        The lowest that any of the members speaks, as far as the host knows.
    """

    neighbours: tuple[Neighbour, ...]
    members: tuple[str, ...] = ()
    contact: str | None = None
    node_cost: float = 1.0
    version: int = since(2, VERSION)


@encodable(4, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the overlay in good order."""


@encodable(320, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class Detached:
    """The host has no connection to anybody; to be told before `start` too, if it has none."""


@encodable(321, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class Reattached:
    """The host has a connection again."""


@encodable(367, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ClientGone:
    """A client has no connection; to be told before `start` too, of all that have none.

    Nothing is sent to it until `ClientBack`, or until it says something itself. What comes for
    it is kept, within the limits of its subscriptions.
    """

    client: str


@encodable(368, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ClientBack:
    """A client has a connection again, and is sent what has waited for it."""

    client: str


@encodable(372, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ContentPut:
    """A client has put content: its bytes are in the host's store, durably.

    It may be published by clients of the same tenant, and is forgotten after `put_s` if it is
    not. A host takes no more than `content_bytes_max`, and takes bytes that it has already like
    any others.
    """

    client: str
    blob: Blob


@encodable(373, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ContentHeld:
    """What the host's content store has: to be told before `start`, in as many parts as it likes.

    Attributes
    ----------
    contents
        (digest, bytes).
    """

    contents: tuple[tuple[str, int], ...]


@encodable(5, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """How long the broker's processor takes on average, as measured by its host.

    Attributes
    ----------
    filter_s, send_s
        Finding out whether one child needs a version, and sending it.
    """

    filter_s: float
    send_s: float


@encodable(6, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class PlantTree:
    """The broker's place in a stream tree that was planned beforehand.

    A broker that knows the tree already, as one does that is restored, ignores it.

    Attributes
    ----------
    tree
        The tree's name, the same for everybody in it.
    objects
        JSON of a CloudEvent without data for each object, as a publisher announces it.
    parent
        None at the root.
    children
        Those for whom there is room in any case.
    """

    tree: str
    objects: tuple[str, ...]
    root: str
    parent: str | None
    children: tuple[str, ...]


@encodable(300, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class SetAside:
    """Count a message as handled: the broker failed over it, and would do so again.

    Attributes
    ----------
    message
        The message, encoded.
    problem
        How the broker failed.
    """

    sender: Address
    message: bytes
    problem: str


@encodable(301, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class StorageLow:
    """The disk is nearly full: take no publications from clients until it has recovered."""


@encodable(302, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class StorageRecovered:
    """There is room on the disk again."""


@encodable(400, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class OrderMove:
    """Move a client of this broker to another, as if migration had found that it pays.

    It goes the way of every migration: there must be room, and the client may decline. What
    becomes of it is reported as `telemetry.Migrated` or `telemetry.MoveRefused`.
    """

    client: str
    target: str


@encodable(401, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class OrderTree:
    """Bring a stream tree whose root is this broker into a shape.

    It goes the way of adaptation, step by step from the root down: whoever is told to move
    asks first whether a cycle could come of it, and the old link stays until the new one is
    up. What becomes of it is reported as `telemetry.TreeOrdered`. Adaptation, if it is
    enabled, may change the tree again as soon as that pays.

    Attributes
    ----------
    tree
        The tree's name.
    parents
        (broker, parent): the wanted parent of each broker that is to have another one.
    """

    tree: str
    parents: tuple[tuple[str, str], ...]


@encodable(340, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class SourceOwners:
    """Whose sources are whose: to be told before `start`, and again when it changes.

    Attributes
    ----------
    owners
        (prefix, tenant), in place of all that was told before. A prefix ends at `/` or `:`,
        and the longest one that a source begins with counts. What begins with none is
        everybody's: identities are told apart by tenant.
    """

    owners: tuple[tuple[str, str], ...]
