"""Clauses: what must hold for a filter to match, in a form that can be looked up.

A clause is a choice of atoms of which at least one must hold. Clauses may say less than the
filter they stand for (of a negation, of an expression that computes), never more; `complete`
tells whether they say all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from distributary.filters.atoms import (
    Atom,
    Ends,
    Integers,
    Like,
    Member,
    Numbers,
    Outcome,
    Starts,
    Texts,
    Truth,
    present,
)
from distributary.filters.filter import Filter
from distributary.filters.filter_formula import filter_formula
from distributary.filters.formula import Complement, Conjunction, Fact, Formula
from distributary.filters.interval import EVERY_NUMBER, Interval, Spans, common, joined
from distributary.filters.like_pattern import LikePattern
from distributary.filters.sql_casts import integer_of
from distributary.filters.sql_formula import always_read
from distributary.filters.sql_tree import Literal

__all__ = ["NEVER", "Clause", "ClauseSet", "Condition", "clause_set"]

Condition: TypeAlias = Texts | Starts | Ends | Numbers
"""An atom that compiled loops can test."""
Clause: TypeAlias = tuple[Condition, ...]


@dataclass(frozen=True)
class ClauseSet:
    """What must hold for a filter to match.

    Attributes
    ----------
    clauses
        Every one of them must hold. Those of a single condition come merged: at most one
        `Numbers` and at most one `Texts` for each key.
    complete
        When all clauses hold, so does the filter: nothing is left to evaluate.
    never
        The filter holds for no publication at all; `clauses` are then without meaning.
    """

    clauses: tuple[Clause, ...] = ()
    complete: bool = True
    never: bool = False


NEVER = ClauseSet(never=True)
_UNKNOWN = ClauseSet(complete=False)


def clause_set(filter_: Filter) -> ClauseSet:
    """Return what must hold for the filter to match."""
    return _clause_set(filter_formula(filter_), True, {})


_Seen: TypeAlias = dict[tuple[Formula, bool], ClauseSet]


def _clause_set(formula: Formula, sign: bool, seen: _Seen) -> ClauseSet:
    """Return what must hold for the formula to hold or, without `sign`, not to.

    Formulas share parts, and `seen` keeps every part from being looked at twice. The depth
    of a formula is limited.
    """
    if isinstance(formula, Complement):
        return _clause_set(formula.part, not sign, seen)
    found = seen.get((formula, sign))
    if found is None:
        if isinstance(formula, Fact):
            # What must not hold does so wherever the key is missing: nothing to look up.
            found = _of_atom(formula.atom) if formula.sign is sign else _UNKNOWN
        else:
            combined = _all_of if isinstance(formula, Conjunction) is sign else _any_of
            found = combined(_clause_set(part, sign, seen) for part in formula.parts)
        seen[formula, sign] = found
    return found


def _of_atom(atom: Atom) -> ClauseSet:
    """Return what must hold for the atom to hold.

    Integers cannot be looked up: the texts `7`, `+7` and `007` all read as 7, and so does no
    list of texts. But there must be something that reads as one.
    """
    match atom:
        case Texts() | Starts() | Ends() | Numbers():
            return ClauseSet(((atom,),))
        case Like(key, pattern):
            return ClauseSet(tuple((end,) for end in _ends_of(key, pattern)), complete=False)
        case Member(key, items, True):
            texts = frozenset(text for item in items for text in _texts_of(item))
            return ClauseSet(((Texts(key, texts),),), complete=False)
        case Integers(key) | Truth(key) | Member(key):
            return ClauseSet(((present(key),),), complete=False)
        case Outcome(key, node) if key in always_read(node):
            return ClauseSet(((present(key),),), complete=False)
        case Outcome():
            return _UNKNOWN


def _ends_of(key: str, pattern: LikePattern) -> list[Condition]:
    required: list[Condition] = []
    if pattern.prefix or not pattern.suffix:
        required.append(Starts(key, pattern.prefix))
    if pattern.suffix:
        required.append(Ends(key, pattern.suffix))
    return required


def _texts_of(literal: Literal) -> set[str]:
    """Return the texts of attributes that a literal may equal, cast to the attribute's type."""
    match literal.value:
        case bool(truth):
            return {"true", "1"} if truth else {"false", "0"}
        case int(number):
            return {str(number), "true" if number else "false"}
        case str(text):
            texts = {text}
            integer = integer_of(text)
            if integer is not None:
                texts.add(str(integer))
            if text.lower() in ("true", "false"):
                texts.add(text.lower())
            return texts


