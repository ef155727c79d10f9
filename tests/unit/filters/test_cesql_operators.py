"""Operators of CESQL, section 3.4 of its specification, one row a case."""

from __future__ import annotations

import pytest
from tests.cesql_outcomes import cases, check

EVENT = {
    "id": "42",
    "source": "/sensors",
    "type": "reading",
    "specversion": "1.0",
    "text": "Hello",
    "count": 3,
    "digits": "12",
    "on": True,
    "off": False,
    "empty": "",
}


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("text = 'Hello'", True),
        ("text = 'hello'", False),
        ("text != 'hello'", True),
        ("text <> 'Hello'", False),
        ("'Hello' = text", True),
        ("empty = ''", True),
        ("1 = 1", True),
        ("1 = 2", False),
        ("1 != 2", True),
        ("1 <> 1", False),
        ("true = true", True),
        ("true != false", True),
        ("false <> false", False),
        # The right operand's type decides.
        ("digits = 12", True),
        ("digits = '12'", True),
        ("'012' = 12", True),
        ("12 = '012'", False),
        ("'+12' = 12", True),
        ("12 = '12'", True),
        ("true = 'true'", True),
        ("true = 'TRUE'", False),
        ("'TRUE' = true", True),
        ("1 = true", True),
        ("2 = true", True),
        ("true = 1", True),
        ("true = 2", False),
        ("0 = false", True),
        ("false = 0", True),
        ("'0' = false", True, "cast"),
        ("'yes' = true", False, "cast"),
        ("'x' = 5", False, "cast"),
        ("'x' = 0", True, "cast"),
        ("'x' != 5", True, "cast"),
        ("count = '3'", True),
        ("count = true", True),
        ("on = 'true'", True),
        ("on = 1", True),
        ("count = digits", False),
        ("TRUE = 'true' AND FALSE = 'false'", True),
        ("TRUE = 'TRUE' OR FALSE = 'FALSE'", False),
    ),
)
def test_equality_casts_to_the_type_on_the_right(
    text: str, value: object, kinds: tuple[str, ...]
) -> None:
    check(text, value, kinds, EVENT)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("1 < 2", True),
        ("2 < 2", False),
        ("2 <= 2", True),
        ("3 <= 2", False),
        ("3 > 2", True),
        ("2 > 2", False),
        ("2 >= 2", True),
        ("1 >= 2", False),
        ("-1 < 0", True),
        ("'10' > '9'", True),
        ("digits > 9", True),
        ("9 < digits", True),
        ("true > false", True),
        ("count <= '3'", True),
        ("'a' < 1", True, "cast"),
        ("1 > 'a'", True, "cast"),
        ("'a' < 'b'", False, "cast", "cast"),
        ("text > 'A'", False, "cast", "cast"),
    ),
)
def test_orders_compare_integers(text: str, value: object, kinds: tuple[str, ...]) -> None:
    check(text, value, kinds, EVENT)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("2 + 3", 5),
        ("2 - 3", -1),
        ("2 * -3", -6),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("-7 / -2", 3),
        ("7 % 2", 1),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("-7 % -2", -1),
        ("0 / 5", 0),
        ("5 / 0", 0, "math"),
        ("5 % 0", 0, "math"),
        ("0 / 0", 0, "math"),
        ("2147483647 + 1", 0, "math"),
        ("-2147483648 - 1", 0, "math"),
        ("65536 * 32768", 0, "math"),
        ("65536 * -32768", -2147483648),
        ("-2147483648 / -1", 0, "math"),
        ("-2147483648 % -1", 0),
        ("2147483647 + 1 - 1", 0, "math"),
        ("2147483647 + (1 - 1)", 2147483647),
        ("'2' + '3'", 5),
        ("2 + true", 3),
        ("false * 5", 0),
        ("digits + count", 15),
        ("'x' + 3", 3, "cast"),
        ("'5a' * 3", 0, "cast"),
        ("1 / 'x'", 0, "cast", "math"),
        ("'2147483648' + 0", 0, "cast"),
        ("' 1' + 0", 0, "cast"),
        ("'1_0' + 0", 0, "cast"),
        ("'٣' + 0", 0, "cast"),
        ("'' + 0", 0, "cast"),
        ("'-' + 0", 0, "cast"),
        ("'+7' + 0", 7),
        ("'-7' + 0", -7),
        ("'000000000000000000007' + 0", 7),
        ("10 - 2 - 3", 5),
        ("24 / 4 / 2", 3),
        ("7 % 4 * 2", 6),
    ),
)
def test_arithmetic_is_of_32_bits_and_rounds_towards_zero(
    text: str, value: object, kinds: tuple[str, ...]
) -> None:
    check(text, value, kinds, EVENT)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("-5", -5),
        ("-count", -3),
        ("--count", 3),
        ("- 5", -5),
        ("-'5'", -5),
        ("-true", -1),
        ("-'x'", 0, "cast"),
        ("--2147483648", 0, "math"),
        ("-(-2147483648)", 0, "math"),
        ("-(-2147483647)", 2147483647),
        ("NOT true", False),
        ("NOT false", True),
        ("NOT NOT true", True),
        ("NOT on", False),
        ("NOT 'false'", True),
        ("NOT 'True'", False),
        ("NOT 'x'", True, "cast"),
        ("NOT 10", True, "cast"),
        ("NOT 0", True, "cast"),
        ("NOT count", True, "cast"),
        ("NOT (count = 4)", True),
    ),
)
def test_unary_operators(text: str, value: object, kinds: tuple[str, ...]) -> None:
    check(text, value, kinds, EVENT)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("true AND true", True),
        ("true AND false", False),
        ("false AND true", False),
        ("false AND false", False),
        ("true OR true", True),
        ("true OR false", True),
        ("false OR true", True),
        ("false OR false", False),
        ("true XOR true", False),
        ("true XOR false", True),
        ("false XOR true", True),
        ("false XOR false", False),
        ("1 AND 'true'", True),
        ("0 OR 'FALSE'", False),
        ("1 XOR 1", False),
        ("on AND count", True),
        ("'x' AND true", False, "cast"),
        ("true AND 'x'", False, "cast"),
        ("'x' OR true", True, "cast"),
        ("'x' XOR true", True, "cast"),
        # One precedence, left to right.
        ("true OR true AND false", False),
        ("false AND true OR true", True),
        ("true XOR true AND false", False),
        ("true OR false XOR true", False),
        ("false AND false XOR true OR false", True),
        # Nothing of an operand that is not needed is seen.
        ("false AND 1 / 0", False),
        ("true OR 1 / 0", True),
        ("false AND missing", False),
        ("true OR missing", True),
        ("true OR NO_SUCH()", True),
        ("false AND missing OR true", True),
        ("true OR missing AND true", True),
        ("true AND (false OR true OR missing)", True),
        ("true AND 1 / 0", False, "math"),
        ("false OR 1 / 0", False, "math"),
        ("true XOR missing", False, "missingAttribute"),
        ("false XOR missing", False, "missingAttribute"),
    ),
)
def test_logic_goes_from_left_to_right_and_stops_early(
    text: str, value: object, kinds: tuple[str, ...]
) -> None:
    check(text, value, kinds, EVENT)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("text LIKE 'Hello'", True),
        ("text LIKE 'hello'", False),
        ("text LIKE 'He%'", True),
        ("text LIKE '%lo'", True),
        ("text LIKE '%ell%'", True),
        ("text LIKE 'H_l_o'", True),
        ("text LIKE 'H_o'", False),
        ("text LIKE '%'", True),
        ("empty LIKE '%'", True),
        ("empty LIKE '_'", False),
        ("empty LIKE ''", True),
        ("text NOT LIKE 'He%'", False),
        ("text NOT LIKE 'x%'", True),
        ("'abc%' LIKE 'abc\\%'", True),
        ("'abcd' LIKE 'abc\\%'", False),
        ("'a_c' LIKE 'a\\_c'", True),
        ("'abc' LIKE 'a\\_c'", False),
        ("'a\\b' LIKE 'a\\b'", True),
        ("'a\\b' LIKE 'a_b'", True),
        ("'it''s' LIKE 'it\\'s'", True),
        ('"say ""hi""" LIKE \'say "__"\'', True),
        ("'a.c' LIKE 'a.c'", True),
        ("'abc' LIKE 'a.c'", False),
        ("'_b*' LIKE '_b*'", True),
        ("'abcd1' LIKE '_b%'", True),
        ("'b' LIKE '_b%'", False),
        ("'aBc' LIKE '_b%'", False),
        ("count LIKE '3'", True),
        ("-12 LIKE '-1_'", True),
        ("on LIKE 'tr%'", True),
        ("'é🜁' LIKE '__'", True),
        ("'line\nbreak' LIKE 'line_break'", True),
        ("missing LIKE '%'", False, "missingAttribute"),
        ("missing NOT LIKE '%'", False, "missingAttribute"),
    ),
)
def test_like_matches_all_of_the_text(text: str, value: object, kinds: tuple[str, ...]) -> None:
    check(text, value, kinds, EVENT)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("EXISTS text", True),
        ("EXISTS empty", True),
        ("EXISTS off", True),
        ("EXISTS TEXT", True),
        ("EXISTS missing", False),
        ("NOT EXISTS missing", True),
        ("EXISTS data", False),
        ("EXISTS null", False),
        ("EXISTS true1", False),
        ("EXISTS text AND text = 'Hello'", True),
    ),
)
def test_exists_tells_whether_an_attribute_is_there(
    text: str, value: object, kinds: tuple[str, ...]
) -> None:
    check(text, value, kinds, {**EVENT, "data": "payload", "null": None})


