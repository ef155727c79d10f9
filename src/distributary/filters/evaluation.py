"""What evaluating a CESQL expression reads, and comes to: a value, always, and the errors met."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from distributary.filters.sql_tree import Value

__all__ = [
    "ALWAYS_THERE",
    "PAYLOAD",
    "Attributes",
    "ErrorKind",
    "Errors",
    "Evaluation",
    "EvaluationError",
    "Evaluator",
]

ALWAYS_THERE = frozenset(("id", "source", "specversion", "type"))
"""What exists in every event: the specification takes events to be valid."""

PAYLOAD = "data"
"""No attribute, though it stands among them in the JSON format of events."""


class ErrorKind(StrEnum):
    """The error types of the specification, by the names of its conformance suite."""

    PARSE = "parse"
    MATH = "math"
    CAST = "cast"
    MISSING_ATTRIBUTE = "missingAttribute"
    MISSING_FUNCTION = "missingFunction"
    FUNCTION_EVALUATION = "functionEvaluation"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class EvaluationError:
    """One error of an evaluation: a plain record, which is returned and never raised."""

    kind: ErrorKind
    message: str


Attributes: TypeAlias = Mapping[str, object]
"""Attributes by name."""

Errors: TypeAlias = list[EvaluationError]
"""The errors met so far; an evaluator adds its own, and never removes any."""

Evaluator: TypeAlias = Callable[[Attributes, Errors], Value]
"""Evaluates a node of a tree on an event."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The value of an expression on an event, and its errors: each once, in the order met."""

    value: Value
    errors: tuple[EvaluationError, ...] = ()

    @property
    def passes(self) -> bool:
        """As a filter: the value is true, and there was no error."""
        return self.value is True and not self.errors
