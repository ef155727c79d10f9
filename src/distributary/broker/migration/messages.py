"""What is said when a client moves to another home broker.

The seven calls are `register`, `summarize`, `request_to_move`, `accept`, `replicate`, `connect`
and `redirect` (Zhao and Wu, section V); the others make them safe.
"""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.addresses import Speaker
from distributary.broker.encoding import since, wire

__all__ = [
    "IDS",
    "MOVING",
    "REFUSALS",
    "TOO_MANY_CLIENTS",
    "TOO_MUCH_TRAFFIC",
    "AcceptMove",
    "Arrived",
    "Connect",
    "Connected",
    "MoveNow",
    "Redirect",
    "RedirectEnd",
    "RegisterClient",
    "Release",
    "Replicate",
    "Replicated",
    "RequestToMove",
    "Reserve",
    "Reserved",
    "Summarize",
]

TOO_MANY_CLIENTS = "clients"
TOO_MUCH_TRAFFIC = "traffic"
IDS = "ids"
MOVING = "moving"
REFUSALS = (TOO_MANY_CLIENTS, TOO_MUCH_TRAFFIC, IDS, MOVING)
"""Why a broker keeps no room: it has as many clients, or as much traffic, as it takes; one of the
client's subscriptions is still ending there; or the client is coming from elsewhere."""


@wire(160, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class RegisterClient:
    """`register`: a client tells its home what a unit of traffic costs it at each broker."""

    prices: tuple[tuple[str, float], ...]


@wire(161, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Summarize:
    """`summarize`: what the clients of a broker publish and want, and its prices to others.

    Attributes
    ----------
    publishes
        Bytes per second by cell.
    interests
        Cells that some client subscribes to, ascending.
    prices
        What a unit of traffic costs on the way to each other broker.
    """

    publishes: tuple[tuple[int, float], ...]
    interests: tuple[int, ...]
    prices: tuple[tuple[str, float], ...]


@wire(162, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Reserve:
    """Ask a broker to keep room for a client, and for its subscriptions of these ids.

    Attributes
    ----------
    traffic
        What the client sends and is sent, in bytes per second.
    """

    client: str
    subscriptions: tuple[str, ...]
    traffic: float


@wire(163, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Reserved:
    """Whether there is room for a client.

    Attributes
    ----------
    refusal
        What there is no room for, one of `REFUSALS`; empty when there is room.
    """

    client: str
    refusal: str


@wire(164, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Release:
    """The room kept for a client is not needed."""

    client: str


@wire(165, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class RequestToMove:
    """`request_to_move`: ask a client whether it would rather attach to another broker."""

    target: str


@wire(166, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class AcceptMove:
    """`accept`: what the client says to that."""

    target: str
    accepted: bool


@wire(167, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Replicate:
    """`replicate`: all that is kept for a client, encoded, by the part that keeps it.

    Attributes
    ----------
    rates
        Bytes per second that it publishes, by cell, as its old home has measured.
    moved_ns
        As in `MoveNow`.
    """

    client: str
    prices: tuple[tuple[str, float], ...]
    rates: tuple[tuple[int, float], ...]
    parts: tuple[tuple[str, bytes], ...]
    moved_ns: int = since(2, 0)


@wire(168, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Replicated:
    """Whether all that was kept for a client is stored at its new home now.

    It is not while one of its subscriptions is still ending there.
    """

    client: str
    stored: bool


@wire(169, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class MoveNow:
    """Tell a client where its home is now.

    Attributes
    ----------
    moved_ns
        When it agreed to move, by its old home's clock, which tells one move from another.
    """

    target: str
    moved_ns: int = since(2, 0)


@wire(170, Speaker.CLIENT)
@dataclass(frozen=True, slots=True)
class Connect:
    """`connect`: a client comes to its new home, and says what it has received.

    Attributes
    ----------
    received
        The number of the last delivery of each subscription; none when the client begins anew.
    epoch
        As in `Subscribe`.
    moved_ns
        As in `MoveNow`; 0 when nobody has told it to come.
    """

    received: tuple[tuple[str, int], ...]
    epoch: int = since(2, 0)
    moved_ns: int = since(2, 0)


@wire(171, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Connected:
    """The new home serves the client.

    Attributes
    ----------
    received
        Up to which number each subscription counts as received here; those that are not
        named begin with 1.
    """

    received: tuple[tuple[str, int], ...]


@wire(172, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Redirect:
    """`redirect`: something for a client that still came to its old home.

    Attributes
    ----------
    number
        Counts what is redirected for the client from 1; hops do not keep order.
    parcel
        What it is, encoded.
    cell, publisher, series, place
        Where it stands among what its publisher has published; `place` is 0 when that is
        not known any more.
    registration, published_ns
        For which generation of the subscription it came, and when it was published: a change
        that the client has asked for since may be known to the new home alone. Empty if it came
        before the client left.
    """

    client: str
    number: int
    subscription: str
    parcel: bytes
    cell: int
    publisher: int
    series: int
    place: int
    registration: str = since(2, "")
    published_ns: int = since(2, 0)


@wire(173, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Arrived:
    """The subscriptions of a client are registered everywhere under its new home."""

    client: str


@wire(174, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class RedirectEnd:
    """Nothing more is redirected for a client than this many."""

    client: str
    count: int
