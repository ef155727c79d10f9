"""CESQL trees compiled to functions, so that an event costs about a microsecond.

Every node becomes an `Evaluator`: a function of the attributes and of a list that it adds errors
to. Two rules say what an error does to values:

- An operator or function with an operand whose evaluation met an error returns the zero
  value of its own type; the operand of a missing attribute is such an operand. It still
  evaluates its other operands, for their errors.
- A cast that fails is an error of the operator that asked for it. It goes on with 0 or
  false, which is what the specification says the cast returns.

They call each other as deep as the tree is, which the parser limits, never as deep as a
chain is long.
"""

from __future__ import annotations

from distributary.errors import quoted
from distributary.filters import sql_tree as sql
from distributary.filters.evaluation import (
    ALWAYS_THERE,
    PAYLOAD,
    Attributes,
    ErrorKind,
    Errors,
    EvaluationError,
    Evaluator,
)
from distributary.filters.like_pattern import LikePattern
from distributary.filters.program_chains import arithmetic_evaluator, logic_evaluator
from distributary.filters.program_comparisons import comparison_evaluator, member_evaluator
from distributary.filters.sql_casts import (
    CASTS,
    INTEGER_MAX,
    INTEGER_MIN,
    attribute_value,
    to_boolean,
    to_integer,
    to_string,
)
from distributary.filters.sql_functions import Function, FunctionFailed, Functions
from distributary.filters.sql_tree import SqlNode, Value

__all__ = ["compile_tree"]


def compile_tree(node: SqlNode, functions: Functions) -> Evaluator:
    """Return the function that evaluates `node`."""

    def compiled(part: SqlNode) -> Evaluator:
        return compile_tree(part, functions)

    match node:
        case sql.Literal(_, value):
            return lambda event, errors: value
        case sql.Attribute(name):
            return _attribute_evaluator(name)
        case sql.Exists(name):
            return _exists_evaluator(name)
        case sql.Not(operand):
            return _not_evaluator(compiled(operand))
        case sql.Negation(operand):
            return _negation_evaluator(compiled(operand))
        case sql.Comparison(operator, left, right):
            return comparison_evaluator(operator, left, right, compiled(left), compiled(right))
        case sql.Like(operand, pattern, negated):
            return _like_evaluator(operand, compiled(operand), pattern, negated)
        case sql.In(operand, items, negated):
            return member_evaluator(items, negated, compiled(operand), compiled)
        case sql.Arithmetic(operators, operands):
            return arithmetic_evaluator(operators, [compiled(part) for part in operands])
        case sql.Logic(operators, operands):
            return logic_evaluator(operators, [compiled(part) for part in operands])
        case sql.Call(name, arguments):
            function = functions.find(name, len(arguments))
            if function is None:
                return _missing_function_evaluator(name, len(arguments))
            return _call_evaluator(function, [compiled(part) for part in arguments])


def _attribute_evaluator(name: str) -> Evaluator:
    missing = EvaluationError(
        ErrorKind.MISSING_ATTRIBUTE, f"the event has no attribute {quoted(name)}"
    )

    def absent(event: Attributes, errors: Errors) -> Value:
        errors.append(missing)
        return False

    def attribute(event: Attributes, errors: Errors) -> Value:
        found = event.get(name)
        if type(found) is str:
            return found
        value = attribute_value(found)
        if value is not None:
            return value
        errors.append(missing)
        return False

    return absent if name == PAYLOAD else attribute


def _exists_evaluator(name: str) -> Evaluator:
    if name in ALWAYS_THERE or name == PAYLOAD:
        there = name != PAYLOAD
        return lambda event, errors: there
    return lambda event, errors: event.get(name) is not None


def _not_evaluator(operand: Evaluator) -> Evaluator:
    def negated(event: Attributes, errors: Errors) -> Value:
        before = len(errors)
        value = operand(event, errors)
        if len(errors) != before:
            return False
        if type(value) is bool:
            return not value
        if type(value) is int:
            # The specification casts Integers to Booleans. Its conformance suite says that
            # `NOT 10` is a cast error with the value true, and the suite decides.
            errors.append(EvaluationError(ErrorKind.CAST, f"NOT of the integer {value}"))
            return True
        return not to_boolean(value, errors)

    return negated


def _negation_evaluator(operand: Evaluator) -> Evaluator:
    def negation(event: Attributes, errors: Errors) -> Value:
        before = len(errors)
        value = operand(event, errors)
        if len(errors) != before:
            return 0
        number = to_integer(value, errors)
        if number == INTEGER_MIN:
            errors.append(
                EvaluationError(ErrorKind.MATH, f"-({number}) is more than {INTEGER_MAX}")
            )
            return 0
        return -number

    return negation


def _like_evaluator(node: SqlNode, operand: Evaluator, pattern: str, negated: bool) -> Evaluator:
    matches = LikePattern.parse(pattern).matcher()

    def like(event: Attributes, errors: Errors) -> Value:
        before = len(errors)
        value = operand(event, errors)
        if len(errors) != before:
            return False
        return matches(to_string(value, errors)) is not negated

    if not isinstance(node, sql.Attribute) or node.name == PAYLOAD:
        return like
    name = node.name

    def attribute_like(event: Attributes, errors: Errors) -> Value:
        value = event.get(name)
        if type(value) is str:
            return matches(value) is not negated
        return like(event, errors)

    return attribute_like


def _missing_function_evaluator(name: str, count: int) -> Evaluator:
    error = EvaluationError(
        ErrorKind.MISSING_FUNCTION,
        f"there is no function {quoted(name)} for {count} argument{'' if count == 1 else 's'}",
    )

    def missing_function(event: Attributes, errors: Errors) -> Value:
        errors.append(error)
        return False

    return missing_function


def _call_evaluator(function: Function, arguments: list[Evaluator]) -> Evaluator:
    types = [function.parameter(index) for index in range(len(arguments))]
    casts = [None if type_ is None else CASTS[type_] for type_ in types]
    name, call, zero = function.name, function.call, function.returns.zero
    failed = ErrorKind.FUNCTION_EVALUATION

    def called(event: Attributes, errors: Errors) -> Value:
        before = len(errors)
        values = [argument(event, errors) for argument in arguments]
        if len(errors) != before:
            return zero
        values = [
            value if cast is None else cast(value, errors)
            for value, cast in zip(values, casts, strict=True)
        ]
        try:
            result = function.valid(call(*values))
            if result is not None:
                return result
            kind, message = failed, f"{name} did not return a valid {function.returns.value}"
        except FunctionFailed as failure:
            kind, message = failure.kind, str(failure)
            result = function.valid(failure.value)
        except Exception as failure:
            # A user's function may fail in any way; an evaluation fails in none.
            kind, message = failed, f"{name} failed with {type(failure).__name__}"
            result = None
        errors.append(EvaluationError(kind, message))
        return zero if result is None else result

    return called
