"""What an expression may ask for: a sender decides neither our stack nor our time."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from tests.lines_run import lines_run

from distributary.errors import BadInput
from distributary.filters.expression import parse_expression
from distributary.filters.like_pattern import LikePattern
from distributary.filters.sql_parser import EXPRESSION_CHARACTERS_MAX, NESTING_MAX

SHAPES = {
    "conjunction": lambda n: "a = 'x' AND " * n + "true",
    "mixed logic": lambda n: "a OR b XOR c AND " * n + "true",
    "sum": lambda n: "1 + " * n + "1",
    "products in sums": lambda n: "2 * 3 % 4 - " * n + "1",
    "set": lambda n: "a IN (" + "'x', " * n + "'y')",
    "arguments": lambda n: "CONCAT(" + "a, " * n + "b)",
    "many sets": lambda n: "a IN (1, 2) OR " * n + "true",
    "nested and long": lambda n: "((a = 1 OR b = 2) AND c) OR " * n + "true",
    "escapes": lambda n: "'" + "\\'" * n + "'",
    "doubled quotes": lambda n: "'" + "''" * n + "'",
    "blanks": lambda n: " " * n + "a",
    "never closed": lambda n: "'" + "''a" * n,
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_twice_the_length_takes_twice_the_steps_to_parse(shape: Callable[[int], str]) -> None:
    def parse(count: int) -> None:
        try:
            parse_expression(shape(count))
        except BadInput:
            assert shape is SHAPES["never closed"]

    parse(1)
    once, twice = lines_run(lambda: parse(200)), lines_run(lambda: parse(400))
    assert twice <= 2.1 * once


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_twice_the_length_takes_twice_the_steps_to_evaluate(shape: Callable[[int], str]) -> None:
    if shape is SHAPES["never closed"]:
        return
    event = {"a": "x", "b": "true", "c": 1}

    def evaluated(count: int) -> int:
        expression = parse_expression(shape(count))
        expression.evaluate(event)
        return lines_run(lambda: expression.evaluate(event))

    assert evaluated(400) <= 2.1 * max(evaluated(200), 10)


@pytest.mark.parametrize(
    "text",
    ["a = 'x' AND " * 5_000 + "true", "1 - " * 16_000 + "1", "true XOR " * 7_000 + "false"],
    ids=["AND", "-", "XOR"],
)
def test_a_long_chain_needs_no_deep_stack(text: str) -> None:
    limit = sys.getrecursionlimit()
    here = sys._getframe()
    depth = 0
    while here is not None:
        depth, here = depth + 1, here.f_back  # type: ignore[assignment]
    sys.setrecursionlimit(depth + 60)
    try:
        expression = parse_expression(text)
        result = expression.evaluate({"a": "x"})
        other = parse_expression(text)
        assert expression == other
        assert hash(expression) == hash(other)
    finally:
        sys.setrecursionlimit(limit)
    assert not result.errors


def test_an_expression_is_at_most_64_ki_characters_long() -> None:
    text = "'" + "x" * (EXPRESSION_CHARACTERS_MAX - 2) + "'"
    assert parse_expression(text).evaluate({}).value == text[1:-1]
    with pytest.raises(BadInput, match="expression: has 65,537 characters, and may have 65,536"):
        parse_expression(text + " ")


@pytest.mark.parametrize(
    ("build", "at_limit", "value"),
    [
        (lambda n: "(" * n + "true" + ")" * n, NESTING_MAX, True),
        (lambda n: "NOT " * n + "true", NESTING_MAX - 1, False),
        (lambda n: "- " * n + "1", NESTING_MAX - 1, -1),
        (lambda n: "UPPER(" * n + "'a'" + ")" * n, NESTING_MAX - 1, "A"),
        (lambda n: "1" + " = 1" * n, NESTING_MAX - 1, True),
        (lambda n: "'a'" + " LIKE 'a'" * n, NESTING_MAX - 1, False),
        (lambda n: "true IN (" * n + "true" + ")" * n, NESTING_MAX - 1, True),
        (lambda n: "(1 + " * n + "1" + ")" * n, NESTING_MAX - 1, NESTING_MAX),
        (lambda n: "(true AND " * n + "true" + ")" * n, NESTING_MAX - 1, True),
    ],
    ids=["brackets", "NOT", "minus", "calls", "equalities", "LIKE", "sets", "sums", "logic"],
)
def test_nesting_has_a_limit_and_is_refused_where_it_goes_too_deep(
    build: Callable[[int], str], at_limit: int, value: object
) -> None:
    assert parse_expression(build(at_limit)).evaluate({}).value == value
    for count in (at_limit + 1, 5_000):
        with pytest.raises(BadInput, match="nested more than 64 deep here") as caught:
            parse_expression(build(count))
        assert caught.value.place.startswith("expression, character ")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("%a" * 400 + "b", "a" * 4_000),
        ("%" + "a_" * 400 + "b%", "a" * 4_000),
        ("%" + "_a" * 400 + "b", "a" * 4_000),
        ("%a_" * 400 + "%b", "a" * 4_000),
        ("_%" * 800 + "b", "a" * 4_000),
    ],
    ids=["%a%a%b", "%a_a_b%", "%_a_ab", "%a_%a_%b", "_%_%b"],
)
def test_like_takes_steps_in_proportion_to_the_pattern(pattern: str, text: str) -> None:
    compiled = LikePattern.parse(pattern)
    assert not compiled.matches(text)
    assert lines_run(lambda: compiled.matches(text)) <= 40 * len(pattern)
    assert compiled.matches(text + "b") or pattern.endswith("b%")


def test_a_caller_that_is_deep_itself_gets_an_error_and_no_traceback() -> None:
    text = "1 AND 2 = 3 + 4 * (" * 60 + "1" + ")" * 60

    def call(depth: int) -> None:
        if depth:
            call(depth - 1)
        else:
            parse_expression(text)

    with pytest.raises(BadInput, match="nested"):
        call(sys.getrecursionlimit() - 300)
