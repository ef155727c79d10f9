"""Functions that users add to CESQL, found by name and number of arguments."""

from __future__ import annotations

import math
from typing import NoReturn

import pytest
from tests.cesql_outcomes import expected, outcome

from distributary.errors import BadInput
from distributary.filters.evaluation import ErrorKind
from distributary.filters.expression import evaluate, parse_expression
from distributary.filters.sql_built_ins import BUILT_INS
from distributary.filters.sql_functions import Function, FunctionFailed, Functions
from distributary.filters.sql_tree import ValueType

STRING, INTEGER, BOOLEAN = ValueType.STRING, ValueType.INTEGER, ValueType.BOOLEAN


def starts(text: str, prefix: str) -> bool:
    return text.startswith(prefix)


def joined(*texts: str) -> str:
    return "+".join(texts)


def broken(*arguments: object) -> NoReturn:
    raise ZeroDivisionError


def refused(value: object) -> NoReturn:
    raise FunctionFailed("not today", value="later")


FUNCTIONS = BUILT_INS.extended(
    Function("HASPREFIX", (STRING, STRING), BOOLEAN, starts),
    Function("Kind", (), STRING, lambda: "none"),
    Function("KIND", (None,), STRING, lambda value: type(value).__name__),
    Function("KIND", (STRING, STRING), STRING, joined, rest=STRING),
    Function("BROKEN", (), INTEGER, broken, rest=STRING),
    Function("REFUSED", (None,), STRING, refused),
    Function("WRONG_TYPE", (), INTEGER, lambda: "seven"),
    Function("TRUTH_IS_NO_INTEGER", (), INTEGER, lambda: True),
    Function("TOO_BIG", (), INTEGER, lambda: 2**31),
    Function("LENGTH", (STRING, INTEGER), INTEGER, lambda text, factor: len(text) * factor),
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("HASPREFIX('abc', 'ab')", expected(True)),
        ("hasprefix('abc', 'b')", expected(False)),
        ("HASPREFIX(123, 1)", expected(True)),
        ("HASPREFIX('abc')", expected(False, "missingFunction")),
        ("HASPREFIX(missing, 'a')", expected(False, "missingAttribute")),
        ("KIND()", expected("none")),
        ("KIND(1)", expected("int")),
        ("KIND(true)", expected("bool")),
        ("KIND('a', 'b')", expected("a+b")),
        ("KIND('a', 2, true, 'd')", expected("a+2+true+d")),
        ("BROKEN()", expected(0, "functionEvaluation")),
        ("BROKEN('a', 'b')", expected(0, "functionEvaluation")),
        ("REFUSED(1)", expected("later", "functionEvaluation")),
        ("REFUSED(1) = 'later'", expected(False, "functionEvaluation")),
        ("WRONG_TYPE()", expected(0, "functionEvaluation")),
        ("TRUTH_IS_NO_INTEGER()", expected(0, "functionEvaluation")),
        ("TOO_BIG()", expected(0, "functionEvaluation")),
        ("LENGTH('abc')", expected(3)),
        ("LENGTH('abc', 2)", expected(6)),
        ("HASPREFIX(1 + 9, '1')", expected(True)),
    ],
)
def test_users_functions_are_called_with_cast_arguments(
    text: str, wanted: tuple[object, ...]
) -> None:
    assert outcome(evaluate(text, {}, functions=FUNCTIONS)) == wanted


def test_a_registry_does_not_change_and_expressions_keep_theirs() -> None:
    text = "HASPREFIX('abc', 'ab')"
    without, having = parse_expression(text), parse_expression(text, functions=FUNCTIONS)
    assert without.evaluate({}).errors[0].kind is ErrorKind.MISSING_FUNCTION
    assert having.evaluate({}).passes
    assert without != having
    assert having == parse_expression(text, functions=FUNCTIONS)


def test_a_function_may_report_another_kind_of_error() -> None:
    def root(number: int) -> int:
        if number < 0:
            raise FunctionFailed("no root", kind=ErrorKind.MATH)
        return math.isqrt(number)

    functions = Functions([Function("ROOT", (INTEGER,), INTEGER, root)])
    assert evaluate("ROOT(49)", {}, functions=functions).value == 7
    result = evaluate("ROOT(-1)", {}, functions=functions)
    assert outcome(result) == expected(0, "math")
    assert result.errors[0].message == "no root"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Function("F", (STRING,), STRING, joined), Function("f", (INTEGER,), STRING, joined)),
        (
            Function("F", (), STRING, joined, rest=STRING),
            Function("F", (STRING,) * 3, STRING, joined),
        ),
        (
            Function("F", (STRING,) * 3, STRING, joined),
            Function("F", (STRING,) * 3, STRING, joined, rest=STRING),
        ),
        (
            Function("F", (STRING,), STRING, joined, rest=STRING),
            Function("F", (STRING,) * 4, STRING, joined, rest=STRING),
        ),
    ],
    ids=["same arity", "variadic from none", "variadic from the same", "two variadic"],
)
def test_functions_that_a_call_could_not_tell_apart_are_refused(
    first: Function, second: Function
) -> None:
    for pair in ([first, second], [second, first]):
        with pytest.raises(BadInput, match="cannot be told from the one with"):
            Functions(pair)


def test_a_variadic_function_may_begin_above_the_others() -> None:
    functions = Functions(
        [
            Function("ABC", (STRING, STRING, STRING), STRING, lambda *a: "many", rest=STRING),
            Function("ABC", (STRING,), STRING, lambda a: "one"),
            Function("ABC", (STRING, STRING), STRING, lambda a, b: "two"),
        ]
    )
    calls = ["ABC('')", "ABC('', '')", "ABC('', '', '')", "ABC('', '', '', '')"]
    values = [evaluate(text, {}, functions=functions).value for text in calls]
    assert values == ["one", "two", "many", "many"]
    assert functions.find("abc", 0) is None


@pytest.mark.parametrize("name", ["", "1ST", "A1", "_A", "A B", "NOT", "true", "É"])
def test_names_that_no_expression_can_call_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is not a name that an expression can call"):
        BUILT_INS.extended(Function(name, (), STRING, joined))


def test_a_built_in_function_cannot_be_replaced() -> None:
    with pytest.raises(BadInput, match="function 'upper': with 1 argument cannot be told"):
        BUILT_INS.extended(Function("upper", (STRING,), STRING, str.upper))
