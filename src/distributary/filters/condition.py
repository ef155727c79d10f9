"""Single conditions on what a publication has at one key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from distributary.filters.interval import Interval

__all__ = [
    "Clause",
    "Condition",
    "EndsWith",
    "OneOf",
    "StartsWith",
    "TextCondition",
    "Within",
    "present",
]


@dataclass(frozen=True)
class OneOf:
    """The text at `key` is one of `texts`, which are sorted and differ."""

    key: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class StartsWith:
    """There is a text at `key`, and it starts with `text`."""

    key: str
    text: str


@dataclass(frozen=True)
class EndsWith:
    """There is a text at `key`, and it ends with `text`."""

    key: str
    text: str


@dataclass(frozen=True)
class Within:
    """There is a number at `key`, and it lies in `interval`."""

    key: str
    interval: Interval


TextCondition: TypeAlias = OneOf | StartsWith | EndsWith
Condition: TypeAlias = OneOf | StartsWith | EndsWith | Within
Clause: TypeAlias = tuple[Condition, ...]
"""A choice: at least one of its conditions must hold."""


def present(key: str) -> StartsWith:
    """Return the condition that there is a text, or an attribute of any type, at `key`."""
    return StartsWith(key, "")
