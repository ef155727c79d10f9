"""What brokers say to each other to adapt the trees that streams follow.

All of it may get lost: then a round passes without a change.

Figures go into arrays of numbers, and into products and sums over whole trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from distributary.broker.addresses import Speaker
from distributary.broker.core import COUNT_MAX, Check, Rules
from distributary.broker.encoding import encodable
from distributary.broker.host import OrderTree

__all__ = [
    "CHECKS",
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


@encodable(140, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Token:
    """Adapt what is below you."""

    tree: str
    round: int


@encodable(141, Speaker.BROKER)
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


@encodable(142, Speaker.BROKER)
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


@encodable(143, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class HoldRelease:
    """You need not hold still for this round any longer."""

    tree: str
    round: int


@encodable(144, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Order:
    """Go below another broker."""

    tree: str
    round: int
    parent: str


@encodable(145, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Moved:
    """The answer to `Order`."""

    tree: str
    round: int
    done: bool


@encodable(146, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Question:
    """May a broker go below you, or below one that is below you?"""

    tree: str
    mover: str
    number: int
    hops: int


@encodable(147, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to `Question`, from whoever could give it to the broker that asked."""

    tree: str
    number: int
    cleared: bool


@encodable(148, Speaker.BROKER)
@dataclass(frozen=True, slots=True)
class Statistics:
    """What has changed since a child last told, by tree."""

    figures: tuple[tuple[str, Figures], ...]


def _check_round(
    message: Token | Hold | HoldAnswer | HoldRelease | Order | Moved, rules: Rules
) -> None:
    """Refuse a round that nobody has begun; the time at which one begins is its number."""
    rules.times((message.round,))


def _check_hold(message: Hold, rules: Rules) -> None:
    """Refuse to tell how far it is to nobody."""
    _check_round(message, rules)
    rules.brokers(message.among)


def _check_hold_answer(message: HoldAnswer, rules: Rules) -> None:
    """Refuse figures with which nobody can reckon."""
    _check_round(message, rules)
    if message.figures is not None:
        _check_figures(message.figures, rules)
    for child, figures in message.below:
        rules.brokers((child,))
        _check_figures(figures, rules)
    rules.brokers(peer for peer, _ in message.delays_ns)
    rules.numbers(delay_ns for _, delay_ns in message.delays_ns)


def _check_order(message: Order, rules: Rules) -> None:
    """Refuse to go below nobody."""
    _check_round(message, rules)
    rules.brokers((message.parent,))


def _check_question(message: Question, rules: Rules) -> None:
    """Refuse a question that cannot be answered."""
    rules.brokers((message.mover,))
    rules.times((message.number,))
    rules.numbers((message.hops,), COUNT_MAX)


def _check_answer(message: Answer, rules: Rules) -> None:
    """Refuse the answer to what nobody asks."""
    rules.times((message.number,))


def _check_statistics(message: Statistics, rules: Rules) -> None:
    """Refuse figures with which nobody can reckon."""
    for _, figures in message.figures:
        _check_figures(figures, rules)


def _check_figures(figures: Figures, rules: Rules) -> None:
    rules.brokers(figures.children)
    rules.amounts(
        (
            figures.weight,
            figures.weight_below,
            figures.filter_s,
            figures.send_s,
            figures.load_elsewhere,
            figures.peaks_elsewhere,
            figures.weight_elsewhere,
        )
    )
    for entry in figures.objects:
        rules.amounts((entry.own, entry.peak, entry.passed))
        rules.numbers((entry.receivers,), COUNT_MAX)


def _check_tree_order(message: OrderTree, rules: Rules) -> None:
    rules.brokers(name for step in message.parents for name in step)


CHECKS: Mapping[type, Check] = {
    OrderTree: _check_tree_order,
    Token: _check_round,
    Hold: _check_hold,
    HoldAnswer: _check_hold_answer,
    HoldRelease: _check_round,
    Order: _check_order,
    Moved: _check_round,
    Question: _check_question,
    Answer: _check_answer,
    Statistics: _check_statistics,
}
"""What must hold of messages beyond the types of their fields."""
