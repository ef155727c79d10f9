"""What brokers say to each other to adapt the trees that streams follow.

All of it may get lost: then a round passes without a change.
"""

from __future__ import annotations

from dataclasses import dataclass

from distributary.broker.encoding import wire

__all__ = [
    "Answer",
    "Figures",
    "Hold",
    "HoldAnswer",
    "HoldRelease",
    "Moved",
    "ObjectFigures",
    "Order",
    "Question",
    "Statistics",
    "Token",
]


@dataclass(frozen=True, slots=True)
class ObjectFigures:
    """How often one object is needed at a broker and below.

    Attributes
    ----------
    own
        Updates per second for followers at the broker itself.
    peak
        The most that anybody needs, there or below.
    receivers, passed
        How many children want the object, and the sum of what they need.
    """

    source: str
    subject: str
    own: float
    peak: float
    receivers: int
    passed: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What a broker tells about itself in one tree.

    Attributes
    ----------
    objects
        Those that are wanted there or below, in order.
    children
        In order.
    weight, weight_below
        By how much a second of delay there, and below, raises the loss of fidelity.
    filter_s, send_s
        How long it takes to check a message for a child, and to send it.
    load_elsewhere, peaks_elsewhere, weight_elsewhere
        In all other trees: the share of time that it is busy, the sum of peak rates, and the
        weight below it.
    """

    objects: tuple[ObjectFigures, ...]
    children: tuple[str, ...]
    weight: float
    weight_below: float
    filter_s: float
    send_s: float
    load_elsewhere: float
    peaks_elsewhere: float
    weight_elsewhere: float


@wire(140)
@dataclass(frozen=True, slots=True)
class Token:
    """Adapt what is below you."""

    tree: str
    round: int


@wire(141)
@dataclass(frozen=True, slots=True)
class Hold:
    """Hold still, and tell your figures.

    Attributes
    ----------
    among
        Brokers that you or others may be moved to: tell how far you are from them.
    """

    tree: str
    round: int
    among: tuple[str, ...]


@wire(142)
@dataclass(frozen=True, slots=True)
class HoldAnswer:
    """The answer to `Hold`.

    Attributes
    ----------
    figures
        The broker's own; None when it refuses, because it is busy with somebody else.
    below
        Those of its children, as far as it knows them.
    delays_ns
        To whom it was asked about.
    """

    tree: str
    round: int
    figures: Figures | None
    below: tuple[tuple[str, Figures], ...]
    delays_ns: tuple[tuple[str, int], ...]


@wire(143)
@dataclass(frozen=True, slots=True)
class HoldRelease:
    """You need not hold still for this round any longer."""

    tree: str
    round: int


@wire(144)
@dataclass(frozen=True, slots=True)
class Order:
    """Go below another broker."""

    tree: str
    round: int
    parent: str


@wire(145)
@dataclass(frozen=True, slots=True)
class Moved:
    """The answer to `Order`."""

    tree: str
    round: int
    done: bool


@wire(146)
@dataclass(frozen=True, slots=True)
class Question:
    """May a broker go below you, or below one that is below you?"""

    tree: str
    mover: str
    number: int
    hops: int


@wire(147)
@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to `Question`, from whoever could give it to the broker that asked."""

    tree: str
    number: int
    cleared: bool


@wire(148)
@dataclass(frozen=True, slots=True)
class Statistics:
    """What has changed since a child last told, by tree."""

    figures: tuple[tuple[str, Figures], ...]
