"""Columns as Spark's SQL writes them, as Arrow has them: known where no Spark is running."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_schema", "type_name"]

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9]*|[<>,:])")


def arrow_schema(columns: str) -> pa.Schema:
    """Return columns such as `user STRING NOT NULL, costs ARRAY<DOUBLE>` as Arrow has them."""
    import pyarrow as pa

    tokens = _TOKEN.findall(columns)
    fields: list[pa.Field] = []
    while tokens:
        name = tokens.pop(0)
        kind = _taken(tokens)
        needed = [token.upper() for token in tokens[:2]] == ["NOT", "NULL"]
        del tokens[: 2 if needed else 0]
        fields.append(pa.field(name, kind, nullable=not needed))
        del tokens[:1]
    return pa.schema(fields)


def _taken(tokens: list[str]) -> pa.DataType:
    """Return the type that the first tokens are, and take those away."""
    import pyarrow as pa

    word = tokens.pop(0).lower()
    plain = {
        "string": pa.string(),
        "double": pa.float64(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    if word in plain:
        return plain[word]
    parts: list[pa.Field] = []
    while tokens.pop(0) != ">":
        name = ""
        if word == "struct":
            name = tokens.pop(0)
            del tokens[:1]
        parts.append(pa.field(name, _taken(tokens)))
    if word == "struct":
        return pa.struct(parts)
    if word == "array":
        return pa.list_(pa.field("element", parts[0].type))
    assert word == "map", f"{word} is no type of a column"
    return pa.map_(parts[0].type, parts[1].type)


def type_name(kind: pa.DataType) -> str:
    """Return what Spark calls a type, in small letters: `map<string,double>`."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{item.name}:{type_name(item.type)}' for item in kind)}>"
    if pa.types.is_timestamp(kind):
        # Others than microseconds since 1970 in UTC are read as something else, or not at all.
        if kind.unit != "us":
            return str(kind)
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    names = {"large_string": "string", "int64": "bigint", "int32": "int", "date32[day]": "date"}
    return names.get(str(kind), str(kind))
