"""What compiled expressions are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from distributary.filters.evaluation import EvaluationError
from distributary.filters.sql_tree import Value

__all__ = ["ALWAYS_THERE", "PAYLOAD", "Errors", "Event", "Step"]

Event: TypeAlias = Mapping[str, object]
"""Attributes by name."""

Errors: TypeAlias = list[EvaluationError]
"""The errors met so far; a step adds its own, and never removes any."""

Step: TypeAlias = Callable[[Event, Errors], Value]
"""Evaluates a node of a tree on an event."""

ALWAYS_THERE = frozenset(("id", "source", "specversion", "type"))
"""What exists in every event: the specification takes events to be valid."""

PAYLOAD = "data"
"""No attribute, though it stands among them in the JSON format of events."""
