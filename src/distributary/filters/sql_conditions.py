"""What must hold for an SQL expression to be true without an error.

An expression fails on any error, a missing attribute among them, so every attribute that it
reads in any case must be there. Texts that are compared as texts can be looked up. Integers
cannot: the texts `7`, `+7` and `007` all read as 7, and so does no list of texts.
"""

from __future__ import annotations

from collections.abc import Iterator

from distributary.filters.clauses import NEVER, UNKNOWN, Conditions, all_of, any_of, conjunction
from distributary.filters.condition import Condition, EndsWith, OneOf, StartsWith, present
from distributary.filters.like_pattern import LikePattern
from distributary.filters.program_steps import ALWAYS_THERE, PAYLOAD
from distributary.filters.sql_casts import integer_of
from distributary.filters.sql_tree import (
    Arithmetic,
    Attribute,
    Comparison,
    Exists,
    In,
    Like,
    Literal,
    Logic,
    Negation,
    Not,
    SqlNode,
    Value,
    ValueType,
)

__all__ = ["sql_conditions"]


def sql_conditions(node: SqlNode) -> Conditions:
    """Return what must hold for the expression to pass; its depth is limited."""
    if isinstance(node, Logic):
        return _logic(node)
    if PAYLOAD in _read(node):
        # CESQL does not see the data: whatever reads it is an error.
        return NEVER
    match node:
        case Exists(name):
            return _exists(name)
        case Comparison("=", Attribute(name), Literal(ValueType.STRING, str(text))):
            # The right side is a String, so the attribute is read as one, whatever it is.
            return conjunction([OneOf(name, (text,))])
        case Comparison("=", Literal() as literal, Attribute(name)):
            return _one_of(name, (literal,))
        case In(Attribute(name), items, False) if all(isinstance(i, Literal) for i in items):
            return _one_of(name, tuple(item for item in items if isinstance(item, Literal)))
        case Like(Attribute(name), pattern, False):
            return _like(name, pattern)
        case _:
            return conjunction((present(name) for name in _read(node)), complete=False)


def _logic(node: Logic) -> Conditions:
    """Return what must hold for a chain of `AND`, `OR` and `XOR`, from left to right."""
    found = sql_conditions(node.operands[0])
    for operator, operand in zip(node.operators, node.operands[1:], strict=True):
        match operator:
            case "AND":
                found = all_of([found, sql_conditions(operand)])
            case "OR":
                # An error on the left spoils what the right says, so a choice of the two is
                # needed, but not enough.
                either = any_of([found, sql_conditions(operand)])
                found = Conditions(either.clauses, complete=False, never=either.never)
            case _:
                found = UNKNOWN
    return found


def _exists(name: str) -> Conditions:
    if name == PAYLOAD:
        return NEVER
    # What is always there needs no lookup, not even in an event that lacks it after all.
    return conjunction([] if name in ALWAYS_THERE else [present(name)])


def _one_of(name: str, literals: tuple[Literal, ...]) -> Conditions:
    """Return that the attribute equals one of the literals, cast to the attribute's type."""
    texts: set[str] = set()
    plain = True
    for literal in literals:
        others = _other_texts(literal.value)
        plain = plain and not others and literal.type is ValueType.STRING
        texts.update(others)
        if literal.type is ValueType.STRING:
            texts.add(str(literal.value))
    return conjunction([OneOf(name, tuple(sorted(texts)))], complete=plain)


def _other_texts(value: Value) -> set[str]:
    """Return the texts of Integers and Booleans that a literal may equal when it is cast."""
    match value:
        case bool():
            return {"true", "1"} if value else {"false", "0"}
        case int():
            return {str(value), "true" if value else "false"}
        case str():
            number = integer_of(value)
            lowered = value.lower()
            texts = set() if number is None else {str(number)}
            return texts | ({lowered} if lowered in ("true", "false") else set())


def _like(name: str, text: str) -> Conditions:
    pattern = LikePattern.parse(text)
    if pattern.exact is not None:
        return conjunction([OneOf(name, (pattern.exact,))])
    required: list[Condition] = []
    if pattern.prefix or pattern.is_prefix:
        required.append(StartsWith(name, pattern.prefix))
    if pattern.suffix:
        required.append(EndsWith(name, pattern.suffix))
    return conjunction(required or [present(name)], complete=pattern.is_prefix or pattern.is_suffix)


def _read(node: SqlNode) -> Iterator[str]:
    """Yield the attributes that are read in any case, whatever the event has."""
    match node:
        case Attribute(name):
            yield name
        case Not(operand) | Negation(operand) | Like(operand, _, _) | In(operand, _, _):
            yield from _read(operand)
        case Comparison(_, left, right):
            yield from _read(left)
            yield from _read(right)
        case Arithmetic(_, operands):
            for operand in operands:
                yield from _read(operand)
        case Logic(_, operands):
            yield from _read(operands[0])
        case _:
            return
