"""Compiled comparisons: `= != < <= > >=`, and `IN`."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable

from distributary.filters.evaluation import PAYLOAD, Attributes, Errors, Evaluator
from distributary.filters.sql_casts import CASTS, to_integer
from distributary.filters.sql_tree import Attribute, Literal, SqlNode, Value, ValueType

__all__ = ["comparison_evaluator", "member_evaluator"]

_ORDERS: dict[str, Callable[[int, int], bool]] = {
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}


def comparison_evaluator(
    operator: str, left_node: SqlNode, right_node: SqlNode, left: Evaluator, right: Evaluator
) -> Evaluator:
    """Return the evaluator for `left operator right`."""
    if operator in _ORDERS:
        return _order_evaluator(_ORDERS[operator], left, right)
    negated = operator == "!="
    match left_node, right_node:
        case Attribute(name), Literal(ValueType.STRING, text) if name != PAYLOAD:
            return _attribute_is_evaluator(
                name, text, negated, _equality_evaluator(negated, left, right)
            )
    return _equality_evaluator(negated, left, right)


def _equality_evaluator(negated: bool, left: Evaluator, right: Evaluator) -> Evaluator:
    def equality(event: Attributes, errors: Errors) -> Value:
        before = len(errors)
        left_value = left(event, errors)
        right_value = right(event, errors)
        if len(errors) != before:
            return False
        if type(left_value) is not type(right_value):
            # The right operand says which equality is meant.
            left_value = CASTS[ValueType.of(right_value)](left_value, errors)
        return (left_value == right_value) is not negated

    return equality


def _attribute_is_evaluator(
    name: str, text: Value, negated: bool, otherwise: Evaluator
) -> Evaluator:
    """Return the evaluator for an attribute and a text, the commonest comparison, in one call."""

    def attribute_is(event: Attributes, errors: Errors) -> Value:
        value = event.get(name)
        if type(value) is str:
            return (value == text) is not negated
        return otherwise(event, errors)

    return attribute_is


def _order_evaluator(
    compare: Callable[[int, int], bool], left: Evaluator, right: Evaluator
) -> Evaluator:
    def order(event: Attributes, errors: Errors) -> Value:
        before = len(errors)
        left_value = left(event, errors)
        right_value = right(event, errors)
        if len(errors) != before:
            return False
        if type(left_value) is not int:
            left_value = to_integer(left_value, errors)
        if type(right_value) is not int:
            right_value = to_integer(right_value, errors)
        return compare(left_value, right_value)

    return order


def member_evaluator(
    items: tuple[SqlNode, ...],
    negated: bool,
    operand: Evaluator,
    compiled: Callable[[SqlNode], Evaluator],
) -> Evaluator:
    """Return the evaluator for `operand IN (items)`."""
    if all(isinstance(item, Literal) for item in items):
        values = [item.value for item in items if isinstance(item, Literal)]
        return _literal_member_evaluator(values, negated, operand)
    evaluators = [compiled(item) for item in items]

    def member(event: Attributes, errors: Errors) -> Value:
        before = len(errors)
        value = operand(event, errors)
        elements = [evaluate(event, errors) for evaluate in evaluators]
        if len(errors) != before:
            return False
        # The left operand says which type is meant. All elements are cast before any is
        # compared: they are a set, and which of its elements comes first decides nothing.
        cast = CASTS[ValueType.of(value)]
        return (value in [cast(element, errors) for element in elements]) is not negated

    return member


def _literal_member_evaluator(values: list[Value], negated: bool, operand: Evaluator) -> Evaluator:
    """Return the evaluator for a set of literals: cast once, and looked up by hashing."""
    sets: dict[type, tuple[frozenset[Value], Errors]] = {}
    for type_ in ValueType:
        faults: Errors = []
        elements = frozenset(CASTS[type_](value, faults) for value in values)
        sets[type(type_.zero)] = elements, faults

    def literal_member(event: Attributes, errors: Errors) -> Value:
        before = len(errors)
        value = operand(event, errors)
        if len(errors) != before:
            return False
        elements, faults = sets[type(value)]
        errors.extend(faults)
        return (value in elements) is not negated

    return literal_member
