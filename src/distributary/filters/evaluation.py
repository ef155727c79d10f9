"""What evaluating a CESQL expression comes to: a value, always, and the errors met."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from distributary.filters.sql_tree import Value

__all__ = ["ErrorKind", "Evaluation", "EvaluationError"]


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


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The value of an expression on an event, and its errors: each once, in the order met."""

    value: Value
    errors: tuple[EvaluationError, ...] = ()

    @property
    def passes(self) -> bool:
        """As a filter: the value is true, and there was no error."""
        return self.value is True and not self.errors
