"""CESQL, compiled, agrees with a walk over the tree written straight from the specification."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.reference.cesql import like, reference_evaluate
from tests.strategies_cesql import (
    PATTERNS,
    Value,
    events,
    expressions,
    near_expressions,
    random_case,
)

from distributary.errors import BadInput
from distributary.filters.evaluation import ErrorKind
from distributary.filters.expression import evaluate, parse_expression
from distributary.filters.like_pattern import LikePattern


def assert_same(text: str, event: dict[str, Value]) -> bool:
    """Compare with the reference; return whether the text is an expression."""
    result = evaluate(text, event)
    kinds = frozenset(str(error.kind) for error in result.errors)
    value, expected = reference_evaluate(text, event)
    assert (type(result.value), result.value, kinds) == (type(value), value, expected), text
    return ErrorKind.PARSE not in kinds


@settings(max_examples=400)
@given(expressions(), events())
def test_valid_expressions_have_the_value_and_the_errors_of_the_reference(
    text: str, event: dict[str, Value]
) -> None:
    assert assert_same(text, event)


@settings(max_examples=300)
@given(near_expressions(), events())
@example("a LIKE'x'AND NOT b", {})
@example("1-1", {})
@example("-1abc", {"1abc": 4})
@example("'a''b' = \"a'b\"", {})
@example("+ 5", {})
def test_both_agree_on_what_is_no_expression(text: str, event: dict[str, Value]) -> None:
    assert_same(text, event)


@settings(max_examples=200)
@given(expressions(), events())
def test_a_filter_passes_when_the_value_is_true_without_an_error(
    text: str, event: dict[str, Value]
) -> None:
    value, errors = reference_evaluate(text, event)
    expression = parse_expression(text)
    assert expression.passes(event) is (value is True and not errors)
    assert expression.evaluate(event).passes is expression.passes(event)


@settings(max_examples=300)
@given(
    st.text(st.sampled_from("ab_%\\é"), max_size=12) | st.sampled_from(PATTERNS),
    st.text(st.sampled_from("ab_%\\é"), max_size=40),
)
@example("%a_b%", "a" * 40 + "ab")
@example("%" + "a_" * 20 + "b%", "a" * 60 + "b")
def test_like_agrees_with_trying_everything(pattern: str, text: str) -> None:
    compiled = LikePattern.parse(pattern)
    expected = like(text, pattern)
    assert compiled.matches(text) is expected
    assert compiled.matcher()(text) is expected
    if expected:
        assert text.startswith(compiled.prefix)
        assert text.endswith(compiled.suffix)
    if compiled.exact is not None:
        assert expected is (text == compiled.exact)
    if compiled.is_prefix:
        assert expected is text.startswith(compiled.prefix)
    if compiled.is_suffix:
        assert expected is text.endswith(compiled.suffix)


def count_parsed(seeds: range) -> int:
    """Return how many of the random texts are expressions; evaluate those."""
    parsed = 0
    for seed in seeds:
        text, event = random_case(seed)
        try:
            expression = parse_expression(text)
        except BadInput:
            continue
        parsed += 1
        result = expression.evaluate(event)
        assert type(result.value) in (str, int, bool), text
        assert expression.passes(event) is result.passes, text
    return parsed


def test_nothing_raises_on_five_thousand_random_expressions() -> None:
    count = 5_000
    assert count // 2 <= count_parsed(range(count)) < count


@pytest.mark.full
def test_nothing_raises_on_a_million_random_expressions() -> None:
    count = 1_000_000
    assert count // 2 <= count_parsed(range(count)) < count


@pytest.mark.full
def test_the_reference_agrees_on_a_hundred_thousand_random_expressions() -> None:
    count = 100_000
    assert count // 2 <= sum(assert_same(*random_case(seed)) for seed in range(count)) < count
