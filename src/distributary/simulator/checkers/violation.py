"""Violations: what a run got wrong, and who notices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

__all__ = ["NAMED_MAX", "Checker", "Violation"]

NAMED_MAX = 10
"""How many violations of a rule most checkers name: the first ones tell enough."""

_NS_PER_SECOND = 1e9


@dataclass(frozen=True)
class Violation:
    """Something that must not happen, and did."""

    checker: str
    at_ns: int
    what: str

    def document(self) -> dict[str, object]:
        """Return the violation as plain data for a report."""
        return {
            "checker": self.checker,
            "at_s": round(self.at_ns / _NS_PER_SECOND, 6),
            "what": self.what,
        }


class Checker:
    """Watches a run from outside.

    Attributes
    ----------
    name
        What violations of its rule are filed under.
    names_all
        Whether it names all violations, however many there are.
    """

    name: ClassVar[str]
    names_all: ClassVar[bool] = True

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def finish(self, now_ns: int) -> None:
        """Look at what only the end of a run shows; most is seen when it happens."""

    def complain(self, at_ns: int, what: str) -> None:
        """Take note of a violation."""
        if self.names_all or len(self.violations) < NAMED_MAX:
            self.violations.append(Violation(self.name, at_ns, what))