def _all_of(parts: Iterable[ClauseSet]) -> ClauseSet:
    """Return what must hold for all of the parts to hold."""
    clauses: list[Clause] = []
    complete = True
    for part in parts:
        if part.never:
            return NEVER
        clauses.extend(part.clauses)
        complete = complete and part.complete
    return _merged(clauses, complete)


def _any_of(parts: Iterable[ClauseSet]) -> ClauseSet:
    """Return what must hold for at least one of the parts to hold."""
    possible = [part for part in parts if not part.never]
    if not possible:
        return NEVER
    if len(possible) == 1:
        return possible[0]
    free = [part for part in possible if not part.clauses]
    if free:
        # One of the parts can hold with nothing to look up, so nothing must hold.
        return ClauseSet(complete=any(part.complete for part in free))
    choice = _union(min(part.clauses, key=_expense) for part in possible)
    if all(part.complete and len(part.clauses) == 1 for part in possible):
        return _merged([choice], complete=True)
    return _merged([choice, *_common(possible)], complete=False)


def _merged(clauses: Iterable[Clause], complete: bool) -> ClauseSet:
    """Return the conjunction of `clauses`, with one condition of a kind for each key."""
    numbers: dict[str, Spans] = {}
    texts: dict[str, frozenset[str]] = {}
    others: dict[Clause, None] = {}
    for clause in clauses:
        match clause:
            case (Numbers(key, spans),):
                numbers[key] = common(numbers.get(key, EVERY_NUMBER), spans)
            case (Texts(key, choice),):
                texts[key] = texts[key] & choice if key in texts else choice
            case _:
                others[clause] = None
    if not (all(numbers.values()) and all(texts.values())):
        return NEVER
    return ClauseSet(
        (
            *((Texts(key, choice),) for key, choice in texts.items()),
            *((Numbers(key, spans),) for key, spans in numbers.items()),
            *others,
        ),
        complete,
    )


def _union(clauses: Iterable[Clause]) -> Clause:
    """Return the choice among all conditions of `clauses`, with one of a kind for each key."""
    texts: dict[str, frozenset[str]] = {}
    numbers: dict[str, Spans] = {}
    others: dict[Condition, None] = {}
    for clause in clauses:
        for condition in clause:
            match condition:
                case Texts(key, choice):
                    texts[key] = texts.get(key, frozenset()) | choice
                case Numbers(key, spans):
                    numbers[key] = joined((*numbers.get(key, ()), *spans))
                case _:
                    others[condition] = None
    return (
        *(Texts(key, choice) for key, choice in texts.items()),
        *(Numbers(key, spans) for key, spans in numbers.items()),
        *others,
    )


def _common(parts: list[ClauseSet]) -> list[Clause]:
    """Return what must hold whichever part holds, for keys that all of them restrict."""
    alone = [[clause[0] for clause in part.clauses if len(clause) == 1] for part in parts]
    texts = [{c.key: c.texts for c in part if isinstance(c, Texts)} for part in alone]
    numbers = [{c.key: c.spans for c in part if isinstance(c, Numbers)} for part in alone]
    found: list[Clause] = [
        (Texts(key, frozenset().union(*(choice[key] for choice in texts))),)
        for key in texts[0]
        if all(key in choice for choice in texts)
    ]
    for key in numbers[0]:
        if all(key in spans for spans in numbers):
            every = (interval for spans in numbers for interval in spans[key])
            found.append((Numbers(key, (reduce(Interval.hull, every),)),))
    return found


def _expense(clause: Clause) -> tuple[bool, int]:
    """Return how much a clause costs to look up: intervals most, then the longest choice."""
    return (
        any(isinstance(condition, Numbers) for condition in clause),
        sum(len(item.texts) if isinstance(item, Texts) else 2 for item in clause),
    )
