"""What a host tells its broker about itself and the surroundings."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from distributary.broker.addresses import Address, Speaker
from distributary.broker.blob import Blob
from distributary.broker.encoding import VERSION, since, wire

__all__ = [
    "ClientBack",
    "ClientGone",
    "ContentHeld",
    "ContentPut",
    "ContentUsed",
    "Detached",
    "Leave",
    "Neighbour",
    "OrderMove",
    "OrderTree",
    "PlantTree",
    "Reattached",
    "ServiceTimes",
    "SetAside",
    "SourceOwners",
    "StorageLow",
    "StorageRecovered",
    "Surroundings",
]


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


@wire(3, Speaker.HOST)
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


@wire(4, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the overlay in good order."""


@wire(320, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class Detached:
    """The host has no connection to anybody; to be told before `start` too, if it has none."""


@wire(321, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class Reattached:
    """The host has a connection again."""


@wire(367, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ClientGone:
    """A client has no connection; to be told before `start` too, of all that have none.

    Nothing is sent to it until `ClientBack`, or until it says something itself. What comes for
    it is kept, within the limits of its subscriptions.
    """

    client: str


@wire(368, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ClientBack:
    """A client has a connection again, and is sent what has waited for it."""

    client: str


@wire(372, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ContentPut:
    """A client has put content: its bytes are in the host's store, durably.

    It may be published by clients of the same tenant, and is forgotten after `put_s` if it is
    not. A host takes no more than `content_bytes_max`, and takes bytes that it has already like
    any others.
    """

    client: str
    blob: Blob


@wire(373, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ContentHeld:
    """What the host's content store has: to be told before `start`, in as many parts as it likes.

    Attributes
    ----------
    contents
        (digest, bytes).
    """

    contents: tuple[tuple[str, int], ...]


@wire(374, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class ContentUsed:
    """The host has given content to another host, or to a client."""

    digest: str


@wire(5, Speaker.HOST)
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


@wire(6, Speaker.HOST)
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


@wire(300, Speaker.HOST)
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


@wire(301, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class StorageLow:
    """The disk is nearly full: take no publications from clients until it has recovered."""


@wire(302, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class StorageRecovered:
    """There is room on the disk again."""


@wire(400, Speaker.HOST)
@dataclass(frozen=True, slots=True)
class OrderMove:
    """Move a client of this broker to another, as if migration had found that it pays.

    It goes the way of every migration: there must be room, and the client may decline. What
    becomes of it is reported as `telemetry.Migrated` or `telemetry.MoveRefused`.
    """

    client: str
    target: str


@wire(401, Speaker.HOST)
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


@wire(340, Speaker.HOST)
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
