"""An event that a filter matches: the quickest proof that another filter does not cover it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from distributary.content.attributes import AttributeValue
from distributary.filters.atoms import Found, Kind, Like, is_pointer
from distributary.filters.consistency import GaveUp, Search
from distributary.filters.filter import Filter
from distributary.filters.filter_formula import filter_formula
from distributary.filters.region import Literals, numbers_left, text_ends
from distributary.filters.text_language import Wildcard, pattern_tokens

__all__ = ["Example", "example"]

# What stands for any character at all; the second where a filter excludes the first.
_FILLERS = ("~", "^")


@dataclass(frozen=True)
class Example:
    """What a filter reads of an event."""

    attributes: Mapping[str, AttributeValue]
    numbers: Mapping[str, float]
    texts: Mapping[str, str]


def example(filter_: Filter) -> Example | None:
    """Return an event that the filter matches, or None if none is found."""
    try:
        known = Search().consistent(filter_formula(filter_))
    except GaveUp:
        return None
    attributes: dict[str, AttributeValue] = {}
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    for key, literals in (known or {}).items():
        for value in _values(literals):
            if all(atom.holds(value) is sign for atom, sign in literals):
                break
        else:
            continue
        if value is None:
            continue
        if isinstance(value, float):
            numbers[key] = value
        elif not is_pointer(key):
            attributes[key] = value
        elif isinstance(value, str):
            texts[key] = value
    found = Example(attributes, numbers, texts)
    return found if filter_.matches(found) else None


def _values(literals: Literals) -> Iterator[Found]:
    """Yield values to try at a key."""
    yield None
    pointer = is_pointer(literals[0][0].key)
    for atom, sign in literals:
        for kind in (Kind.STRING,) if pointer else (Kind.STRING, Kind.INTEGER):
            yield from atom.support(kind, sign) or ()
    ends = text_ends(literals)
    if ends is not None:
        yield from (ends.prefix + filler + ends.suffix for filler in ("", *_FILLERS))
    for atom, sign in literals:
        if sign and isinstance(atom, Like):
            tokens = pattern_tokens(atom.pattern)
            for filler in _FILLERS:
                yield "".join(filler if isinstance(t, Wildcard) else t for t in tokens)
    for span in numbers_left(literals):
        for bound in (span.low, span.high, 0.0):
            if math.isfinite(bound):
                yield bound if pointer else repr(bound)
                if not pointer:
                    yield math.ceil(bound)
                    yield str(math.floor(bound))
    if not pointer:
        yield True
        yield False
