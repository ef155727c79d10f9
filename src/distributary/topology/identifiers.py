"""Identifiers: strings of hexadecimal digits that name brokers and keys alike.

Prefix routing compares the identifier of a key with those of brokers digit by digit,
so both live in one space: a fixed number of digits in base 16, written in lower case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from distributary.arguments import check_count, check_within, checked
from distributary.arrays import IntArray
from distributary.errors import BadInput, quoted

__all__ = [
    "DIGIT_BASE",
    "IDENTIFIER_DIGITS",
    "digits_of",
    "random_identifiers",
    "shared_prefix_length",
]

DIGIT_BASE = 16

# Four thousand million identifiers: drawn at random, a thousand brokers collide about
# once in ten thousand overlays, and an identifier still fits on a line of a log.
IDENTIFIER_DIGITS = 8

# Keys are cut from SHA-256, which has no more to give.
_DIGITS_MAX = 64

_DIGIT_VALUES = {digit: value for value, digit in enumerate("0123456789abcdef")}


@checked
def random_identifiers(
    count: int, rng: np.random.Generator, *, digits: int = IDENTIFIER_DIGITS
) -> tuple[str, ...]:
    """Return `count` distinct identifiers, uniformly at random, in the order drawn."""
    check_within("digits", digits, 1, _DIGITS_MAX)
    check_count("count", count)
    if count > DIGIT_BASE**digits:
        raise BadInput(
            "count", f"is {count}, but there are only {DIGIT_BASE**digits} of {digits} digits"
        )
    drawn: dict[str, None] = {}
    while len(drawn) < count:
        rows = rng.integers(DIGIT_BASE, size=(count - len(drawn), digits))
        drawn.update(dict.fromkeys("".join(f"{digit:x}" for digit in row) for row in rows))
    return tuple(drawn)


def shared_prefix_length(one: str, other: str) -> int:
    """Return how many digits two identifiers share before they first differ."""
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length


def digits_of(identifiers: Sequence[str], *, digits: int | None = None) -> IntArray:
    """Return the digits of identifiers of equal length, shape (identifiers, digits).

    Every identifier must have so many digits; by default as many as the first.
    """
    expected = digits if digits is not None else len(identifiers[0]) if identifiers else 0
    rows = np.empty((len(identifiers), expected), dtype=np.int64)
    for row, identifier in zip(rows, identifiers, strict=True):
        if len(identifier) != expected or not _are_digits(identifier):
            raise BadInput(
                f"identifier {quoted(identifier)}",
                f"is not made of {expected} lower-case hexadecimal digits",
            )
        row[:] = [_DIGIT_VALUES[digit] for digit in identifier]
    return rows


def _are_digits(text: Iterable[str]) -> bool:
    return all(character in _DIGIT_VALUES for character in text)
