"""What can be told about all texts that have a prefix, a suffix and a pattern in common."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import TypeAlias

from distributary.filters.like_pattern import LikePattern

__all__ = [
    "COMPARED_MAX",
    "Wildcard",
    "includes",
    "longest",
    "open_tokens",
    "overlaps",
    "pattern_tokens",
]

# Comparing patterns takes time in proportion to the product of their lengths.
COMPARED_MAX = 1 << 12
_OVERLAPS_MAX = 64


class Wildcard(Enum):
    """`_` and `%`."""

    ONE = auto()
    MANY = auto()


Token: TypeAlias = str | Wildcard


def longest(texts: Iterable[str], *, at_end: bool = False) -> str | None:
    """Return the prefix (or suffix) that says as much as all of `texts`; None is impossible."""
    found = ""
    for text in texts:
        longer, shorter = (text, found) if len(text) > len(found) else (found, text)
        fits = longer.endswith(shorter) if at_end else longer.startswith(shorter)
        if not fits:
            return None
        found = longer
    return found


def pattern_tokens(pattern: LikePattern) -> list[Token]:
    """Return the characters and wildcards of a pattern."""
    found: list[Token] = []
    for index, segment in enumerate(pattern.segments):
        if index and (not found or found[-1] is not Wildcard.MANY):
            found.append(Wildcard.MANY)
        tokens: list[Token] = [Wildcard.ONE] * segment.length
        for offset, run in segment.runs:
            tokens[offset : offset + len(run)] = run
        found.extend(tokens)
    return found


def open_tokens(prefix: str, suffix: str) -> list[Token]:
    """Return the pattern of all texts with this prefix and then, later, this suffix."""
    return [*prefix, Wildcard.MANY, *suffix]


def includes(wide: list[Token], narrow: list[Token]) -> bool:
    """Does every text of pattern `narrow` match pattern `wide`? Never yes by mistake.

    `narrow` is matched as if it were a text: its `%` fits nothing but a `%`, its `_` fits
    `_` and `%`. The usual way to match a text, with one place to go back to, does the rest.
    """
    if len(wide) * len(narrow) > COMPARED_MAX:
        return wide == narrow
    i = j = 0
    back_i = back_j = -1
    while j < len(narrow):
        if i < len(wide) and wide[i] is Wildcard.MANY:
            back_i, back_j = i, j
            i += 1
        elif i < len(wide) and _fits(wide[i], narrow[j]):
            i += 1
            j += 1
        elif back_i >= 0:
            back_j += 1
            i, j = back_i + 1, back_j
        else:
            return False
    return all(token is Wildcard.MANY for token in wide[i:])


def _fits(wide: Token, narrow: Token) -> bool:
    return narrow is not Wildcard.MANY and (wide is Wildcard.ONE or wide == narrow)


def overlaps(prefix: str, suffix: str) -> list[str] | None:
    """Return the texts in which prefix and suffix share characters; None: not looked for."""
    if min(len(prefix), len(suffix)) > _OVERLAPS_MAX:
        return None
    return [
        prefix + suffix[shared:]
        for shared in range(1, min(len(prefix), len(suffix)) + 1)
        if prefix.endswith(suffix[:shared])
    ]
