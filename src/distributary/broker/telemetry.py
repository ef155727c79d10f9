"""What a broker tells whoever watches it; the protocol does not need any of it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Adapted",
    "CopyChanged",
    "Delivered",
    "Migrated",
    "Misbehaved",
    "MoveRefused",
    "Planned",
    "Refined",
    "TreeLinked",
]


@dataclass(frozen=True, slots=True)
class Planned:
    """A rendezvous broker planned a publication; costs are those of the tree it planned on.

    `all_in_root` and `all_in_leaves` are (transmission, conversion), None when not compared.
    """

    source: str
    id: str
    broker_count: int
    transmission: float
    conversion: float
    all_in_root: tuple[float, float] | None
    all_in_leaves: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Refined:
    """A broker found other next hops than the plan had, and planned its subtree anew."""

    source: str
    id: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """A home broker gave a publication its number in a subscription."""

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
class Misbehaved:
    """A peer sent a message that breaks the protocol; it was dropped."""

    peer: str
    problem: str
