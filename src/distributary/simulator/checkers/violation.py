"""Violations: what a run got wrong."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Violation"]

_NS_PER_SECOND = 1e9


@dataclass(frozen=True)
class Violation:
    """Something that must not happen, and did.

    Attributes
    ----------
    checker
        Whose rule was broken.
    at_ns
        When it was noticed.
    what
        One sentence.
    """

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
