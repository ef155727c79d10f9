"""Clauses, and how they combine: what must hold for a filter to match.

A clause is a choice of conditions of which at least one must hold. Clauses may say less than
the filter they stand for (of a negation, of most SQL expressions), never more; `complete`
tells whether they say all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from distributary.filters.condition import Clause, Condition, OneOf, Within
from distributary.filters.interval import Interval

__all__ = ["NEVER", "UNKNOWN", "Conditions", "all_of", "any_of", "conjunction"]


@dataclass(frozen=True)
class Conditions:
    """What must hold for a filter to match.

    Attributes
    ----------
    clauses
        Every one of them must hold. Those of a single condition come merged: at most one
        `Within` and at most one `OneOf` for each key.
    complete
        When all clauses hold, so does the filter: nothing is left to evaluate.
    never
        The filter holds for no publication at all; `clauses` are then without meaning.
    """

    clauses: tuple[Clause, ...] = ()
    complete: bool = True
    never: bool = False

    @property
    def required(self) -> tuple[Condition, ...]:
        """The conditions that must hold by themselves: clauses without a choice."""
        return tuple(clause[0] for clause in self.clauses if len(clause) == 1)


NEVER = Conditions(never=True)
UNKNOWN = Conditions(complete=False)
"""Nothing is known that must hold."""


def conjunction(required: Iterable[Condition], *, complete: bool = True) -> Conditions:
    """Return that all of the conditions must hold."""
    return _merged([(condition,) for condition in required], complete)


def all_of(parts: Iterable[Conditions]) -> Conditions:
    """Return what must hold for all of the parts to hold."""
    clauses: list[Clause] = []
    complete = True
    for part in parts:
        if part.never:
            return NEVER
        clauses.extend(part.clauses)
        complete = complete and part.complete
    return _merged(clauses, complete)


def any_of(parts: Iterable[Conditions]) -> Conditions:
    """Return what must hold for at least one of the parts to hold."""
    possible = [part for part in parts if not part.never]
    if not possible:
        return NEVER
    if len(possible) == 1:
        return possible[0]
    free = [part for part in possible if not part.clauses]
    if free:
        # One of the parts can hold with nothing to look up, so nothing must hold.
        return Conditions(complete=any(part.complete for part in free))
    choice = _union(min(part.clauses, key=_expense) for part in possible)
    if all(part.complete and len(part.clauses) == 1 for part in possible):
        return _merged([choice], complete=True)
    return _merged([choice, *_common(possible)], complete=False)


def _merged(clauses: Iterable[Clause], complete: bool) -> Conditions:
    """Return the conjunction of `clauses`, with one condition of a kind for each key."""
    intervals: dict[str, Interval] = {}
    texts: dict[str, frozenset[str]] = {}
    others: dict[Clause, None] = {}
    for clause in clauses:
        match clause:
            case (Within(key, interval),):
                intervals[key] = intervals.get(key, Interval()) & interval
            case (OneOf(key, choice),):
                texts[key] = texts[key].intersection(choice) if key in texts else frozenset(choice)
            case _:
                others[clause] = None
    if any(interval.empty for interval in intervals.values()) or not all(texts.values()):
        return NEVER
    return Conditions(
        (
            *((OneOf(key, tuple(sorted(choice))),) for key, choice in texts.items()),
            *((Within(key, interval),) for key, interval in intervals.items()),
            *others,
        ),
        complete,
    )


def _union(clauses: Iterable[Clause]) -> Clause:
    """Return the choice among all conditions of `clauses`, with one `OneOf` for each key."""
    texts: dict[str, set[str]] = {}
    others: dict[Condition, None] = {}
    for clause in clauses:
        for condition in clause:
            if isinstance(condition, OneOf):
                texts.setdefault(condition.key, set()).update(condition.texts)
            else:
                others[condition] = None
    return (*(OneOf(key, tuple(sorted(choice))) for key, choice in texts.items()), *others)


def _common(parts: list[Conditions]) -> list[Clause]:
    """Return what must hold whichever part holds, for keys that all of them restrict."""
    common: list[Clause] = []
    texts = [
        {item.key: set(item.texts) for item in part.required if isinstance(item, OneOf)}
        for part in parts
    ]
    for key in texts[0]:
        if all(key in choice for choice in texts):
            union: set[str] = set().union(*(choice[key] for choice in texts))
            common.append((OneOf(key, tuple(sorted(union))),))
    intervals = [
        {item.key: item.interval for item in part.required if isinstance(item, Within)}
        for part in parts
    ]
    for key in intervals[0]:
        if all(key in choice for choice in intervals):
            hull = reduce(Interval.hull, (choice[key] for choice in intervals))
            common.append((Within(key, hull),))
    return common


def _expense(clause: Clause) -> tuple[bool, int]:
    """Return how much a clause costs to look up: intervals most, then the longest choice."""
    return (
        any(isinstance(condition, Within) for condition in clause),
        sum(len(item.texts) if isinstance(item, OneOf) else 2 for item in clause),
    )
