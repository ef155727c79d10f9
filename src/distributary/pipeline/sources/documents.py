"""Values of JSON documents as values of columns, one by one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from distributary.content.fields import described
from distributary.content.timestamps import parse_timestamp, timestamp_ns
from distributary.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["WRITTEN_OUT", "value_of"]

WRITTEN_OUT = frozenset({"filters", "profile", "tolerance", "bounds", "plan"})
"""Columns that hold JSON as text; a document may have the value itself in their place."""


def value_of(name: str, value: object, kind: pa.DataType) -> object:
    """Return a value as Arrow takes it for a column of a type, or raise `BadInput`."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_string(kind):
        if name in WRITTEN_OUT and isinstance(value, list | dict):
            value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return _text(name, value)
    if pa.types.is_timestamp(kind):
        return timestamp_ns(parse_timestamp(name, value)) // 1000
    if pa.types.is_floating(kind):
        return _number(name, value)
    if pa.types.is_integer(kind):
        return _integer(name, value, kind.bit_width)
    if pa.types.is_list(kind):
        if not isinstance(value, list):
            raise BadInput(name, f"must be a list of numbers, not {described(value)}")
        return [_number(name, item) for item in value]
    return _entries(name, value, _entry_reader(kind.item_type))


def _entry_reader(kind: pa.DataType) -> Callable[[str, object], object]:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return _attribute
    return _text if pa.types.is_string(kind) else _number


def _entries(
    name: str, value: object, read: Callable[[str, object], object]
) -> list[tuple[str, object]]:
    if not isinstance(value, Mapping):
        raise BadInput(name, f"must be an object, not {described(value)}")
    return [(_text(name, key), read(name, item)) for key, item in value.items()]


def _attribute(name: str, value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or set(value) != {"type", "text"}:
        raise BadInput(name, 'must have entries such as {"type": "String", "text": "a"}')
    return {"type": _text(name, value["type"]), "text": _text(name, value["text"])}


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadInput(name, f"must be a string, not {described(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadInput(name, "has half of a surrogate pair, which is not text") from None
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(name, f"must be a number, not {described(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise BadInput(name, "is not a finite number")
    return number


def _integer(name: str, value: object, bits: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(name, f"must be a whole number, not {described(value)}")
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise BadInput(name, f"is not a whole number of {bits} bits")
    return value
