"""What a broker tells whoever watches it; the protocol does not need any of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "Adapted",
    "ConversionTime",
    "CopyChanged",
    "Delivered",
    "HopTime",
    "Measured",
    "Migrated",
    "Misbehaved",
    "MoveRefused",
    "Planned",
    "PublishedShare",
    "Refined",
    "SetAsideMessage",
    "SettingsDiffer",
    "StreamRate",
    "TransferTime",
    "TreeLinked",
    "TreeOrdered",
    "Worth",
]


class Worth(NamedTuple):
    """What a plan costs before weighting, and the predicted delays of its deliveries together."""

    transmission: float
    conversion: float
    delay_s: float


@dataclass(frozen=True, slots=True)
class Planned:
    """A rendezvous broker planned a publication.

    Attributes
    ----------
    broker_count
        How many brokers the tree has that it planned on.
    chosen
        Which of the plans it compared was the best: a simple one by its name, or `planned`
        or `planned under load`.
    worth
        What it costs on that tree, and how late its deliveries should be.
    all_in_root, all_in_leaves
        The same for these plans in the same state; None when not compared.
    """

    source: str
    id: str
    broker_count: int
    chosen: str
    worth: Worth
    all_in_root: Worth | None
    all_in_leaves: Worth | None
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Refined:
    """A broker found other next hops than the plan had, and planned its subtree anew."""

    source: str
    id: str
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A home broker gave a publication its number in a subscription of a client."""

    client: str
    subscription: str
    number: int
    source: str
    id: str
    media_type: str


@dataclass(frozen=True, slots=True)
class CopyChanged:
    """A broker's copy of a stream object changed; `sequence` is the source's change number."""

    source: str
    subject: str
    sequence: int


@dataclass(frozen=True, slots=True)
class TreeLinked:
    """A broker's parent in a stream tree changed; None when it has left or is the root."""

    tree: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class Adapted:
    """A broker made a move in a stream tree."""

    tree: str
    move: str
    gain: float


@dataclass(frozen=True, slots=True)
class Migrated:
    """A client's new home broker has taken over."""

    client: str
    home: str


@dataclass(frozen=True, slots=True)
class MoveRefused:
    """A broker had no room for a client, which stays where it is; `reason` says for what."""

    client: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class SettingsDiffer:
    """A peer has other settings than this broker, or another adaptation graph.

    Attributes
    ----------
    what
        `settings` or `graph`.
    digest
        Of what the peer has; it is reported once.
    """

    peer: str
    what: str
    digest: int


@dataclass(frozen=True, slots=True)
class Misbehaved:
    """A peer sent a message that breaks the protocol; it was dropped."""

    peer: str
    problem: str


@dataclass(frozen=True, slots=True)
class SetAsideMessage:
    """The broker failed over a message, which counts as handled now.

    Attributes
    ----------
    kind
        The message's, or that of the message that it carried.
    problem
        How the broker failed.
    """

    peer: str
    kind: str
    problem: str


@dataclass(frozen=True, slots=True)
class TreeOrdered:
    """What became of an order to bring a tree into a shape.

    Attributes
    ----------
    moved
        How many brokers have the parent that was wanted.
    refused
        (broker, parent): those that have not, and could not go there or did not answer.
    reason
        Why nothing was tried at all; empty when it was.
    """

    tree: str
    moved: int
    refused: tuple[tuple[str, str], ...]
    reason: str = ""


class HopTime(NamedTuple):
    """How long a peer took on average to acknowledge messages that were sent once."""

    peer: str
    messages: int
    mean_s: float


class ConversionTime(NamedTuple):
    """How long conversions took altogether, and what came of it.

    Attributes
    ----------
    seconds
        From when they were asked for.
    bytes
        Of what was made.
    origin_bytes
        Of what it was made from.
    work_s
        How long converters were at it, as the host has measured.
    """

    origin: str
    target: str
    conversions: int
    seconds: float
    bytes: int
    origin_bytes: int
    work_s: float


class TransferTime(NamedTuple):
    """How much content has come from a peer, and how long it was on its way, by the host."""

    peer: str
    transfers: int
    seconds: float
    bytes: int


class StreamRate(NamedTuple):
    """How many versions of an object a child was sent in a second, in the last window of rates."""

    tenant: str
    source: str
    subject: str
    child: str
    rate: float


class PublishedShare(NamedTuple):
    """What a client has published in a cell."""

    client: str
    cell: int
    publications: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What a broker has measured in a window.

    Attributes
    ----------
    window_s
        How long that was.
    delivered
        (format, count) of what was queued for clients.
    members
        (`came`, `down` or `gone`, count) of brokers.
    service
        (`filter` or `send`, seconds): how long the processor takes over a version for one
        child, as its host has measured; none before that.
    """

    window_s: float
    hops: tuple[HopTime, ...]
    conversions: tuple[ConversionTime, ...]
    published: tuple[PublishedShare, ...]
    delivered: tuple[tuple[str, int], ...]
    members: tuple[tuple[str, int], ...]
    transfers: tuple[TransferTime, ...]
    rates: tuple[StreamRate, ...]
    service: tuple[tuple[str, float], ...]