@pytest.mark.parametrize("name", ["id", "source", "type", "specversion", "ID"])
def test_required_attributes_exist_in_every_event(name: str) -> None:
    check(f"EXISTS {name}", True, (), {})


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    cases(
        ("count IN (1, 2, 3)", True),
        ("count IN (1, 2)", False),
        ("count NOT IN (1, 2)", True),
        ("count NOT IN (3)", False),
        ("text IN ('Hello', 'x')", True),
        ("text IN ('hello')", False),
        ("on IN (false, true)", True),
        # The left operand's type decides.
        ("count IN ('3')", True),
        ("count IN ('03')", True),
        ("'3' IN (3)", True),
        ("'03' IN (3)", False),
        ("digits IN (12)", True),
        ("'true' IN (TRUE)", True),
        ("'TRUE' IN (TRUE)", False),
        ("TRUE IN ('true')", True),
        ("TRUE IN ('TRUE')", True),
        ("true IN (2)", True),
        ("2 IN (true)", False),
        ("1 IN (true)", True),
        ("1 IN ('x', 1)", True, "cast"),
        ("1 IN ('x', 2)", False, "cast"),
        ("0 IN ('x')", True, "cast"),
        ("1 NOT IN ('x', 2)", True, "cast"),
        ("text IN (id, 'Hello')", True),
        ("'42' IN (digits, id)", True),
        ("count IN (1 + 1, 1 + 2)", True),
        ("count IN (1, 1 / 0)", False, "math"),
        ("count IN (3, 1 / 0)", False, "math"),
        ("count IN (digits, text)", False, "cast"),
        ("missing IN ('a')", False, "missingAttribute"),
        ("missing NOT IN ('a')", False, "missingAttribute"),
        ("'a' IN ('a', missing)", False, "missingAttribute"),
        ("'a' NOT IN ('b', missing)", False, "missingAttribute"),
    ),
)
def test_in_casts_to_the_type_on_the_left(text: str, value: object, kinds: tuple[str, ...]) -> None:
    check(text, value, kinds, EVENT)
