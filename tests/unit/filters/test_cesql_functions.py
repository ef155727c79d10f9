"""Functions and casts of CESQL, sections 3.5 and 3.7 of its specification."""

from __future__ import annotations

import pytest
from tests.cesql_outcomes import cases, check

EVENT = {"text": "Hello", "count": 3, "on": True}


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("LENGTH('abc')", 3),
        ("LENGTH('')", 0),
        ("LENGTH('é🜁')", 2),
        ("LENGTH(-12)", 3),
        ("LENGTH(false)", 5),
        ("LENGTH(text)", 5),
        ("CONCAT()", ""),
        ("CONCAT('a')", "a"),
        ("CONCAT('a', 1, true)", "a1true"),
        ("CONCAT(text, '!')", "Hello!"),
        ("CONCAT_WS('-')", ""),
        ("CONCAT_WS('-', 'a')", "a"),
        ("CONCAT_WS('-', 'a', 'b', 3)", "a-b-3"),
        ("CONCAT_WS('', 'a', 'b')", "ab"),
        ("CONCAT_WS('-', '', '')", "-"),
        ("LOWER('AbC')", "abc"),
        ("LOWER('ÄÖ')", "äö"),
        ("UPPER('aBc')", "ABC"),
        ("UPPER('straße')", "STRASSE"),
        ("UPPER(true)", "TRUE"),
        ("TRIM('  a b ')", "a b"),
        ("TRIM('\t\n\v\f\r a\x85\u00a0')", "a"),
        ("TRIM('\u2003\u3000a\u2028')", "a"),
        ("TRIM('\x1ca\x1f')", "\x1ca\x1f"),
        ("TRIM('\u200ba')", "\u200ba"),
        ("TRIM('')", ""),
        ("LEFT('abc', 2)", "ab"),
        ("LEFT('abc', 0)", ""),
        ("LEFT('abc', 3)", "abc"),
        ("LEFT('abc', 9)", "abc"),
        ("LEFT('abc', -1)", "abc", "functionEvaluation"),
        ("LEFT('abc', '2')", "ab"),
        ("LEFT('abc', true)", "a"),
        ("LEFT(12345, 2)", "12"),
        ("LEFT('abc', 'x')", "", "cast"),
        ("RIGHT('abc', 2)", "bc"),
        ("RIGHT('abc', 0)", ""),
        ("RIGHT('abc', 3)", "abc"),
        ("RIGHT('abc', 9)", "abc"),
        ("RIGHT('abc', -1)", "abc", "functionEvaluation"),
        ("SUBSTRING('abcdef', 1)", "abcdef"),
        ("SUBSTRING('abcdef', 3)", "cdef"),
        ("SUBSTRING('abcdef', 6)", "f"),
        ("SUBSTRING('abcdef', 0)", ""),
        ("SUBSTRING('abcdef', -2)", "ef"),
        ("SUBSTRING('abcdef', -6)", "abcdef"),
        ("SUBSTRING('abcdef', 7)", "", "functionEvaluation"),
        ("SUBSTRING('abcdef', -7)", "", "functionEvaluation"),
        ("SUBSTRING('', 0)", ""),
        ("SUBSTRING('', 1)", "", "functionEvaluation"),
        ("SUBSTRING('abcdef', 2, 3)", "bcd"),
        ("SUBSTRING('abcdef', 2, 0)", ""),
        ("SUBSTRING('abcdef', 5, 99)", "ef"),
        ("SUBSTRING('abcdef', -3, 2)", "de"),
        ("SUBSTRING('abcdef', 0, 2)", ""),
        ("SUBSTRING('abcdef', 2, -1)", "", "functionEvaluation"),
        ("SUBSTRING('abcdef', 0, -1)", "", "functionEvaluation"),
        ("SUBSTRING('abcdef', 9, 2)", "", "functionEvaluation"),
        ("ABS(5)", 5),
        ("ABS(-5)", 5),
        ("ABS('-5')", 5),
        ("ABS(true)", 1),
        ("ABS(-2147483647)", 2147483647),
        ("ABS(-2147483648)", 2147483647, "math"),
        ("ABS('x')", 0, "cast"),
    ),
)
def test_built_in_functions(text: str, value: object, kinds: tuple[str, ...]) -> None:
    check(text, value, kinds, EVENT)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("INT('12')", 12),
        ("INT('+12')", 12),
        ("INT('-012')", -12),
        ("INT('2147483647')", 2147483647),
        ("INT('2147483648')", 0, "cast"),
        ("INT('-2147483648')", -2147483648),
        ("INT('-2147483649')", 0, "cast"),
        ("INT('1.5')", 0, "cast"),
        ("INT('')", 0, "cast"),
        ("INT('--1')", 0, "cast"),
        ("INT(7)", 7),
        ("INT(true)", 1),
        ("INT(false)", 0),
        ("BOOL('true')", True),
        ("BOOL('FALSE')", False),
        ("BOOL('tRuE')", True),
        ("BOOL(' true')", False, "cast"),
        ("BOOL('1')", False, "cast"),
        ("BOOL(0)", False),
        ("BOOL(-3)", True),
        ("BOOL(true)", True),
        ("STRING('a')", "a"),
        ("STRING(-7)", "-7"),
        ("STRING(007)", "7"),
        ("STRING(true)", "true"),
        ("STRING(FALSE)", "false"),
        ("IS_INT('7')", True),
        ("IS_INT('x')", False),
        ("IS_INT('2147483648')", False),
        ("IS_INT(7)", True),
        ("IS_INT(true)", False),
        ("IS_BOOL('True')", True),
        ("IS_BOOL('x')", False),
        ("IS_BOOL(1)", False),
        ("IS_BOOL(false)", True),
        ("int('7') = INT('7') AND Is_Int('7')", True),
    ),
)
def test_casts_by_name(text: str, value: object, kinds: tuple[str, ...]) -> None:
    check(text, value, kinds, EVENT)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("NO_SUCH()", False, "missingFunction"),
        ("NO_SUCH(1 / 0)", False, "missingFunction"),
        ("IS_STRING('a')", False, "missingFunction"),
        ("CONCAT_WS()", False, "missingFunction"),
        ("LENGTH()", False, "missingFunction"),
        ("LENGTH('a', 'b')", False, "missingFunction"),
        ("SUBSTRING('a')", False, "missingFunction"),
        ("SUBSTRING('a', 1, 1, 1)", False, "missingFunction"),
        ("1 + NO_SUCH()", 0, "missingFunction"),
        ("LENGTH(NO_SUCH())", 0, "missingFunction"),
    ),
)
def test_a_call_that_means_no_function_is_an_error(
    text: str, value: object, kinds: tuple[str, ...]
) -> None:
    check(text, value, kinds, EVENT)


def test_a_function_makes_no_text_of_more_than_64_ki_characters() -> None:
    event = {"long": "x" * 40_000}
    check("LENGTH(CONCAT(long))", 40_000, (), event)
    check("CONCAT(long, long)", "", ("functionEvaluation",), event)
    check("CONCAT_WS(long, 'a', 'b', 'c')", "", ("functionEvaluation",), event)
