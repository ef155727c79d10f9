"""Filters from untrusted JSON: read within limits, and refused with the place of the fault."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from distributary.content.fields import described
from distributary.content.json_pointer import checked_pointer
from distributary.errors import BadInput, quoted
from distributary.filters.dialects import All, AnyOf, Node, Not, Range, Sql, TextFilter
from distributary.filters.expression import parse_expression
from distributary.filters.interval import Interval
from distributary.filters.sql_cost import check_passes
from distributary.filters.sql_functions import Functions

__all__ = [
    "CONDITIONS_MAX",
    "DEPTH_MAX",
    "FILTERS_MAX",
    "KEY_CHARACTERS_MAX",
    "SQL_CHARACTERS_MAX",
    "TEXT_CHARACTERS_MAX",
    "parse_filters",
]

FILTERS_MAX = 256
"""How many filters an array may have."""
DEPTH_MAX = 16
"""How deep filters may be nested; a filter of the outermost array is at depth 1."""
CONDITIONS_MAX = 1024
"""How many entries and expressions a subscription may have, wherever they stand."""
KEY_CHARACTERS_MAX = 1024
TEXT_CHARACTERS_MAX = 8192
"""How long a text, or an expression, may be."""
SQL_CHARACTERS_MAX = 131_072
"""How long all expressions of a subscription may be together."""

_DIALECTS = ("exact", "prefix", "suffix", "range", "all", "any", "not", "sql")
_BOUNDS = ("min", "max", "min_exclusive", "max_exclusive")
_KEY_SHOWN_MAX = 60


def parse_filters(filters: object, place: str, functions: Functions) -> tuple[Node, ...]:
    """Return the filters of an array; see `Filter.parse`."""
    return _Parser(functions).array(filters, place, depth=1, may_be_empty=True)


class _Parser:
    """Reads one subscription's filters, counting what they ask for."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._conditions = 0
        self._sql_characters = 0
        self._text_passes = 0

    def array(
        self, filters: object, place: str, *, depth: int, may_be_empty: bool = False
    ) -> tuple[Node, ...]:
        if not isinstance(filters, list | tuple):
            raise BadInput(place, f"must be an array of filters, not {described(filters)}")
        if not filters and not may_be_empty:
            raise BadInput(place, "must not be empty")
        if len(filters) > FILTERS_MAX:
            raise BadInput(place, f"has {len(filters):,} filters; at most {FILTERS_MAX} are read")
        return tuple(
            self.node(entry, f"{place}[{index}]", depth) for index, entry in enumerate(filters)
        )

    def node(self, value: object, place: str, depth: int) -> Node:
        if depth > DEPTH_MAX:
            raise BadInput(place, f"is nested more than {DEPTH_MAX} deep")
        if not isinstance(value, Mapping):
            raise BadInput(
                place,
                f"must be an object with one dialect, not {described(value)}",
                hint=f"the dialects are {', '.join(_DIALECTS)}",
            )
        if len(value) != 1:
            raise BadInput(
                place,
                f"has {len(value)} dialects; it must have one",
                hint="put several filters into an array, or into 'all'" if value else None,
            )
        ((dialect, body),) = value.items()
        inside = _place_in(place, dialect)
        match dialect:
            case "exact" | "prefix" | "suffix":
                return self.texts(dialect, body, inside)
            case "range":
                return self.ranges(body, inside)
            case "all":
                return All(self.array(body, inside, depth=depth + 1))
            case "any":
                return AnyOf(self.array(body, inside, depth=depth + 1))
            case "not":
                return Not(self.node(body, inside, depth + 1))
            case "sql":
                return self.expression(body, inside)
            case _:
                raise BadInput(
                    inside,
                    f"{quoted(dialect)} is not a filter dialect",
                    hint=f"the dialects are {', '.join(_DIALECTS)}",
                )

    def texts(self, dialect: str, body: object, place: str) -> Node:
        entries: list[tuple[str, str]] = []
        for key, text, inside in self.entries(body, place):
            if not isinstance(text, str):
                raise BadInput(inside, f"must be a string, not {described(text)}")
            # An attribute is never empty, and everything starts and ends with nothing. A
            # text inside the data may well be empty.
            if not text and not (dialect == "exact" and key.startswith("/")):
                raise BadInput(inside, "must not be empty")
            _check_text(text, inside)
            entries.append((key, text))
        return TextFilter(dialect, tuple(entries))

    def ranges(self, body: object, place: str) -> Range:
        return Range(
            tuple(
                (key, _interval(bounds, inside))
                for key, bounds, inside in self.entries(body, place)
            )
        )

    def entries(self, body: object, place: str) -> list[tuple[str, object, str]]:
        """Return the keys of a dialect's map, what it says of them, and where."""
        if not isinstance(body, Mapping):
            raise BadInput(place, f"must be an object, not {described(body)}")
        if not body:
            raise BadInput(
                place, "must not be empty", hint="a subscription without filters gets everything"
            )
        self.count(len(body), place)
        found: list[tuple[str, object, str]] = []
        for key, value in body.items():
            inside = _place_in(place, key)
            _check_key(key, inside)
            found.append((key, value, inside))
        return found

    def expression(self, body: object, place: str) -> Sql:
        if not isinstance(body, str):
            raise BadInput(place, f"must be a string, not {described(body)}")
        self.count(1, place)
        _check_text(body, place)
        self._sql_characters += len(body)
        if self._sql_characters > SQL_CHARACTERS_MAX:
            raise BadInput(
                place,
                f"has the character beyond the {SQL_CHARACTERS_MAX:,} that the expressions of a"
                " subscription may have together",
            )
        try:
            expression = parse_expression(body, functions=self._functions)
        except BadInput as error:
            raise error.within(place) from None
        self._text_passes += expression.text_passes
        check_passes(self._text_passes, place)
        return Sql(expression)

    def count(self, more: int, place: str) -> None:
        self._conditions += more
        if self._conditions > CONDITIONS_MAX:
            raise BadInput(
                place,
                f"has the condition beyond the {CONDITIONS_MAX:,} that a subscription may have",
            )


