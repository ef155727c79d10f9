"""Casts between the types of CESQL, and values of attributes as CESQL sees them."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable

from distributary.content.attributes import attribute_text
from distributary.errors import quoted
from distributary.filters.evaluation import ErrorKind, Errors, EvaluationError
from distributary.filters.sql_tree import Value, ValueType

__all__ = [
    "CASTS",
    "INTEGER_MAX",
    "INTEGER_MIN",
    "attribute_value",
    "integer_of",
    "to_boolean",
    "to_integer",
    "to_string",
]

INTEGER_MIN, INTEGER_MAX = -(2**31), 2**31 - 1
_INTEGER_DIGITS_MAX = 10
# Zeros in front of an integer do no harm, but an expression may cast a text a thousand times.
_INTEGER_CHARACTERS_MAX = 1024
_BOOLEAN_CHARACTERS_MAX = 5


def integer_of(text: str) -> int | None:
    """Return the 32-bit integer that `text` writes in base 10, or None.

    Python's own reading would also take blanks, underscores and the digits of every script,
    and refuses texts of some thousand digits with an exception. A text of more than 1,024
    characters is none, whatever they are.
    """
    if len(text) > _INTEGER_CHARACTERS_MAX:
        return None
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > _INTEGER_DIGITS_MAX:
        return None
    value = -int(digits) if text[0] == "-" else int(digits)
    return value if INTEGER_MIN <= value <= INTEGER_MAX else None


def to_string(value: Value, errors: Errors) -> str:
    """Return the value as a String, which always succeeds."""
    return value if type(value) is str else attribute_text(value)


def to_integer(value: Value, errors: Errors) -> int:
    """Return the value as an Integer: 0, and an error, for a text that is none."""
    if isinstance(value, int):
        return int(value)
    number = integer_of(value)
    if number is not None:
        return number
    errors.append(EvaluationError(ErrorKind.CAST, f"{quoted(value)} is not a 32-bit integer"))
    return 0


def to_boolean(value: Value, errors: Errors) -> bool:
    """Return the value as a Boolean: false, and an error, for a text that is none."""
    if isinstance(value, int):
        return bool(value)
    # No text becomes shorter in lower case.
    lowered = value.lower() if len(value) <= _BOOLEAN_CHARACTERS_MAX else ""
    if lowered == "true":
        return True
    if lowered != "false":
        errors.append(EvaluationError(ErrorKind.CAST, f"{quoted(value)} is not a boolean"))
    return False


CASTS: dict[ValueType, Callable[[Value, Errors], Value]] = {
    ValueType.STRING: to_string,
    ValueType.INTEGER: to_integer,
    ValueType.BOOLEAN: to_boolean,
}


def attribute_value(value: object) -> Value | None:
    """Return the value of an attribute as CESQL sees it; None when there is none.

    Whatever is not a String, an Integer of 32 bits or a Boolean is seen as a String.
    """
    if value is None or isinstance(value, bool) or type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and INTEGER_MIN <= value <= INTEGER_MAX:
        return int(value)
    if isinstance(value, datetime.datetime):
        text = value.isoformat()
        return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    try:
        return str(value)
    except ValueError:
        # Python writes out no integer of several thousand digits; CloudEvents has none.
        return None
