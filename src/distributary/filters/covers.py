"""Whether one filter covers another: every event that matches the second matches the first.

A covers B when nothing matches B and not A. Both filters become formulas over the same atoms
(`formula`, `atoms`), and a search tries to make the one hold and the other not: facts are
gathered by key, alternatives are tried one after the other, and a line of search ends when
the facts on some key contradict each other. If it is certain that none is left, A covers B.
If one is, or if the search grows too long, the answer is no, which may be a pair missed but
never a pair made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from distributary.arguments import checked
from distributary.filters.filter import Filter
from distributary.filters.filter_formula import filter_formula
from distributary.filters.formula import (
    Complement,
    Conjunction,
    Disjunction,
    Fact,
    Formula,
    complement,
)
from distributary.filters.region import Literals, effort, is_empty

__all__ = ["STEPS_MAX", "covers"]

STEPS_MAX = 20_000
"""How many facts a search looks at before it gives up: some tenths of a second."""


@checked
def covers(a: Filter, b: Filter) -> bool:
    """Return whether every event that `b` matches is matched by `a`.

    Yes is certain. No may be said of a pair that does cover: where CESQL computes with
    attributes or compares them with each other, and in filters whose alternatives multiply.
    """
    if all(part in b.parts for part in a.parts):
        # All parts of a filter must hold. However long a search would take, more of them
        # match less.
        return True
    narrow, wide = filter_formula(b), filter_formula(a)
    # Part by part: an alternative of `b` is often ruled out by one part of `a`, and putting
    # all of them to the search at once would multiply the alternatives first.
    parts = wide.parts if isinstance(wide, Conjunction) else (wide,)
    search = _Search()
    try:
        return not any(search.consistent(complement(part), narrow) for part in parts)
    except _GaveUp:
        return False


class _GaveUp(Exception):
    """The search has taken all the steps it may."""


@dataclass
class _Line:
    """One line of search: what is known by key, and what is still to be brought in.

    Formulas on the agenda must hold and are not looked at yet; of the alternatives of a choice one
    must. Facts are known by key, as tuples: lines that split share them.
    """

    agenda: list[Formula]
    choices: list[tuple[Formula, ...]] = field(default_factory=list)
    known: dict[str, Literals] = field(default_factory=dict)


class _Search:
    """Looks for a way in which formulas hold together, within `STEPS_MAX` steps in all."""

    def __init__(self) -> None:
        self._left = STEPS_MAX

    def consistent(self, *formulas: Formula) -> bool:
        """Can the formulas hold together? No is certain; what cannot be told is yes.

        Raises `_GaveUp` when the steps are used up.
        """
        lines = [_Line(list(formulas))]
        while lines:
            line = lines.pop()
            if not self._settle(line):
                continue
            if not line.choices:
                return True
            lines.extend(_split(line))
        return False

    def _settle(self, line: _Line) -> bool:
        """Bring in all that must hold; return False if it contradicts itself."""
        while True:
            while line.agenda:
                if not self._take(line, line.agenda.pop()):
                    return False
            waiting, line.choices = line.choices, []
            for choice in waiting:
                possible = [part for part in choice if self._may_hold(part, line)]
                if not possible:
                    return False
                if len(possible) == 1:
                    line.agenda.append(possible[0])
                elif not any(self._must_hold(part, line) for part in possible):
                    line.choices.append(tuple(possible))
            if not line.agenda:
                return True

    def _take(self, line: _Line, formula: Formula) -> bool:
        match formula:
            case Fact():
                literals = self._with(line, formula)
                line.known[formula.atom.key] = literals
                return not is_empty(literals)
            case Conjunction(parts):
                line.agenda.extend(parts)
            case Disjunction(parts):
                line.choices.append(parts)
            case Complement(Conjunction(parts)):
                line.choices.append(tuple(complement(part) for part in parts))
            case Complement(Disjunction(parts)):
                line.agenda.extend(complement(part) for part in parts)
        return True

    def _with(self, line: _Line, fact: Fact) -> Literals:
        """Return what is known about the fact's key, with the fact; this counts as work."""
        known = line.known.get(fact.atom.key, ())
        literal = (fact.atom, fact.sign)
        literals = known if literal in known else (*known, literal)
        self._left -= effort(literals)
        if self._left < 0:
            raise _GaveUp
        return literals

    def _may_hold(self, formula: Formula, line: _Line) -> bool:
        """May an alternative hold? A look at each of its facts alone, to save lines."""
        return not any(is_empty(self._with(line, fact)) for fact in _facts(formula))

    def _must_hold(self, formula: Formula, line: _Line) -> bool:
        """Does a fact follow from what is known? Then its alternatives do not matter."""
        if not isinstance(formula, Fact):
            return False
        return is_empty(self._with(line, Fact(formula.atom, not formula.sign)))


def _facts(formula: Formula) -> Iterator[Fact]:
    """Yield facts that hold if the formula does."""
    match formula:
        case Fact():
            yield formula
        case Conjunction(parts):
            yield from (part for part in parts if isinstance(part, Fact))
        case Complement(Disjunction(parts)):
            yield from (Fact(part.atom, not part.sign) for part in parts if isinstance(part, Fact))


def _split(line: _Line) -> Iterator[_Line]:
    """Yield a line for every alternative of the smallest choice."""
    choice = min(line.choices, key=len)
    rest = [other for other in line.choices if other is not choice]
    ruled_out: list[Formula] = []
    for part in choice:
        yield _Line([*ruled_out, part], list(rest), dict(line.known))
        if isinstance(part, Fact):
            # The lines to come need not look at what this one has looked at.
            ruled_out.append(complement(part))
