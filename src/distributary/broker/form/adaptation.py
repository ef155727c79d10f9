"""The form of what is said to adapt the trees that streams follow.

Figures go into arrays of numbers, and into products and sums over whole trees.
"""

from __future__ import annotations

from distributary.broker.form.rules import COUNT_MAX, Rules
from distributary.broker.messages.adaptation import (
    Answer,
    Figures,
    Hold,
    HoldAnswer,
    HoldRelease,
    Moved,
    Order,
    Question,
    Statistics,
    Token,
)

__all__ = [
    "check_answer",
    "check_hold",
    "check_hold_answer",
    "check_order",
    "check_question",
    "check_round",
    "check_statistics",
]


def check_round(
    message: Token | Hold | HoldAnswer | HoldRelease | Order | Moved, rules: Rules
) -> None:
    """Refuse a round that nobody has begun; the time at which one begins is its number."""
    rules.times((message.round,))


def check_hold(message: Hold, rules: Rules) -> None:
    """Refuse to tell how far it is to nobody."""
    check_round(message, rules)
    rules.brokers(message.among)


def check_hold_answer(message: HoldAnswer, rules: Rules) -> None:
    """Refuse figures with which nobody can reckon."""
    check_round(message, rules)
    if message.figures is not None:
        _check_figures(message.figures, rules)
    for child, figures in message.below:
        rules.brokers((child,))
        _check_figures(figures, rules)
    rules.brokers(peer for peer, _ in message.delays_ns)
    rules.numbers(delay_ns for _, delay_ns in message.delays_ns)


def check_order(message: Order, rules: Rules) -> None:
    """Refuse to go below nobody."""
    check_round(message, rules)
    rules.brokers((message.parent,))


def check_question(message: Question, rules: Rules) -> None:
    """Refuse a question that cannot be answered."""
    rules.brokers((message.mover,))
    rules.times((message.number,))
    rules.numbers((message.hops,), COUNT_MAX)


def check_answer(message: Answer, rules: Rules) -> None:
    """Refuse the answer to what nobody asks."""
    rules.times((message.number,))


def check_statistics(message: Statistics, rules: Rules) -> None:
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
