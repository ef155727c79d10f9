"""Filters, evaluated the slow and obvious way: straight from the JSON they are written in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from distributary.content.publication import Publication
from distributary.filters.atoms import Ends, Numbers, Starts, Texts
from distributary.filters.clauses import Condition
from distributary.filters.expression import evaluate


def matches(filters: list[dict[str, Any]], publication: Publication) -> bool:
    """Do all filters of an array hold?"""
    return all(_holds(item, publication) for item in filters)


def matching(
    subscriptions: Mapping[str, list[dict[str, Any]]], publication: Publication
) -> list[str]:
    """Return the ids of all subscriptions whose filters hold, sorted."""
    return sorted(name for name, filters in subscriptions.items() if matches(filters, publication))


def condition_holds(condition: Condition, publication: Publication) -> bool:
    """Does a single condition hold?"""
    match condition:
        case Texts(key, texts):
            return _text(key, publication) in texts
        case Starts(key, text):
            return (_text(key, publication) or "").startswith(text) and _text(
                key, publication
            ) is not None
        case Ends(key, text):
            return (_text(key, publication) or "").endswith(text) and _text(
                key, publication
            ) is not None
        case Numbers(key, spans):
            number = _number(key, publication)
            return number is not None and any(s.low <= number <= s.high for s in spans)


def _holds(item: dict[str, Any], publication: Publication) -> bool:
    ((dialect, body),) = item.items()
    if dialect == "all":
        return all(_holds(part, publication) for part in body)
    if dialect == "any":
        return any(_holds(part, publication) for part in body)
    if dialect == "not":
        return not _holds(body, publication)
    if dialect == "sql":
        result = evaluate(body, publication.attributes)
        return result.value is True and not result.errors
    if dialect == "range":
        return all(_within(bounds, _number(key, publication)) for key, bounds in body.items())
    for key, wanted in body.items():
        text = _text(key, publication)
        if text is None:
            return False
        if dialect == "exact" and text != wanted:
            return False
        if dialect == "prefix" and text[: len(wanted)] != wanted:
            return False
        if dialect == "suffix" and wanted != text[len(text) - len(wanted) :]:
            return False
    return True


def _text(key: str, publication: Publication) -> str | None:
    if key.startswith("/"):
        return publication.texts.get(key)
    value = publication.attributes.get(key)
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _number(key: str, publication: Publication) -> float | None:
    if key.startswith("/"):
        return publication.numbers.get(key)
    text = _text(key, publication)
    try:
        value = None if text is None or text != text.strip() else json.loads(text)
    except json.JSONDecodeError:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value) if abs(value) < 10**400 else math.inf
    return number if math.isfinite(number) else None


def _within(bounds: dict[str, float], number: float | None) -> bool:
    return number is not None and all(
        {
            "min": number >= bound,
            "max": number <= bound,
            "min_exclusive": number > bound,
            "max_exclusive": number < bound,
        }[name]
        for name, bound in bounds.items()
    )
