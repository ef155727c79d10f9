"""Attributes in CESQL: their types, and what a missing one does to the expression around it."""

from __future__ import annotations

import datetime
from enum import StrEnum

import pytest
from tests.cesql_outcomes import cases, check

EAST = datetime.timezone(datetime.timedelta(hours=2))


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("text", "text"),
        ("", ""),
        (7, 7),
        (-2_147_483_648, -2_147_483_648),
        (2_147_483_648, "2147483648"),
        (True, True),
        (False, False),
        (1.5, "1.5"),
        (b"\x00\xff", "AP8="),
        (Colour.RED, "red"),
        (datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC), "2024-05-01T12:00:00Z"),
        (datetime.datetime(2018, 4, 26, 14, 48, 9, tzinfo=EAST), "2018-04-26T14:48:09+02:00"),
    ],
    ids=str,
)
def test_an_attribute_that_is_no_integer_or_boolean_is_a_string(
    given: object, value: object
) -> None:
    check("att", value, (), {"att": given})
    check("ATT IN (att)", True, (), {"att": given})
    check("att = att", True, (), {"att": given})


@pytest.mark.parametrize(
    "event",
    [{}, {"att": None}, {"ATT": "x"}, {"att": 10**5000}],
    ids=["absent", "null", "in capitals", "beyond writing"],
)
def test_an_attribute_without_a_value_is_missing(event: dict[str, object]) -> None:
    check("att", False, ("missingAttribute",), event)


def test_the_payload_is_no_attribute() -> None:
    check("data", False, ("missingAttribute",), {"data": "x"})
    check("data = 'x'", False, ("missingAttribute",), {"data": "x"})
    check("data LIKE '%'", False, ("missingAttribute",), {"data": "x"})


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("missing", False, "missingAttribute"),
        ("(missing)", False, "missingAttribute"),
        ("missing = ''", False, "missingAttribute"),
        ("missing != ''", False, "missingAttribute"),
        ("missing <> 1", False, "missingAttribute"),
        ("1 = missing", False, "missingAttribute"),
        ("missing < 1", False, "missingAttribute"),
        ("1 >= missing", False, "missingAttribute"),
        ("missing * 5", 0, "missingAttribute"),
        ("5 + missing", 0, "missingAttribute"),
        ("1 / missing", 0, "missingAttribute"),
        ("missing / 0", 0, "missingAttribute"),
        ("missing % 0", 0, "missingAttribute"),
        ("-missing", 0, "missingAttribute"),
        ("-(missing)", 0, "missingAttribute"),
        ("NOT missing", False, "missingAttribute"),
        ("NOT (missing)", False, "missingAttribute"),
        ("missing AND true", False, "missingAttribute"),
        ("missing OR true", False, "missingAttribute"),
        ("missing XOR true", False, "missingAttribute"),
        ("LENGTH(missing)", 0, "missingAttribute"),
        ("UPPER(missing)", "", "missingAttribute"),
        ("CONCAT('a', missing)", "", "missingAttribute"),
        ("ABS(missing)", 0, "missingAttribute"),
        ("IS_INT(missing)", False, "missingAttribute"),
        ("INT(missing)", 0, "missingAttribute"),
        ("STRING(missing)", "", "missingAttribute"),
        ("BOOL(missing)", False, "missingAttribute"),
        ("true AND (missing = '')", False, "missingAttribute"),
        ("missing = 1 OR true", False, "missingAttribute"),
        ("(missing * 5) = 0", False, "missingAttribute"),
        ("NOT (missing = 1)", False, "missingAttribute"),
        ("LENGTH(CONCAT(missing)) = 0", False, "missingAttribute"),
        ("missing = gone", False, "missingAttribute", "missingAttribute"),
        ("missing = missing", False, "missingAttribute"),
        ("missing + 1 / 0", 0, "math", "missingAttribute"),
        ("missing OR 1 / 0 = 1", False, "math", "missingAttribute"),
        ("missing AND 1 / 0 = 1", False, "missingAttribute"),
    ),
)
def test_what_refers_to_a_missing_attribute_has_the_zero_value_of_its_type(
    text: str, value: object, kinds: tuple[str, ...]
) -> None:
    check(text, value, kinds)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("1 != 1 / 0", False, "math"),
        ("1 / 0 = 0", False, "math"),
        ("true AND (1 != 1 / 0)", False, "math"),
        ("1 / 0 + 5", 0, "math"),
        ("-(1 / 0)", 0, "math"),
        ("NOT (1 / 0 = 1)", False, "math"),
        ("UPPER(LEFT('abc', -1))", "", "functionEvaluation"),
        ("LEFT('abc', -1) LIKE 'abc'", False, "functionEvaluation"),
        ("LEFT('abc', -1) IN ('abc')", False, "functionEvaluation"),
        ("LEFT('abc', -1) AND true", False, "functionEvaluation"),
        ("LEFT('abc', -1) OR true", False, "functionEvaluation"),
        ("NOT 10 AND true", False, "cast"),
        ("NOT 10 OR missing", False, "cast"),
        ("NOT 10 AND 1 / 0 = 1", False, "cast", "math"),
        ("NOT 10 AND true AND 1 / 0 = 1", False, "cast"),
        ("NOT 10 OR true OR 1 / 0 = 1", False, "cast", "math"),
        ("INT('x') = 0", False, "cast"),
        ("'x' + 1 = 1", False, "cast"),
        ("1 / 0 = 'x' + 1", False, "cast", "math"),
    ),
)
def test_an_error_in_an_operand_leaves_the_zero_value(
    text: str, value: object, kinds: tuple[str, ...]
) -> None:
    check(text, value, kinds)
