"""The filter dialects as data, which the index, `covers` and `cells` read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from distributary.filters.expression import Expression
from distributary.filters.interval import Interval

__all__ = ["All", "AnyOf", "Node", "Not", "Range", "Sql", "TextFilter"]


@dataclass(frozen=True)
class TextFilter:
    """Every key, an attribute or a JSON Pointer into `data`, has a text that fits.

    In the dialect `exact` it is the text given, in `prefix` and `suffix` it starts or ends
    with that.
    """

    dialect: str
    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Range:
    """Every key has a number that lies in its interval."""

    entries: tuple[tuple[str, Interval], ...]


@dataclass(frozen=True)
class All:
    """All of the parts hold."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class AnyOf:
    """At least one of the parts holds."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Not:
    """The part does not hold."""

    part: Node


@dataclass(frozen=True)
class Sql:
    """The expression is true, and its evaluation meets no error."""

    expression: Expression


Node: TypeAlias = TextFilter | Range | All | AnyOf | Not | Sql
