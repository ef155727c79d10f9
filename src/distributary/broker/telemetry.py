"""What a broker tells whoever watches it; the protocol does not need any of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "Adapted",
    "CopyChanged",
    "Delivered",
    "Migrated",
    "Misbehaved",
    "MoveRefused",
    "Planned",
    "Refined",
    "SetAsideMessage",
    "TreeLinked",
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
