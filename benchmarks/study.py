"""What a benchmark is: a study with a small and a large size, and what it finds.

A study returns tables, claims and a hash of its results. The hash covers what the planners
found and nothing that a clock said, so that nothing gets faster by computing something
else unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "Chart",
    "Claim",
    "Column",
    "Findings",
    "Line",
    "Progress",
    "Relation",
    "Size",
    "Study",
    "Table",
    "Value",
    "mean",
    "result_hash",
]

Size = Literal["small", "large"]
Relation = Literal["<=", "<", ">=", "=="]
Value = str | float | int | None
Progress = Callable[[str], None]
"""Told what a study does next, in a few words."""

# Results are hashed to this many digits: sums in another order differ in the last few.
_HASHED_DIGITS = 9


@dataclass(frozen=True)
class Column:
    """The heading of a column, with its unit, and the decimals its numbers are shown with."""

    name: str
    decimals: int = 0


@dataclass(frozen=True)
class Line:
    """One line of a chart; dashed to set apart a second group of lines."""

    name: str
    points: tuple[tuple[float, float], ...]
    colour: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """A chart of lines, drawn into a file of its own."""

    name: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    x_doubling: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of results that measure either speed or quality, never both.

    Attributes
    ----------
    title
        What the numbers are.
    measures
        Under which heading of the report it stands.
    columns, rows
        Its headings and cells; None is what nobody knows.
    notes
        What the reader should know about these numbers.
    chart
        The same, to look at.
    """

    title: str
    measures: Literal["speed", "quality"]
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: str = ""
    chart: Chart | None = None

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows)


@dataclass(frozen=True)
class Claim:
    """Something a study sets out to show, as data: it can fail."""

    name: str
    measured: float
    relation: Relation
    limit: float
    unit: str = ""

    @property
    def holds(self) -> bool:
        """Does the measured value keep to the limit?"""
        return {
            "<=": self.measured <= self.limit,
            "<": self.measured < self.limit,
            ">=": self.measured >= self.limit,
            "==": self.measured == self.limit,
        }[self.relation]


@dataclass(frozen=True)
class Findings:
    """What a study found.

    Attributes
    ----------
    tables
        To be read.
    claims
        To be checked.
    result_hash
        Of everything that depends on the seeds alone.
    gaps
        Mean gap to the best known bound by family of problems, in percent, which the
        history keeps for every version.
    """

    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]
    result_hash: str
    gaps: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """One benchmark.

    Attributes
    ----------
    name
        What the command line calls it.
    about
        What is measured, on which problems, for the report.
    minutes
        About how long the large size takes on two cores.
    run
        Runs it at a size.
    """

    name: str
    about: str
    minutes: float
    run: Callable[[Size, Progress], Findings]


def result_hash(results: object) -> str:
    """Return a short hash of nested lists of names and numbers."""
    text = json.dumps(_rounded(results), separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _rounded(results: object) -> object:
    if isinstance(results, float):
        return f"{results:.{_HASHED_DIGITS}g}"
    if isinstance(results, list | tuple):
        return [_rounded(item) for item in results]
    assert results is None or isinstance(results, str | int)
    return results


def mean(values: Sequence[float]) -> float:
    """Return the mean as a plain number."""
    return float(sum(values) / len(values))