def _interval(bounds: object, place: str) -> Interval:
    """Return the numbers within `bounds`: all without any, none where bounds contradict."""
    if not isinstance(bounds, Mapping):
        raise BadInput(place, f"must be an object with bounds, not {described(bounds)}")
    interval = Interval()
    for name, value in bounds.items():
        inside = _place_in(place, name)
        if name not in _BOUNDS:
            raise BadInput(inside, "is not a bound", hint=f"the bounds are {', '.join(_BOUNDS)}")
        bound = _bound(value, inside)
        match name:
            case "min":
                interval &= Interval(low=bound)
            case "max":
                interval &= Interval(high=bound)
            case "min_exclusive":
                interval &= Interval.above(bound)
            case "max_exclusive":
                interval &= Interval.below(bound)
    return interval


def _bound(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(place, f"must be a number, not {described(value)}")
    try:
        bound = float(value)
    except OverflowError:
        bound = math.inf
    if not math.isfinite(bound):
        raise BadInput(place, "must be a finite number that a double can hold")
    return bound + 0.0  # Adding 0 turns -0.0 into 0.0.


def _check_key(key: object, place: str) -> None:
    if not isinstance(key, str) or not key:
        raise BadInput(place, "must name an attribute, or begin with '/' and point into the data")
    if key.startswith("/"):
        checked_pointer(place, key)
    elif len(key) > KEY_CHARACTERS_MAX:
        raise BadInput(
            place, f"has {len(key):,} characters; a name has at most {KEY_CHARACTERS_MAX:,}"
        )
    _check_unicode(key, place)


def _check_text(text: str, place: str) -> None:
    if len(text) > TEXT_CHARACTERS_MAX:
        raise BadInput(
            place, f"has {len(text):,} characters; at most {TEXT_CHARACTERS_MAX:,} are read"
        )
    _check_unicode(text, place)


def _check_unicode(text: str, place: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInput(place, "has half of a surrogate pair, which is not text") from None


def _place_in(place: str, key: object) -> str:
    """Return the place of `key` in the object at `place`, as in `range["/price"].min`."""
    if isinstance(key, str) and key.isidentifier() and key.isascii() and len(key) <= _KEY_SHOWN_MAX:
        return f"{place}.{key}"
    text = key if isinstance(key, str) else str(key)
    if len(text) > _KEY_SHOWN_MAX:
        text = text[: _KEY_SHOWN_MAX - 3] + "..."
    return f"{place}[{json.dumps(text)}]"
