"""Variants of a valid document that each have one fault."""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple

__all__ = ["Case", "Document", "Variants", "named"]

Document = dict[str, Any]


class Case(NamedTuple):
    """A faulty file: the kind of fault, where a message places it, and what it holds."""

    kind: str
    place: str
    text: str | bytes

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return self.text if isinstance(self.text, bytes) else self.text.encode()


def named(case: Case) -> str:
    return f"{case.kind}: {case.place}"


class Variants:
    """The variants of one valid document."""

    def __init__(self, valid: Document) -> None:
        self.valid = valid

    def with_value(self, kind: str, place: str, value: Any, *path: str | int) -> Case:
        """Return the case in which the field at `path` has another value."""
        document = copy.deepcopy(self.valid)
        _at(document, path[:-1])[path[-1]] = value
        return Case(kind, place, json.dumps(document))

    def without(self, place: str, *path: str | int) -> Case:
        """Return the case in which the field at `path` is missing."""
        document = copy.deepcopy(self.valid)
        del _at(document, path[:-1])[path[-1]]
        return Case("missing key", place, json.dumps(document))

    def with_more(self, kind: str, place: str, entry: Any, *path: str | int) -> Case:
        """Return the case in which the list at `path` has one more entry."""
        document = copy.deepcopy(self.valid)
        _at(document, path).append(entry)
        return Case(kind, place, json.dumps(document))

    def with_literal(self, kind: str, place: str, literal: str, *path: str | int) -> Case:
        """Return the case in which the field at `path` is something json.dumps cannot write."""
        case = self.with_value(kind, place, "LITERAL", *path)
        return Case(kind, place, str(case.text).replace('"LITERAL"', literal))


def _at(document: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        document = document[step]
    return document
