"""Compiled chains: `AND OR XOR`, `+ -` and `* / %`, each a loop over its operands."""

from __future__ import annotations

from distributary.filters.evaluation import (
    Attributes,
    ErrorKind,
    Errors,
    EvaluationError,
    Evaluator,
)
from distributary.filters.sql_casts import INTEGER_MAX, INTEGER_MIN, to_boolean, to_integer
from distributary.filters.sql_tree import Value

__all__ = ["arithmetic_evaluator", "logic_evaluator"]


def logic_evaluator(operators: tuple[str, ...], operands: list[Evaluator]) -> Evaluator:
    """Return the evaluator for a chain of `AND`, `OR` and `XOR`."""
    if set(operators) == {"AND"}:
        return _conjunction_evaluator(operands)
    first, rest = operands[0], list(zip(operators, operands[1:], strict=True))

    def logic(event: Attributes, errors: Errors) -> Value:
        before = len(errors)
        result = first(event, errors)
        for operator, operand in rest:
            # What a failed operand is worth still says whether the next one is evaluated, but
            # it is no further error that it cannot be cast.
            failed = len(errors) != before
            left = to_boolean(result, [] if failed else errors)
            if operator != "XOR" and left is (operator == "OR"):
                result = left and not failed
                continue
            met = len(errors)
            right = operand(event, errors)
            if failed or len(errors) != met:
                result = False
            else:
                right = to_boolean(right, errors)
                result = left is not right if operator == "XOR" else right
        return result

    return logic


def _conjunction_evaluator(operands: list[Evaluator]) -> Evaluator:
    """Return the evaluator for a chain of `AND` alone, the commonest, in fewer turns.

    A false operand settles the value with or without an error, and an error makes it false.
    Only the first operand may fail and be true, and the second still be evaluated.
    """
    first = operands[0]

    def conjunction(event: Attributes, errors: Errors) -> Value:
        before = len(errors)
        for operand in operands:
            value = operand(event, errors)
            if value is False:
                return False
            if value is not True and not to_boolean(value, [] if len(errors) != before else errors):
                return False
            if errors and len(errors) != before and operand is not first:
                return False
        return len(errors) == before

    return conjunction


def arithmetic_evaluator(operators: tuple[str, ...], operands: list[Evaluator]) -> Evaluator:
    """Return the evaluator for a chain of `+` and `-`, or of `*`, `/` and `%`."""
    first, rest = operands[0], list(zip(operators, operands[1:], strict=True))

    def arithmetic(event: Attributes, errors: Errors) -> Value:
        before = len(errors)
        result = first(event, errors)
        for operator, operand in rest:
            right = operand(event, errors)
            if len(errors) != before:
                result = 0
            else:
                result = _computed(
                    operator, to_integer(result, errors), to_integer(right, errors), errors
                )
        return result

    return arithmetic


def _computed(operator: str, left: int, right: int, errors: Errors) -> int:
    match operator:
        case "+":
            result = left + right
        case "-":
            result = left - right
        case "*":
            result = left * right
        case _:
            if right == 0:
                message = f"{left} {operator} 0 is not defined"
                errors.append(EvaluationError(ErrorKind.MATH, message))
                return 0
            # Python rounds down; the specification rounds towards zero, and the remainder
            # has the sign of the dividend.
            result = abs(left) // abs(right)
            if (left < 0) is not (right < 0):
                result = -result
            if operator == "%":
                result = left - right * result
    if INTEGER_MIN <= result <= INTEGER_MAX:
        return result
    message = f"{left} {operator} {right} does not fit into 32 bits"
    errors.append(EvaluationError(ErrorKind.MATH, message))
    return 0
