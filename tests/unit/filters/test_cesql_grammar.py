"""The grammar of CESQL: literals, names, precedence, and where an expression goes wrong."""

from __future__ import annotations

import pytest
from tests.cesql_outcomes import cases, check

from distributary.errors import BadInput
from distributary.filters.expression import evaluate, parse_expression
from distributary.filters.sql_tree import (
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Exists,
    In,
    Like,
    Literal,
    Logic,
    Negation,
    Not,
    SqlNode,
    ValueType,
)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("0", 0),
        ("+5", 5),
        ("-5", -5),
        ("007", 7),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
        ("true", True),
        ("FALSE", False),
        ("tRuE", True),
        ("''", ""),
        ('""', ""),
        ("'a b'", "a b"),
        ("'say \"x\"'", 'say "x"'),
        ('"it\'s"', "it's"),
        (r"'it\'s'", "it's"),
        (r'"a\"b"', 'a"b'),
        ("'it''s'", "it's"),
        ('"a""b"', 'a"b'),
        ("''''", "'"),
        (r"'a\b'", r"a\b"),
        (r"'a\"b'", r"a\"b"),
        (r"'a\\'", "a\\\\"),
        ("'tab\tnewline\n'", "tab\tnewline\n"),
        ("'é🜁'", "é🜁"),
        ("'AND'", "AND"),
        (" \t\r\n 1 \t\r\n ", 1),
    ),
)
def test_literals(text: str, value: object, kinds: tuple[str, ...]) -> None:
    check(text, value, kinds)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("4-1", 3),
        ("4 -1", 3),
        ("4 - 1", 3),
        ("4--1", 5),
        ("4 - -1", 5),
        ("4+1", 5),
        ("4++1", 5),
        ("4+-1", 3),
        ("n-1", 6),
        ("-n", -7),
        ("- -1", 1),
        ("--1", 1),
        ("-1st", -2),
        ("1st+1", 3),
        ("(1)-1", 0),
        ("'1'-1", 0),
    ),
)
def test_a_sign_belongs_to_a_number_only_where_a_value_is_due(
    text: str, value: object, kinds: tuple[str, ...]
) -> None:
    check(text, value, kinds, {"n": 7, "1st": 2})


@pytest.mark.parametrize(
    ("flat", "bracketed"),
    [
        ("NOT a LIKE 'x'", "(NOT a) LIKE 'x'"),
        ("NOT a IN (b)", "(NOT a) IN (b)"),
        ("NOT a = b", "(NOT a) = b"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT EXISTS a", "NOT (EXISTS a)"),
        ("NOT -a", "NOT (-a)"),
        ("-NOT a", "-(NOT a)"),
        ("-a LIKE 'x'", "(-a) LIKE 'x'"),
        ("-a IN (b)", "(-a) IN (b)"),
        ("-a * b", "(-a) * b"),
        ("-a + b", "(-a) + b"),
        ("-a < b", "(-a) < b"),
        ("-LENGTH(a)", "-(LENGTH(a))"),
        ("NOT BOOL(a)", "NOT (BOOL(a))"),
        ("a LIKE 'x' IN (b)", "(a LIKE 'x') IN (b)"),
        ("a IN (b) LIKE 'x'", "(a IN (b)) LIKE 'x'"),
        ("EXISTS a LIKE 'x'", "(EXISTS a) LIKE 'x'"),
        ("EXISTS a IN (b)", "(EXISTS a) IN (b)"),
        ("a * b LIKE 'x'", "a * (b LIKE 'x')"),
        ("a * b IN (c)", "a * (b IN (c))"),
        ("a + b LIKE 'x'", "a + (b LIKE 'x')"),
        ("a + b NOT IN (c)", "a + (b NOT IN (c))"),
        ("a = b LIKE 'x'", "a = (b LIKE 'x')"),
        ("a = b IN (c)", "a = (b IN (c))"),
        ("a AND b LIKE 'x'", "a AND (b LIKE 'x')"),
        ("a + b * c", "a + (b * c)"),
        ("a * b + c", "(a * b) + c"),
        ("a - b % c", "a - (b % c)"),
        ("a = b + c", "a = (b + c)"),
        ("a + b = c", "(a + b) = c"),
        ("a < b * c", "a < (b * c)"),
        ("a AND b = c", "a AND (b = c)"),
        ("a = b AND c", "(a = b) AND c"),
        ("a OR b + c", "a OR (b + c)"),
        ("a = NOT b = c", "(a = (NOT b)) = c"),
        ("a * - b + c", "(a * (-b)) + c"),
        ("a = b = c", "(a = b) = c"),
        ("a < b >= c", "(a < b) >= c"),
        ("a LIKE 'x' LIKE 'y'", "(a LIKE 'x') LIKE 'y'"),
    ],
)
def test_precedence_is_what_these_brackets_say(flat: str, bracketed: str) -> None:
    assert parse_expression(flat) == parse_expression(bracketed)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("NOT a LIKE 'x'", "NOT (a LIKE 'x')"),
        ("NOT a = b", "NOT (a = b)"),
        ("a + b * c", "(a + b) * c"),
        ("a = b AND c", "a = (b AND c)"),
        ("a - b - c", "a - (b - c)"),
        ("a OR b AND c", "a OR (b AND c)"),
        ("1", "true"),
        ("1", "'1'"),
        ("0", "false"),
        ("a", "'a'"),
        ("a LIKE 'x'", "a NOT LIKE 'x'"),
        ("a IN (b)", "a NOT IN (b)"),
        ("a IN (1)", "a IN (true)"),
    ],
)
def test_expressions_that_differ_are_not_equal(left: str, right: str) -> None:
    assert parse_expression(left) != parse_expression(right)
    assert parse_expression(left) != left


