"""When a single condition of CESQL is true, when it is false, and when it is an error."""

from __future__ import annotations

from typing import NamedTuple

from distributary.content.attributes import attribute_text
from distributary.filters.atoms import Ends, Integers, Like, Member, Starts, Texts, Truth, present
from distributary.filters.evaluation import Errors
from distributary.filters.formula import (
    FALSE,
    TRUE,
    Fact,
    Formula,
    complement,
    conjunction,
    disjunction,
)
from distributary.filters.interval import Interval, Spans, joined, without
from distributary.filters.like_pattern import LikePattern
from distributary.filters.sql_casts import INTEGER_MAX, INTEGER_MIN, integer_of, to_integer
from distributary.filters.sql_tree import Literal, Value

__all__ = [
    "NEVER",
    "Cases",
    "constant",
    "equality_cases",
    "like_cases",
    "member_cases",
    "order_cases",
    "swapped_if",
    "truth_cases",
]

_EVERY_INTEGER: Spans = (Interval(INTEGER_MIN, INTEGER_MAX),)


class Cases(NamedTuple):
    """When a part of an expression is true, when it is false, and when it is either."""

    true: Formula
    false: Formula
    defined: Formula

    @property
    def swapped(self) -> Cases:
        """The cases of its negation, which has no value where this has none."""
        return Cases(self.false, self.true, self.defined)


NEVER = Cases(FALSE, FALSE, FALSE)


def constant(value: bool | None) -> Cases:
    """Return the cases of a value that is the same for every event; None is an error."""
    if value is None:
        return NEVER
    return Cases(TRUE, FALSE, TRUE) if value else Cases(FALSE, TRUE, TRUE)


def swapped_if(negated: bool, cases: Cases) -> Cases:
    """Return the cases, or those of the opposite."""
    return cases.swapped if negated else cases


def truth_cases(name: str) -> Cases:
    """Return the cases of an attribute that is read as a Boolean."""
    true, false = Fact(Truth(name, True)), Fact(Truth(name, False))
    return Cases(true, false, disjunction((true, false)))


def _text(fact: Fact, name: str) -> Cases:
    """Return the cases of a question about the attribute's text."""
    there = Fact(present(name))
    return Cases(fact, conjunction((there, complement(fact))), there)


def equality_cases(name: str, literal: Literal) -> Cases:
    """Return the cases of `name = literal`, where the literal's type decides."""
    match literal.value:
        case bool(value):
            return swapped_if(not value, truth_cases(name))
        case int(value):
            return _integers(name, (Interval(value, value),))
        case str(text):
            return _text(Fact(Texts(name, frozenset((text,)))), name)


def order_cases(name: str, operator: str, bound: Value) -> Cases:
    """Return the cases of `name operator bound`, both of them read as Integers."""
    errors: Errors = []
    number = to_integer(bound, errors)
    if errors:
        return NEVER
    match operator:
        case "<":
            interval = Interval(INTEGER_MIN, number - 1)
        case "<=":
            interval = Interval(INTEGER_MIN, number)
        case ">":
            interval = Interval(number + 1, INTEGER_MAX)
        case _:
            interval = Interval(number, INTEGER_MAX)
    return _integers(name, joined((interval,)))


def _integers(name: str, spans: Spans) -> Cases:
    return Cases(
        Fact(Integers(name, spans)),
        Fact(Integers(name, without(_EVERY_INTEGER, spans))),
        Fact(Integers(name, _EVERY_INTEGER)),
    )


def member_cases(name: str, items: tuple[Literal, ...]) -> Cases:
    """Return the cases of `name IN (items)`, where the attribute's type decides."""
    true = Fact(Member(name, items, True))
    false = Fact(Member(name, items, False))
    defined = disjunction((true, false))
    if all(_only_text(item) for item in items):
        # No Integer and no Boolean can be among them, so this is a set like any other.
        texts = frozenset(attribute_text(item.value) for item in items)
        return Cases(Fact(Texts(name, texts)), false, defined)
    return Cases(true, false, defined)


def _only_text(literal: Literal) -> bool:
    """Is it a String that casts to nothing else?"""
    value = literal.value
    return (
        isinstance(value, str)
        and integer_of(value) is None
        and value.lower() not in ("true", "false")
    )


def like_cases(name: str, text: str) -> Cases:
    """Return the cases of `name LIKE text`."""
    pattern = LikePattern.parse(text)
    if pattern.exact is not None:
        return _text(Fact(Texts(name, frozenset((pattern.exact,)))), name)
    if pattern.is_prefix:
        return _text(Fact(Starts(name, pattern.prefix)), name)
    if pattern.is_suffix:
        return _text(Fact(Ends(name, pattern.suffix)), name)
    return _text(Fact(Like(name, pattern)), name)
