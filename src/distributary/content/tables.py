"""Tables of a TOML file: what each may say, and how it is checked.

A table is a dataclass. Its fields say what may stand in the file; their metadata says within
which bounds. Whatever else stands there is refused by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_type_hints

from distributary.content.documents import place_of
from distributary.content.fields import described, no_such_name
from distributary.errors import BadInput, quoted

__all__ = ["bounded", "fraction", "one_of", "pair", "read_table"]

_Table = TypeVar("_Table")
_LEAST, _MOST, _CHOICES, _PAIR = "least", "most", "choices", "pair"
_WRITTEN_MAX = 10**15


def bounded(default: Any, least: float, most: float) -> Any:
    """Return a field for a number within bounds."""
    return dataclasses.field(default=default, metadata={_LEAST: least, _MOST: most})


def fraction(default: float | None) -> Any:
    """Return a field for a number from 0 to 1."""
    return bounded(default, 0.0, 1.0)


def pair(default: tuple[float, float], least: float, most: float) -> Any:
    """Return a field for the least and the most of something, both within bounds."""
    return dataclasses.field(default=default, metadata={_LEAST: least, _MOST: most, _PAIR: True})


def one_of(default: Any, *choices: str) -> Any:
    """Return a field for one of several words."""
    return dataclasses.field(default=default, metadata={_CHOICES: choices})


def read_table(cls: type[_Table], value: object, place: str) -> _Table:
    """Return a table of a file, or raise `BadInput` naming the field.

    Every field of the dataclass has a default unless the file must give it.
    """
    if not isinstance(value, Mapping):
        raise BadInput(place, f"must be a table, not {described(value)}")
    assert dataclasses.is_dataclass(cls)
    hints = get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    given: dict[str, Any] = {}
    for key, entry in value.items():
        where = place_of(place, key)
        if key not in fields:
            raise no_such_name(where, key, fields, "a field here")
        given[key] = _checked(entry, hints[key], fields[key].metadata, where)
    for name, field in fields.items():
        missing = dataclasses.MISSING
        if name not in given and field.default is missing and field.default_factory is missing:
            raise BadInput(f"{place}.{name}", "is missing")
    return cls(**given)


def _checked(value: Any, hint: Any, metadata: Mapping[str, Any], place: str) -> Any:
    """Return the value of a field as its type wants it."""
    kinds = get_args(hint) or (hint,)
    if dataclasses.is_dataclass(kinds[0]):
        return read_table(kinds[0], value, place)  # type: ignore[arg-type]
    if metadata.get(_PAIR):
        return _pair(value, metadata, place)
    if hint == tuple[str, ...]:
        return tuple(_text(entry, f"{place}[{k}]") for k, entry in enumerate(_list(value, place)))
    if hint == tuple[int, ...]:
        return tuple(
            int(_number(entry, metadata, f"{place}[{k}]", whole=True))
            for k, entry in enumerate(_list(value, place))
        )
    if bool in kinds:
        if not isinstance(value, bool):
            raise BadInput(place, f"must be true or false, not {described(value)}")
        return value
    if str in kinds:
        text = _text(value, place)
        if _CHOICES in metadata and text not in metadata[_CHOICES]:
            known = metadata[_CHOICES]
            error = no_such_name(place, text, known, f"one of {', '.join(known)}")
            raise error
        return text
    number = _number(value, metadata, place, whole=int in kinds and float not in kinds)
    return int(number) if int in kinds and float not in kinds else number


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadInput(place, f"must be a list, not {described(value)}")
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise BadInput(place, f"must be a text that is not empty, not {described(value)}")
    return value


def _number(value: Any, metadata: Mapping[str, Any], place: str, *, whole: bool) -> float:
    kinds = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, kinds):
        rule = "a whole number" if whole else "a number"
        raise BadInput(place, f"must be {rule}, not {described(value)}")
    least, most = metadata.get(_LEAST, 0.0), metadata.get(_MOST, 1e9)
    if not least <= value <= most:
        bounds = f"from {_written(least)} to {_written(most)}"
        raise BadInput(place, f"is {_written(value)}, and must be {bounds}")
    return value if whole else float(value)


def _written(value: float) -> str:
    """Return a number as a person writes it, and a long one in a few words."""
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}" if abs(value) < _WRITTEN_MAX else described(value)
    return f"{value:g}"


def _pair(value: Any, metadata: Mapping[str, Any], place: str) -> tuple[float, float]:
    entries = _list(value, place)
    if len(entries) != 2:
        raise BadInput(place, f"has {len(entries)} entries; it has two, the least and the most")
    low, high = (
        _number(entry, metadata, f"{place}[{k}]", whole=False) for k, entry in enumerate(entries)
    )
    if low > high:
        raise BadInput(place, f"has {quoted(f'{low:g}')} before {quoted(f'{high:g}')}, the lesser")
    return low, high