A, B, C = Attribute("a"), Attribute("b"), Attribute("c")
ONE = Literal(ValueType.INTEGER, 1)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("A", A),
        ("exists A", Exists("a")),
        ("not a", Not(A)),
        ("- a", Negation(A)),
        ("a <> 1", Comparison("!=", A, ONE)),
        ("a not like '%x'", Like(A, "%x", True)),
        ("a In (1, b)", In(A, (ONE, B), False)),
        ("a + b - c", Arithmetic(("+", "-"), (A, B, C))),
        ("(a + b) - c", Arithmetic(("-",), (Arithmetic(("+",), (A, B)), C))),
        ("a and b or c", Logic(("AND", "OR"), (A, B, C))),
        ("(a and b) or c", Logic(("OR",), (Logic(("AND",), (A, B)), C))),
        ("f_n(a, 1)", Call("F_N", (A, ONE))),
        ("f()", Call("F", ())),
        ("f ( )", Call("F", ())),
        ("left = left(a, 1)", Comparison("=", Attribute("left"), Call("LEFT", (A, ONE)))),
    ],
    ids=str,
)
def test_the_tree_of_an_expression(text: str, tree: SqlNode) -> None:
    expression = parse_expression(text)
    assert expression.root == tree
    assert hash(expression) == hash(parse_expression(f" {text} "))
    assert repr(expression) == f"Expression({text!r})"


@pytest.mark.parametrize(
    ("text", "character", "problem"),
    [
        ("", 1, "a value is missing before the end of the expression"),
        ("   ", 4, "a value is missing"),
        ("a =", 4, "a value is missing"),
        ("= a", 1, "a value is missing before ="),
        ("a b", 3, "an operator is missing before b"),
        ("a 'b'", 3, "an operator is missing before the string 'b'"),
        ("a NOT b", 3, "NOT between values is followed by LIKE or IN"),
        ("a NOT", 3, "NOT between values"),
        ("a LIKE 123", 8, "the pattern of LIKE is a string, not 123"),
        ("a LIKE b", 8, "the pattern of LIKE"),
        ("a LIKE", 7, "the pattern of LIKE"),
        ("a LIKE ('x')", 8, "the pattern of LIKE"),
        ("a IN 1", 6, "IN is followed by a set in brackets, not 1"),
        ("a IN ()", 7, "a value is missing before )"),
        ("a IN (1", 8, "a bracket is not closed"),
        ("a IN (1,)", 9, "a value is missing before )"),
        ("EXISTS", 7, "EXISTS needs the name of an attribute"),
        ("EXISTS 'a'", 8, "EXISTS needs the name of an attribute, not the string 'a'"),
        ("EXISTS AND", 8, "EXISTS needs the name of an attribute, not AND"),
        ("EXISTS a_b", 8, "a_b cannot be the name of an attribute"),
        ("(a", 3, "a bracket is not closed"),
        ("a)", 2, "there is no open bracket to close"),
        ("()", 2, "a value is missing before )"),
        ("(a, b)", 3, "a comma separates"),
        ("a, b", 2, "a comma separates"),
        ("ABC(", 5, "a value is missing"),
        ("F(a", 4, "a bracket is not closed"),
        ("F(,a)", 3, "a value is missing before ,"),
        ("F(a,)", 5, "a value is missing before )"),
        ("F(a b)", 5, "an operator is missing before b"),
        ("F1(a)", 1, "F1 cannot be the name of a function"),
        ("_F(a)", 1, "_F cannot be the name of a function"),
        ("TRUE(a)", 5, "an operator is missing before ("),
        ("a_b = 1", 1, "a_b cannot be the name of an attribute"),
        ("AND", 1, "a value is missing before AND"),
        ("a AND OR b", 7, "a value is missing before OR"),
        ("a = in", 5, "a value is missing before IN"),
        ("+ 5", 1, "a value is missing before +"),
        ("+a", 1, "a value is missing before +"),
        ("2147483648", 1, "the integer 2147483648 does not fit into 32 bits"),
        ("-2147483649", 1, "does not fit into 32 bits"),
        ("- 2147483648", 3, "does not fit into 32 bits"),
        ("'abc", 1, "the string is not closed by '"),
        ('a = "abc', 5, 'the string is not closed by "'),
        (r"'abc\'", 1, "the string is not closed by '"),
        ("'a' \\", 5, "has no meaning outside a string"),
        ("a == b", 4, "a value is missing before ="),
        ("a ! b", 3, "'!' has no meaning outside a string"),
        ("a; b", 2, "';' has no meaning outside a string"),
        ("a.b = 1", 2, "'.' has no meaning outside a string"),
        ("a\u00a0= 1", 2, "has no meaning outside a string"),
        ("ä = 1", 1, "has no meaning outside a string"),
        ("1.5", 2, "has no meaning outside a string"),
        ("a\x00", 2, "has no meaning outside a string"),
    ],
)
def test_a_fault_is_told_with_its_position(text: str, character: int, problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_expression(text)
    assert caught.value.place == f"expression, character {character}"
    assert problem in caught.value.problem
    assert "\n" not in str(caught.value)
    result = evaluate(text, {"a": "x"})
    assert (result.value, [error.kind for error in result.errors]) == (False, ["parse"])
    assert result.errors[0].message == str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["a = 'X' AND NOT b LIKE 'y%'", "EXISTS a OR LENGTH(b) IN (1, 2) XOR true"],
)
def test_words_outside_strings_have_no_case(text: str) -> None:
    halves = text.split("'")
    halves[::2] = [half.swapcase() for half in halves[::2]]
    assert parse_expression("'".join(halves)) == parse_expression(text)
