"""Regions: the values of one key for which some atoms hold and others do not.

All that is asked of a region is whether it is empty. "Empty" is proved: kinds of value are
gone through one by one, and each is either a finite set that is tried out, or a set of texts
or numbers of which enough is known. Where nothing is proved the answer is "not empty".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from distributary.filters.atoms import (
    Atom,
    Ends,
    Found,
    Integers,
    Kind,
    Like,
    Member,
    Numbers,
    Outcome,
    Starts,
    Texts,
    is_pointer,
)
from distributary.filters.interval import (
    EVERY_NUMBER,
    Interval,
    Spans,
    common,
    whole_numbers,
    without,
)
from distributary.filters.sql_casts import INTEGER_MAX, INTEGER_MIN
from distributary.filters.text_language import (
    COMPARED_MAX,
    includes,
    longest,
    open_tokens,
    overlaps,
    pattern_tokens,
)

__all__ = [
    "Literals",
    "effort",
    "fits",
    "is_asserted",
    "is_empty",
    "kinds_of",
    "numbers_left",
    "values_left",
]

Literals: TypeAlias = tuple[tuple[Atom, bool], ...]
"""Atoms on one key, and whether each holds."""

_ATTRIBUTE_KINDS = (Kind.MISSING, Kind.STRING, Kind.INTEGER, Kind.BOOLEAN)
_POINTER_KINDS = (Kind.MISSING, Kind.STRING, Kind.NUMBER)

# Larger Integers are no attributes. Where they come up all the same, CESQL sees a String,
# and every atom answers as for their text.
_INTEGERS: Spans = (Interval(INTEGER_MIN, INTEGER_MAX),)
_TRIED_MAX = 64

# How looking at patterns and values compares with looking at any other fact.
_PATTERN_EFFORT = 16
_COMPARISONS_PER_FACT = 16
_VALUES_PER_FACT = 16

# How a text can begin and end that reads as a number, or as an Integer of CESQL, and the
# characters that it may have.
_NUMBER = (
    re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?)?"),
    re.compile(r"(?:[-+0-9.eE]*[0-9])?"),
)
_INTEGER = (re.compile(r"[+-]?[0-9]*"), re.compile(r"(?:[+-]?[0-9]+)?"))
_NUMBER_CHARACTERS = frozenset("0123456789+-.eE")


class _TextEnds(NamedTuple):
    """What all texts of a region start with, end with, and have among their characters."""

    prefix: str
    suffix: str
    characters: frozenset[str]

    def fit(self, start: re.Pattern[str], end: re.Pattern[str]) -> bool:
        """Can a number be written so that starts and ends like this?"""
        return (
            self.characters <= _NUMBER_CHARACTERS
            and start.fullmatch(self.prefix) is not None
            and end.fullmatch(self.suffix) is not None
        )


def is_empty(literals: Literals) -> bool:
    """Is there no value for which every atom holds that should, and no other? Yes is certain."""
    if _contradict(literals):
        return True
    key = literals[0][0].key
    if not key:
        return False
    return all(_is_empty(_tried(kind, literals), literals) for kind in kinds_of(key))


def effort(literals: Literals) -> int:
    """Return about how much work it is to look at a region, in facts looked at.

    Values that can be listed are tried against all atoms, and patterns that must hold are
    compared with those that must not.
    """
    listed = 0
    lengths = {True: 0, False: 0}
    counts = {True: 0, False: 0}
    for atom, sign in literals:
        match atom:
            case Texts(_, texts):
                listed += len(texts)
            case Member(_, items):
                listed += len(items)
            case Numbers(_, spans) | Integers(_, spans):
                listed += len(spans)
            case Like(_, pattern):
                counts[sign] += 1
                lengths[sign] += sum(segment.length + 1 for segment in pattern.segments)
    compared = min(lengths[True] * lengths[False], COMPARED_MAX * counts[True] * counts[False])
    return (
        len(literals)
        + _PATTERN_EFFORT * (counts[True] + counts[False])
        + compared // _COMPARISONS_PER_FACT
        + listed * len(literals) // _VALUES_PER_FACT
    )


def kinds_of(key: str) -> tuple[Kind, ...]:
    """Return the kinds of value that a key can have."""
    return _POINTER_KINDS if is_pointer(key) else _ATTRIBUTE_KINDS


def values_left(kind: Kind, literals: Literals) -> tuple[Found, ...] | None:
    """Return the values of a kind that are left, or None when they are too many to list."""
    tried = _tried(kind, literals)
    return None if tried is None else tuple(value for value in tried if fits(value, literals))


def _contradict(literals: Literals) -> bool:
    """Does one literal say the opposite of another, in so many words?"""
    signs: dict[Atom, bool] = {}
    for atom, sign in literals:
        if signs.setdefault(atom, sign) is not sign:
            return True
    return any(
        isinstance(atom, Outcome)
        and signs.get(Outcome(atom.key, atom.node, atom.functions, not atom.expected)) is True
        for atom, sign in signs.items()
        if sign
    )


def _is_empty(values: Iterable[Found] | None, literals: Literals) -> bool:
    return values is not None and not any(fits(value, literals) for value in values)


def fits(value: Found, literals: Literals) -> bool:
    """Does every atom hold for a value that should, and no other?"""
    return all(atom.holds(value) is sign for atom, sign in literals)


def _tried(kind: Kind, literals: Literals) -> Sequence[Found] | None:
    """Return values among which all of a kind are that are left, or None: too many to try."""
    if kind is Kind.MISSING:
        return (None,)
    if kind is Kind.BOOLEAN:
        return (False, True)
    if kind is Kind.NUMBER:
        textual = any(sign and not isinstance(atom, Numbers) for atom, sign in literals)
        return None if not textual and _left(EVERY_NUMBER, literals, Numbers) else ()
    supports = [found for atom, sign in literals if (found := atom.support(kind, sign)) is not None]
    if supports:
        return min(supports, key=len)
    ends = _text_ends(literals)
    if ends is None or _is_excluded(ends, literals):
        return ()
    return _integers(ends, literals) if kind is Kind.INTEGER else _strings(ends, literals)


def is_asserted(literals: Literals, kind: type[Numbers] | type[Integers]) -> bool:
    """Must an atom of that kind hold?"""
    return any(sign and isinstance(atom, kind) for atom, sign in literals)


def numbers_left(literals: Literals) -> Spans:
    """Return the numbers that a value can be, or read as, when it is one at all.

    Ranges of Integers that must not hold do not count: what is no Integer is not in them.
    """
    spans = _left(EVERY_NUMBER, literals, Numbers)
    asserted = tuple(literal for literal in literals if literal[1])
    return _left(spans, asserted, Integers)


def _left(spans: Spans, literals: Literals, *kinds: type[Numbers] | type[Integers]) -> Spans:
    """Return what literals of some kinds leave of a set of numbers."""
    for atom, sign in literals:
        if isinstance(atom, kinds) and isinstance(atom, Numbers | Integers):
            spans = common(spans, atom.spans) if sign else without(spans, atom.spans)
    return spans


def _integers(ends: _TextEnds, literals: Literals) -> Sequence[Found] | None:
    """Return the Integers in the ranges, when they are few or cannot be written so."""
    if not ends.fit(*_INTEGER):
        return ()
    return whole_numbers(_left(_INTEGERS, literals, Numbers, Integers), count_max=_TRIED_MAX)


def _strings(ends: _TextEnds, literals: Literals) -> Sequence[Found] | None:
    """Return the Strings that are left when their beginning and end are known, if few.

    A text that is to read as a number, and one that is to read as an Integer, can be written
    in ways that the other does not take ("5.0", "+5"). Ranges of one kind therefore do not
    limit those of the other, unless a text is to be both.
    """
    numeric, integral = is_asserted(literals, Numbers), is_asserted(literals, Integers)
    if is_pointer(literals[0][0].key):
        return () if numeric else None
    if (numeric and not ends.fit(*_NUMBER)) or (integral and not ends.fit(*_INTEGER)):
        return ()
    if numeric and integral:
        numbers = whole_numbers(_left(_INTEGERS, literals, Numbers, Integers), count_max=_TRIED_MAX)
        return None if numbers is None else (*map(str, numbers), "-0")
    if numeric:
        return None if _left(EVERY_NUMBER, literals, Numbers) else ()
    if integral:
        return whole_numbers(_left(_INTEGERS, literals, Integers), count_max=0)
    return None


def _text_ends(literals: Literals) -> _TextEnds | None:
    """Return what must be there, with the longest prefix and suffix; None if two contradict."""
    prefix = longest(_prefixes(literals))
    suffix = longest(_suffixes(literals), at_end=True)
    if prefix is None or suffix is None:
        return None
    patterns = (atom.pattern for atom, sign in literals if sign and isinstance(atom, Like))
    runs = (run for pattern in patterns for part in pattern.segments for _, run in part.runs)
    return _TextEnds(prefix, suffix, frozenset().union(*runs))


def _prefixes(literals: Literals) -> Iterator[str]:
    for atom, sign in literals:
        if sign and isinstance(atom, Starts):
            yield atom.text
        elif sign and isinstance(atom, Like):
            yield atom.pattern.prefix


def _suffixes(literals: Literals) -> Iterator[str]:
    for atom, sign in literals:
        if sign and isinstance(atom, Ends):
            yield atom.text
        elif sign and isinstance(atom, Like):
            yield atom.pattern.suffix


def _is_excluded(ends: _TextEnds, literals: Literals) -> bool:
    """Does one atom that must not hold take in every text with that beginning and end?"""
    for atom, sign in literals:
        if sign:
            continue
        if isinstance(atom, Starts) and ends.prefix.startswith(atom.text):
            return True
        if isinstance(atom, Ends) and ends.suffix.endswith(atom.text):
            return True
        if isinstance(atom, Like) and _is_within(ends, atom, literals):
            return True
    return False


def _is_within(ends: _TextEnds, wide: Like, literals: Literals) -> bool:
    """Do all texts of the region match the pattern?"""
    tokens = pattern_tokens(wide.pattern)
    for atom, sign in literals:
        if sign and isinstance(atom, Like) and includes(tokens, pattern_tokens(atom.pattern)):
            return True
    if not includes(tokens, open_tokens(ends.prefix, ends.suffix)):
        return False
    shorter = overlaps(ends.prefix, ends.suffix)
    return shorter is not None and all(wide.pattern.matches(text) for text in shorter)
