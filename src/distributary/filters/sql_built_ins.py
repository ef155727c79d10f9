"""The built-in functions of CESQL v1.0.0, and the casts that its examples call by name."""

from __future__ import annotations

from distributary.errors import quoted
from distributary.filters.evaluation import ErrorKind
from distributary.filters.sql_casts import INTEGER_MAX, INTEGER_MIN, integer_of
from distributary.filters.sql_functions import Function, FunctionFailed, Functions
from distributary.filters.sql_tree import Value, ValueType

__all__ = ["BUILT_INS", "TEXT_CHARACTERS_MAX"]

TEXT_CHARACTERS_MAX = 65_536
"""How long a text a function may put together: a short expression could ask for gigabytes."""

_STRING, _INTEGER, _BOOLEAN = ValueType.STRING, ValueType.INTEGER, ValueType.BOOLEAN

# White_Space of Unicode. `str.strip` would also take U+001C to U+001F, which are control
# characters without that property.
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def _concat_with(delimiter: str, *texts: str) -> str:
    length = sum(map(len, texts)) + len(delimiter) * max(0, len(texts) - 1)
    if length > TEXT_CHARACTERS_MAX:
        raise FunctionFailed(
            f"a text of {length:,} characters is too long: at most {TEXT_CHARACTERS_MAX:,}"
        )
    return delimiter.join(texts)


def _concat(*texts: str) -> str:
    return _concat_with("", *texts)


def _trimmed(text: str) -> str:
    return text.strip(_WHITE_SPACE)


def _left(text: str, count: int) -> str:
    if count < 0:
        raise FunctionFailed(f"LEFT cannot take {count} characters", value=text)
    return text[:count]


def _right(text: str, count: int) -> str:
    if count < 0:
        raise FunctionFailed(f"RIGHT cannot take {count} characters", value=text)
    return text[max(0, len(text) - count) :]


def _substring(text: str, position: int, length: int = INTEGER_MAX) -> str:
    if length < 0:
        raise FunctionFailed(f"SUBSTRING cannot have {length} characters")
    if not -len(text) <= position <= len(text):
        raise FunctionFailed(f"SUBSTRING: there is no character {position} in {quoted(text)}")
    if position == 0:
        return ""
    start = position - 1 if position > 0 else len(text) + position
    return text[start : start + length]


def _absolute(number: int) -> int:
    if number == INTEGER_MIN:
        raise FunctionFailed(
            f"ABS({INTEGER_MIN}) does not fit into 32 bits",
            value=INTEGER_MAX,
            kind=ErrorKind.MATH,
        )
    return abs(number)


def _is_integer(value: Value) -> bool:
    if isinstance(value, str):
        return integer_of(value) is not None
    return not isinstance(value, bool)


def _is_boolean(value: Value) -> bool:
    if isinstance(value, str):
        return len(value) <= len("false") and value.lower() in ("true", "false")
    return isinstance(value, bool)


def _identity(value: Value) -> Value:
    """Return the argument: the cast to the parameter's type has done the work."""
    return value


BUILT_INS = Functions(
    (
        Function("LENGTH", (_STRING,), _INTEGER, len),
        Function("CONCAT", (), _STRING, _concat, rest=_STRING),
        Function("CONCAT_WS", (_STRING,), _STRING, _concat_with, rest=_STRING),
        Function("LOWER", (_STRING,), _STRING, str.lower),
        Function("UPPER", (_STRING,), _STRING, str.upper),
        Function("TRIM", (_STRING,), _STRING, _trimmed),
        Function("LEFT", (_STRING, _INTEGER), _STRING, _left),
        Function("RIGHT", (_STRING, _INTEGER), _STRING, _right),
        Function("SUBSTRING", (_STRING, _INTEGER), _STRING, _substring),
        Function("SUBSTRING", (_STRING, _INTEGER, _INTEGER), _STRING, _substring),
        Function("ABS", (_INTEGER,), _INTEGER, _absolute),
        Function("INT", (_INTEGER,), _INTEGER, _identity),
        Function("BOOL", (_BOOLEAN,), _BOOLEAN, _identity),
        Function("STRING", (_STRING,), _STRING, _identity),
        Function("IS_INT", (None,), _BOOLEAN, _is_integer),
        Function("IS_BOOL", (None,), _BOOLEAN, _is_boolean),
    )
)
"""The functions that expressions can call unless they are given others."""
