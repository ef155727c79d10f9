"""Conditions on rows, as people write them: `user=ann`, `total_cost>=2.5`, `failure!=null`."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from distributary.content.timestamps import parse_timestamp
from distributary.errors import BadInput, quoted
from distributary.pipeline.arrow_types import type_name

if TYPE_CHECKING:
    import pyarrow as pa

    from distributary.pipeline.schemas import TableSchema

__all__ = ["conditions"]

_CONDITION = re.compile(r"\s*(\w+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_COMPARED = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NULL = "null"


def conditions(declared: TableSchema, texts: Sequence[str]) -> Any:
    """Return what rows have to meet, all of it, as an expression of Arrow; None if nothing."""
    found = None
    for text in texts:
        one = _condition(declared, text)
        found = one if found is None else found & one
    return found


def _condition(declared: TableSchema, text: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = _CONDITION.fullmatch(text)
    if parts is None:
        raise BadInput(
            "--where", f"{quoted(text)} is no condition", hint="write it as in user=ann or value>=2"
        )
    name, sign, value = parts.groups()
    names = declared.stored.names
    if name not in names:
        raise BadInput(
            "--where",
            f"{quoted(name)} is no column of {declared.name}",
            hint=f"it has the columns {', '.join(names)}",
        )
    kind = declared.stored.field(name).type
    field = pc.field(name)
    if value == _NULL and sign in ("=", "!="):
        return field.is_null() if sign == "=" else field.is_valid()
    return _COMPARED[sign](field, pa.scalar(_typed(name, value, kind), kind))


def _typed(name: str, value: str, kind: pa.DataType) -> object:
    import pyarrow as pa

    place = f"--where {name}"
    if pa.types.is_string(kind):
        return value
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(parse_timestamp(place, value))
    try:
        if pa.types.is_date(kind):
            return date.fromisoformat(value)
        if pa.types.is_integer(kind):
            return int(value)
        if pa.types.is_floating(kind):
            return float(value)
    except ValueError:
        raise BadInput(place, f"{quoted(value)} is not of its type, {type_name(kind)}") from None
    raise BadInput(place, f"is {type_name(kind)}, which cannot be compared")
