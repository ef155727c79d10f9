"""Formulas over atoms: every filter, of whatever dialect, in one form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from distributary.filters.atoms import Atom, Numbers, Texts
from distributary.filters.interval import joined

__all__ = [
    "FALSE",
    "TRUE",
    "Complement",
    "Conjunction",
    "Disjunction",
    "Fact",
    "Formula",
    "complement",
    "conjunction",
    "disjunction",
]


# Formulas are compared as objects and never as values: parts are shared, and looking at
# what two formulas say would visit a shared part once for every way that leads to it.
@dataclass(frozen=True, eq=False)
class Fact:
    """An atom holds or, without `sign`, does not."""

    atom: Atom
    sign: bool = True
    depth: int = 1


@dataclass(frozen=True, eq=False)
class Conjunction:
    """All parts hold."""

    parts: tuple[Formula, ...]
    depth: int


@dataclass(frozen=True, eq=False)
class Disjunction:
    """At least one part holds."""

    parts: tuple[Formula, ...]
    depth: int


@dataclass(frozen=True, eq=False)
class Complement:
    """The part does not hold."""

    part: Conjunction | Disjunction
    depth: int


Formula: TypeAlias = Fact | Conjunction | Disjunction | Complement

TRUE = Conjunction((), 0)
FALSE = Disjunction((), 0)


def conjunction(parts: Iterable[Formula]) -> Formula:
    """Return that all parts hold."""
    found: list[Formula] = []
    for part in parts:
        if isinstance(part, Conjunction):
            found.extend(part.parts)
        elif isinstance(part, Disjunction) and not part.parts:
            return FALSE
        else:
            found.append(part)
    if len(found) == 1:
        return found[0]
    return Conjunction(tuple(found), _depth(found)) if found else TRUE


def disjunction(parts: Iterable[Formula]) -> Formula:
    """Return that some part holds; sets and ranges of one key become one."""
    found: list[Formula] = []
    texts: dict[str, list[Texts]] = {}
    numbers: dict[str, list[Numbers]] = {}
    for part in parts:
        match part:
            case Conjunction(()):
                return TRUE
            case Disjunction(inner):
                choices: tuple[Formula, ...] = inner
            case _:
                choices = (part,)
        for choice in choices:
            match choice:
                case Fact(Texts(key) as atom, True):
                    texts.setdefault(key, []).append(atom)
                case Fact(Numbers(key) as atom, True):
                    numbers.setdefault(key, []).append(atom)
                case _:
                    found.append(choice)
    for key, sets in texts.items():
        found.append(Fact(Texts(key, frozenset().union(*(atom.texts for atom in sets)))))
    for key, ranges in numbers.items():
        spans = joined(span for atom in ranges for span in atom.spans)
        found.append(Fact(Numbers(key, spans)))
    if len(found) == 1:
        return found[0]
    return Disjunction(tuple(found), _depth(found)) if found else FALSE


def complement(formula: Formula) -> Formula:
    """Return that the formula does not hold."""
    match formula:
        case Fact(atom, sign):
            return Fact(atom, not sign)
        case Complement(part):
            return part
        case Conjunction(()):
            return FALSE
        case Disjunction(()):
            return TRUE
        case _:
            return Complement(formula, formula.depth + 1)


def _depth(parts: list[Formula]) -> int:
    return 1 + max(part.depth for part in parts)
