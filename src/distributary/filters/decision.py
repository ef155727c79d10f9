"""Filters as decisions: short lists of steps that a compiled loop walks through.

A step tests one condition and names the step to go to when it holds and when it does not;
`ACCEPT` and `REJECT` end the walk. "And", "or" and "not" become nothing but targets, so a
walk needs no stack. The first `required` steps are the filter's clauses (`clauses`), one
after the other: a clause ends with the step that rejects. The index reads from them what it
can look up. What only Python can answer is a step `UNKNOWN`: the walk ends there, and Python
evaluates the filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from distributary.filters.atoms import Atom, Ends, Numbers, Starts, Texts
from distributary.filters.clauses import Clause, clause_set
from distributary.filters.filter import Filter
from distributary.filters.filter_formula import filter_formula
from distributary.filters.formula import Complement, Conjunction, Disjunction, Fact, Formula
from distributary.filters.interval import Interval

__all__ = [
    "ACCEPT",
    "ENDS",
    "EQUALS",
    "NEVER",
    "REJECT",
    "STARTS",
    "STEP",
    "STEPS_MAX",
    "UNKNOWN",
    "WITHIN",
    "Decision",
    "DecisionStep",
    "decision",
]

_EVERY_NUMBER = Interval()

EQUALS, STARTS, ENDS, WITHIN, UNKNOWN, NEVER = range(6)
ACCEPT, REJECT = -1, -2

STEP = np.dtype(
    [
        ("low", np.float64),
        ("high", np.float64),
        ("key", np.int32),
        ("text", np.int32),
        ("on_true", np.int16),
        ("on_false", np.int16),
        ("op", np.uint8),
    ],
    align=True,
)
"""One step, as compiled loops read it: `key` and `text` are numbers of text tables. The text
of `ENDS` is stored backwards."""

STEPS_MAX = 4096
"""How many steps clauses may have, and the rest of a decision. Beyond that, clauses are left
out, and Python evaluates the filter."""


class DecisionStep(NamedTuple):
    """One test of a decision, with names instead of numbers."""

    op: int
    on_true: int
    on_false: int
    key: str = ""
    text: str = ""
    interval: Interval = _EVERY_NUMBER


@dataclass(frozen=True)
class Decision:
    """The steps that decide a filter; without any, it always matches.

    The walk begins at the first step; the first `required` of them are the clauses.
    """

    steps: tuple[DecisionStep, ...]
    required: int

    @property
    def certain(self) -> bool:
        """Does the walk always end in an answer?"""
        return all(step.op != UNKNOWN for step in self.steps)

    @property
    def keys(self) -> set[str]:
        """The keys that the walk reads."""
        return {step.key for step in self.steps if step.op <= WITHIN}


def decision(filter_: Filter) -> Decision:
    """Return the steps that decide the filter."""
    needed = clause_set(filter_)
    if needed.never:
        return Decision((DecisionStep(NEVER, REJECT, REJECT),), required=1)
    builder = _Builder()
    target = ACCEPT
    kept = _within_budget(needed.clauses)
    if not needed.complete or len(kept) < len(needed.clauses):
        target = builder.filter(filter_)
    main = len(builder.steps)
    for clause in reversed(kept):
        target = builder.choice(clause, target, REJECT)
    return Decision(builder.numbered(), required=len(builder.steps) - main)


def _within_budget(clauses: tuple[Clause, ...]) -> list[Clause]:
    """Return the shortest clauses, as many as a decision has room for, in their order."""
    room = STEPS_MAX
    kept: set[int] = set()
    for place in sorted(range(len(clauses)), key=lambda place: _size(clauses[place])):
        room -= _size(clauses[place])
        if room < 0:
            break
        kept.add(place)
    return [clause for place, clause in enumerate(clauses) if place in kept]


def _size(clause: Clause) -> int:
    """Return how many steps a clause becomes."""
    steps = 0
    for atom in clause:
        match atom:
            case Texts(_, items) | Numbers(_, items):
                steps += len(items)
            case _:
                steps += 1
    return steps


class _TooManySteps(Exception):
    """A filter does not fit into a decision."""


class _Builder:
    """Builds steps from the last to the first, since a step names those that follow it.

    Until they are numbered, steps are counted from the end: a target is the place of a step
    in `steps`, or an ending.
    """

    def __init__(self) -> None:
        self.steps: list[DecisionStep] = []

    def numbered(self) -> tuple[DecisionStep, ...]:
        """Return the steps in the order of the walk."""
        last = len(self.steps) - 1

        def turned(target: int) -> int:
            return target if target < 0 else last - target

        return tuple(
            step._replace(on_true=turned(step.on_true), on_false=turned(step.on_false))
            for step in reversed(self.steps)
        )

    def filter(self, filter_: Filter) -> int:
        """Add the steps of the whole filter, or one that leaves it to Python; return the first."""
        try:
            return self.formula(filter_formula(filter_), ACCEPT, REJECT)
        except _TooManySteps:
            self.steps = []
            return self.add(UNKNOWN, ACCEPT, REJECT)

    def formula(self, formula: Formula, yes: int, no: int) -> int:
        """Add the steps of a formula before those it leads to; return the first."""
        if len(self.steps) > STEPS_MAX:
            raise _TooManySteps
        match formula:
            case Fact(atom, sign):
                return self.atom(atom, yes, no) if sign else self.atom(atom, no, yes)
            case Conjunction(parts):
                for part in reversed(parts):
                    yes = self.formula(part, yes, no)
                return yes
            case Disjunction(parts):
                for part in reversed(parts):
                    no = self.formula(part, yes, no)
                return no
            case Complement(part):
                return self.formula(part, no, yes)

    def choice(self, clause: Clause, yes: int, no: int) -> int:
        """Add the steps of a clause; return the first."""
        for atom in reversed(clause):
            no = self.atom(atom, yes, no)
        return no

    def atom(self, atom: Atom, yes: int, no: int) -> int:
        """Add the steps of an atom; return the first."""
        match atom:
            case Texts(key, texts):
                for text in sorted(texts, reverse=True):
                    no = self.add(EQUALS, yes, no, key, text)
            case Starts(key, text):
                no = self.add(STARTS, yes, no, key, text)
            case Ends(key, text):
                no = self.add(ENDS, yes, no, key, text)
            case Numbers(key, spans):
                for interval in reversed(spans):
                    no = self.add(WITHIN, yes, no, key, interval=interval)
            case _:
                no = self.add(UNKNOWN, yes, no)
        return no

    def add(
        self,
        op: int,
        yes: int,
        no: int,
        key: str = "",
        text: str = "",
        interval: Interval = _EVERY_NUMBER,
    ) -> int:
        self.steps.append(DecisionStep(op, yes, no, key, text, interval))
        return len(self.steps) - 1
