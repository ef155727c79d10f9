"""Filters as decisions: short lists of steps that a compiled loop walks through.

A step tests one condition and names the step to go to when it holds and when it does not;
`ACCEPT` and `REJECT` end the walk. `all`, `any` and `not` become nothing but targets, so a
walk needs no stack. The first `required` steps are the filter's clauses (`conditions.py`),
one after the other: a clause ends with the step that rejects. The index reads from them
what it can look up. An SQL expression that is more than clauses is a step `UNKNOWN`: the
walk ends there, and Python evaluates the filter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.filters.clauses import Conditions
from distributary.filters.condition import Condition, EndsWith, OneOf, StartsWith, Within
from distributary.filters.conditions import conditions, node_conditions
from distributary.filters.dialects import (
    All,
    AnyOf,
    Exact,
    Node,
    Not,
    Prefix,
    Range,
    Sql,
    Suffix,
)
from distributary.filters.filter import Filter
from distributary.filters.interval import EVERY_NUMBER, Interval

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
    "Step",
    "decision",
]

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


@dataclass(frozen=True)
class Step:
    """One test of a decision, with names instead of numbers."""

    op: int
    on_true: int
    on_false: int
    key: str = ""
    text: str = ""
    interval: Interval = EVERY_NUMBER


@dataclass(frozen=True)
class Decision:
    """The steps that decide a filter; without any, it always matches.

    Attributes
    ----------
    steps
        In the order in which they are numbered; the walk begins at the first.
    required
        How many of them, from the first, are the clauses.
    """

    steps: tuple[Step, ...]
    required: int

    @property
    def certain(self) -> bool:
        """Does the walk always end in an answer?"""
        return all(step.op != UNKNOWN for step in self.steps)


def decision(filter_: Filter) -> Decision:
    """Return the steps that decide the filter."""
    needed = conditions(filter_)
    if needed.never:
        return Decision((Step(NEVER, REJECT, REJECT),), required=1)
    builder = _Builder()
    target = ACCEPT
    kept, complete = _within_budget(needed)
    if not complete:
        target = builder.filter(filter_)
    main = len(builder.steps)
    for clause in reversed(kept.clauses):
        target = builder.choice(clause, target, REJECT)
    return Decision(builder.numbered(), required=len(builder.steps) - main)


def _within_budget(needed: Conditions) -> tuple[Conditions, bool]:
    """Return the shortest clauses, as many as a decision has room for, and if they are all."""
    clauses = needed.clauses
    room = STEPS_MAX
    kept: set[int] = set()
    for place in sorted(range(len(clauses)), key=lambda place: _size(clauses[place])):
        room -= _size(clauses[place])
        if room < 0:
            break
        kept.add(place)
    chosen = tuple(clause for place, clause in enumerate(clauses) if place in kept)
    return Conditions(chosen), needed.complete and len(kept) == len(clauses)


def _size(clause: tuple[Condition, ...]) -> int:
    return sum(len(item.texts) if isinstance(item, OneOf) else 1 for item in clause)


class _TooManySteps(Exception):
    """A filter does not fit into a decision."""


class _Builder:
    """Builds steps from the last to the first, since a step names those that follow it.

    Until they are numbered, steps are counted from the end: a target is the place of a step
    in `steps`, or an ending.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def numbered(self) -> tuple[Step, ...]:
        """Return the steps in the order of the walk."""
        last = len(self.steps) - 1

        def turned(target: int) -> int:
            return target if target < 0 else last - target

        return tuple(
            Step(
                step.op,
                turned(step.on_true),
                turned(step.on_false),
                step.key,
                step.text,
                step.interval,
            )
            for step in reversed(self.steps)
        )

    def filter(self, filter_: Filter) -> int:
        """Add the steps of the whole filter, or one that leaves it to Python; return the first."""
        try:
            return self.node(All(filter_.parts), ACCEPT, REJECT)
        except _TooManySteps:
            self.steps = []
            return self.add(UNKNOWN, ACCEPT, REJECT)

    def node(self, node: Node, yes: int, no: int) -> int:
        """Add the steps of `node` before those it leads to; return the first."""
        if len(self.steps) > STEPS_MAX:
            raise _TooManySteps
        match node:
            case Exact(entries):
                for key, text in reversed(entries):
                    yes = self.add(EQUALS, yes, no, key, text)
                return yes
            case Prefix(entries):
                for key, text in reversed(entries):
                    yes = self.add(STARTS, yes, no, key, text)
                return yes
            case Suffix(entries):
                for key, text in reversed(entries):
                    yes = self.add(ENDS, yes, no, key, text)
                return yes
            case Range(entries):
                for key, interval in reversed(entries):
                    yes = self.add(WITHIN, yes, no, key, interval=interval)
                return yes
            case All(parts):
                for part in reversed(parts):
                    yes = self.node(part, yes, no)
                return yes
            case AnyOf(parts):
                for part in reversed(parts):
                    no = self.node(part, yes, no)
                return no
            case Not(part):
                return self.node(part, no, yes)
            case Sql():
                return self.expression(node, yes, no)

    def expression(self, node: Sql, yes: int, no: int) -> int:
        found = node_conditions(node)
        size = sum(_size(clause) for clause in found.clauses)
        if found.never or not found.complete or not 0 < size <= STEPS_MAX // 4:
            return self.add(UNKNOWN, yes, no)
        for clause in reversed(found.clauses):
            yes = self.choice(clause, yes, no)
        return yes

    def choice(self, clause: tuple[Condition, ...], yes: int, no: int) -> int:
        """Add the steps of a clause; return the first."""
        for condition in reversed(clause):
            match condition:
                case OneOf(key, texts):
                    for text in reversed(texts):
                        no = self.add(EQUALS, yes, no, key, text)
                case StartsWith(key, text):
                    no = self.add(STARTS, yes, no, key, text)
                case EndsWith(key, text):
                    no = self.add(ENDS, yes, no, key, text)
                case Within(key, interval):
                    no = self.add(WITHIN, yes, no, key, interval=interval)
        return no

    def add(
        self,
        op: int,
        yes: int,
        no: int,
        key: str = "",
        text: str = "",
        interval: Interval = EVERY_NUMBER,
    ) -> int:
        self.steps.append(Step(op, yes, no, key, text, interval))
        return len(self.steps) - 1
