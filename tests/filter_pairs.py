"""Pairs of filters of which one may cover the other, and events that would show it does not.

All constants come from small pools, so that conditions meet and events can be aimed at
them: every text with and without something around it, every number with its neighbours,
and what reads as a number or as true in one dialect and not in another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from distributary.content.attributes import AttributeValue
from distributary.filters.filter import Filter

__all__ = [
    "KEYS",
    "Document",
    "Event",
    "any_filter",
    "derived_pair",
    "events",
    "has_counterexample",
    "random_pair",
]

Document: TypeAlias = dict[str, Any]

ATTRIBUTES = ("kind", "level")
POINTERS = ("/price", "/name")
KEYS = (*ATTRIBUTES, *POINTERS)

TEXTS = ("a", "ab", "b", "ba", "5", "true")
NUMBERS = (-1.0, 0.0, 1.5, 5.0)
INTEGERS = (0, 2, 5)
PATTERNS = ("a%", "%b", "%b%", "a%c", "a_", "ab%", "ab", "_b%", "%")


@dataclass(frozen=True)
class Event:
    """What a filter reads of a publication."""

    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def _texts_around() -> list[str]:
    found = {text + more for text in TEXTS for more in ("", "z")} | {"z" + text for text in TEXTS}
    found |= {first + second for first in TEXTS[:4] for second in TEXTS[:4]}
    found |= {f"{first}z{second}" for first in TEXTS for second in TEXTS}
    return sorted(found | {"", "ac", "abbc", "azbzc", "abzbc", "bazbac", "azc"})


def _numbers_around() -> list[float]:
    found = set()
    for number in NUMBERS:
        below, above = math.nextafter(number, -math.inf), math.nextafter(number, math.inf)
        found |= {below, number, above}
    return sorted(found | {-1e9, -0.5, 0.75, 2.5, 1e9})


_PLAIN = _texts_around()
_DOUBLES = _numbers_around()
_READ_AS_NUMBERS = [
    *map(repr, _DOUBLES),
    *(str(number) for number in range(-2, 7)),
    *("+5", "05", "5e0", "5.0", "-0", "+0", "2e0", "1e999", "99999999999", "+2", "-01"),
]
_VALUES: dict[str, list[AttributeValue | float | None]] = {
    **{
        key: [
            *(None, True, False, "TRUE", "False", "false"),
            *(*range(-2, 7), 100, -100),
            *_PLAIN,
            *_READ_AS_NUMBERS,
        ]
        for key in ATTRIBUTES
    },
    **{key: [None, *_PLAIN, *_DOUBLES] for key in POINTERS},
}


def _event(values: Mapping[str, AttributeValue | float | None]) -> Event:
    attributes: dict[str, AttributeValue] = {}
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    for key, value in values.items():
        if value is None:
            continue
        if not key.startswith("/"):
            assert not isinstance(value, float)
            attributes[key] = value
        elif isinstance(value, float):
            numbers[key] = value
        else:
            texts[key] = str(value)
    return Event(attributes, numbers, texts)


_EVENTS: dict[tuple[str, ...], list[Event]] = {}


def events(keys: tuple[str, ...]) -> list[Event]:
    """Return every event with an interesting value, or none, at each of the keys."""
    if keys not in _EVENTS:
        combinations: Iterator[tuple[AttributeValue | float | None, ...]] = itertools.product(
            *(_VALUES[key] for key in keys)
        )
        _EVENTS[keys] = [_event(dict(zip(keys, row, strict=True))) for row in combinations]
    return _EVENTS[keys]


def has_counterexample(a: Filter, b: Filter, keys: tuple[str, ...]) -> bool:
    """Does some event match `b` and not `a`?"""
    return any(b.matches(event) and not a.matches(event) for event in events(keys))


def _quoted(text: str) -> str:
    return f"'{text}'"


def _sql(random: Random, key: str) -> str:
    """Return an expression about an attribute."""
    text, number = random.choice(TEXTS), random.choice(INTEGERS)
    negated = random.choice(("", "NOT "))
    match random.randrange(9):
        case 0:
            return f"{key} {random.choice(('=', '!='))} {_quoted(text)}"
        case 1:
            return f"{key} {random.choice(('=', '!=', '<', '<=', '>', '>='))} {number}"
        case 2:
            return f"{key} {negated}LIKE {_quoted(random.choice(PATTERNS))}"
        case 3:
            items = random.sample(TEXTS, random.randint(1, 3))
            return f"{key} {negated}IN ({', '.join(map(_quoted, items))})"
        case 4:
            items = [str(item) for item in random.sample(INTEGERS, random.randint(1, 3))]
            return f"{key} {negated}IN ({', '.join(items)})"
        case 5:
            return f"{negated}EXISTS {key}"
        case 6:
            return f"{key} = {random.choice(('TRUE', 'FALSE'))}"
        case 7:
            return f"{number} {random.choice(('<', '>=', '='))} {key}"
        case _:
            return f"{_quoted(text)} = {key}"


def _condition(random: Random, key: str) -> Document:
    """Return a filter about one key."""
    dialects = ["exact", "prefix", "suffix", "range"]
    if not key.startswith("/"):
        dialects += ["sql", "sql"]
    match random.choice(dialects):
        case "range":
            low, high = sorted(random.sample(NUMBERS, 2))
            bounds: Document = {random.choice(("min", "min_exclusive")): low}
            if random.random() < 0.7:
                bounds[random.choice(("max", "max_exclusive"))] = high
            return {"range": {key: bounds}}
        case "sql":
            return {"sql": _sql(random, key)}
        case dialect:
            return {dialect: {key: random.choice(TEXTS)}}


def any_filter(random: Random, keys: tuple[str, ...], depth: int = 2) -> Document:
    """Return a filter of any dialect, nested up to `depth`."""
    shape = random.random()
    if depth == 0 or shape < 0.45:
        return _condition(random, random.choice(keys))
    if shape < 0.6:
        return {"not": any_filter(random, keys, depth - 1)}
    attributes = [key for key in keys if not key.startswith("/")]
    if shape < 0.75 and attributes:
        parts = [
            f"({_sql(random, random.choice(attributes))})" for _ in range(random.randint(2, 3))
        ]
        joined = parts[0]
        for part in parts[1:]:
            joined += f" {random.choice(('AND', 'AND', 'OR', 'OR', 'XOR'))} {part}"
        return {"sql": joined if random.random() < 0.8 else f"NOT ({joined})"}
    parts_ = [any_filter(random, keys, depth - 1) for _ in range(random.randint(2, 3))]
    return {random.choice(("all", "any")): parts_}


def random_pair(random: Random) -> tuple[list[Document], list[Document], tuple[str, ...]]:
    """Return two unrelated filters over the same one or two keys."""
    keys = tuple(random.sample(KEYS, random.randint(1, 2)))
    a = [any_filter(random, keys) for _ in range(random.randint(1, 2))]
    b = [any_filter(random, keys) for _ in range(random.randint(1, 3))]
    return a, b, keys


def derived_pair(random: Random) -> tuple[list[Document], list[Document], tuple[str, ...]]:
    """Return a filter and one that it covers, by the way in which they are made."""
    keys = tuple(random.sample(KEYS, random.randint(1, 2)))
    a = [any_filter(random, keys) for _ in range(random.randint(1, 2))]
    b = [_narrower(random, part, keys) for part in a]
    for _ in range(random.randint(0, 2)):
        b.insert(random.randint(0, len(b)), any_filter(random, keys, depth=1))
    for _ in range(random.randint(0, 2)):
        place = random.randrange(len(b))
        b[place] = _rewritten(random, b[place])
    if random.random() < 0.4:
        a = [{"any": [{"all": a}, any_filter(random, keys, depth=1)]}]
    return a, b, keys


def _narrower(random: Random, part: Document, keys: tuple[str, ...]) -> Document:
    """Return a filter that matches no event beyond those of `part`."""
    ((dialect, body),) = part.items()
    match dialect:
        case "prefix":
            key, text = next(iter(body.items()))
            longer = text + random.choice(TEXTS)
            return {random.choice(("prefix", "exact")): {key: longer}}
        case "suffix":
            key, text = next(iter(body.items()))
            longer = random.choice(TEXTS) + text
            return {random.choice(("suffix", "exact")): {key: longer}}
        case "range":
            key, bounds = next(iter(body.items()))
            low = bounds.get("min", bounds.get("min_exclusive"))
            return {"range": {key: {**bounds, "min_exclusive": low + random.choice((0, 0.1))}}}
        case "all":
            return {"all": [_narrower(random, inner, keys) for inner in body]}
        case "any":
            chosen = random.sample(body, random.randint(1, len(body)))
            return {"any": [_narrower(random, inner, keys) for inner in chosen]}
        case "not":
            return {"not": _wider(random, body, keys)}
        case _:
            return part


def _wider(random: Random, part: Document, keys: tuple[str, ...]) -> Document:
    """Return a filter that matches every event of `part`."""
    if random.random() < 0.5:
        return part
    return {"any": [part, any_filter(random, keys, depth=0)]}


def _rewritten(random: Random, part: Document) -> Document:
    """Return the same filter, said differently."""
    ((dialect, body),) = part.items()
    if dialect in ("exact", "prefix", "suffix"):
        key, text = next(iter(body.items()))
        if not key.startswith("/"):
            pattern = {"exact": text, "prefix": f"{text}%", "suffix": f"%{text}"}[dialect]
            return {"sql": f"{key} LIKE {_quoted(pattern)}"}
    if dialect == "range":
        key = next(iter(body))
        middle = random.choice(NUMBERS)
        return {
            "any": [
                {"all": [part, {"range": {key: {"max": middle}}}]},
                {"all": [part, {"range": {key: {"min_exclusive": middle}}}]},
            ]
        }
    if dialect == "all":
        return {"not": {"any": [{"not": inner} for inner in body]}}
    if dialect == "any":
        return {"not": {"all": [{"not": inner} for inner in reversed(body)]}}
    return {"not": {"not": part}}
