"""Short ways to say what a CESQL expression comes to."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from distributary.filters.evaluation import Evaluation
from distributary.filters.expression import evaluate

Case = tuple[object, ...]


def outcome(result: Evaluation) -> tuple[object, ...]:
    """Return the value and then the kinds of the errors; `True` is not `1` here."""
    kinds = (str(error.kind) for error in result.errors)
    return (type(result.value).__name__, result.value, *sorted(kinds))


def expected(value: object, *kinds: str) -> tuple[object, ...]:
    return (type(value).__name__, value, *sorted(kinds))


def cases(*rows: Case) -> list[object]:
    """Return parameters, one for each (expression, value, error kinds ...) row."""
    return [pytest.param(*row[:2], tuple(row[2:]), id=str(row[0])) for row in rows]


def check(
    text: str, value: object, kinds: tuple[str, ...], event: Mapping[str, object] | None = None
) -> None:
    """Assert what an expression comes to."""
    found = outcome(evaluate(text, event or {}))
    assert found == expected(value, *kinds), f"{text} is {found}"
