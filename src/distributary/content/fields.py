"""Typed fields of untrusted documents: every complaint names its place.

A reader asks a `Record` for what it needs; the record checks type and range, and
says `tree[3].link_cost: must be at least 0, not -1` when the file has something else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeGuard

from distributary.arguments import amount_fault, nearest_name, no_such_name
from distributary.content.documents import place_of
from distributary.errors import BadInput, quoted

__all__ = ["NUMBER_MAX", "NUMBER_MIN", "Record", "UnknownKeys", "described", "no_such_name"]

# Products of three such numbers, summed over a million nodes, stay far inside the
# range of a float, and so do their inverses.
NUMBER_MAX = 1e15
NUMBER_MIN = 1e-100
_NAME_CHARACTERS_MAX = 256


class Record:
    """One object of a document, read field by field.

    The place is put together only for a message: a file may hold a million records.
    """

    __slots__ = ("_fields", "_index", "_section")

    def __init__(self, value: object, section: str = "", index: int | None = None) -> None:
        self._section = section
        self._index = index
        if not isinstance(value, dict):
            raise BadInput(self.place() or "document", f"must be an object, not {described(value)}")
        self._fields: dict[str, object] = value

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def given(self, key: str) -> bool:
        """Is the field there, and not null?"""
        return self._fields.get(key) is not None

    @property
    def section(self) -> str:
        """The place without its index: what records of one list have in common."""
        return self._section if self._index is None else f"{self._section}[]"

    @property
    def keys(self) -> Iterable[str]:
        """The keys of the object, known or not, in the document's order."""
        return self._fields.keys()

    def check_keys(self, known: Collection[str], kind: str) -> None:
        """Refuse a key that is not in `known`."""
        for key in self.keys:
            if key not in known:
                near = nearest_name(key, known)
                hint = None if near is None else f"did you mean {near}?"
                raise BadInput(self.place(key), f"is not a field of {kind}", hint=hint)

    def place(self, key: str | None = None) -> str:
        """Return where this record, or its field `key`, is in the document."""
        here = self._section if self._index is None else f"{self._section}[{self._index}]"
        return here if key is None else place_of(here, key)

    def value(self, key: str) -> object:
        """Return the field as it stands; it must be there."""
        try:
            return self._fields[key]
        except KeyError:
            raise BadInput(self.place(key), "is missing") from None

    def record(self, key: str) -> Record:
        """Return the object in field `key`."""
        return Record(self.value(key), self.place(key))

    def name(self, key: str) -> str:
        """Return a name: text that is not empty."""
        value = self.value(key)
        if not _is_name(value):
            raise BadInput(self.place(key), _name_fault(value))
        return value

    def name_or_null(self, key: str) -> str | None:
        """Return a name, or None where the document says null; it must say something."""
        return None if self.value(key) is None else self.name(key)

    def number(self, key: str, default: float | None = None, *, positive: bool = False) -> float:
        """Return a number: 0 (unless `positive`), or between NUMBER_MIN and NUMBER_MAX.

        Without a default, the field must be there.
        """
        if default is not None and key not in self._fields:
            return default
        value = self.value(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadInput(self.place(key), f"must be a number, not {described(value)}")
        fault = amount_fault(value, positive=positive, least=NUMBER_MIN, most=NUMBER_MAX)
        if fault is not None:
            raise BadInput(self.place(key), fault)
        return float(value) + 0.0  # Adding 0 turns -0.0 into 0.0.

    def entries(self, key: str, *, count_max: int) -> list[object]:
        """Return the list in field `key`."""
        value = self.value(key)
        if not isinstance(value, list):
            raise BadInput(self.place(key), f"must be a list, not {described(value)}")
        if len(value) > count_max:
            raise BadInput(
                self.place(key), f"has {len(value):,} entries; at most {count_max:,} are read"
            )
        return value

    def records(self, key: str, *, count_max: int) -> Iterator[Record]:
        """Yield the objects of the list in field `key`."""
        section = self.place(key)
        for index, value in enumerate(self.entries(key, count_max=count_max)):
            yield Record(value, section, index)

    def names(self, key: str, *, count_max: int) -> list[str]:
        """Return the list of names in field `key`; none comes twice."""
        names: list[str] = []
        seen: set[str] = set()
        for index, value in enumerate(self.entries(key, count_max=count_max)):
            if not _is_name(value):
                raise BadInput(f"{self.place(key)}[{index}]", _name_fault(value))
            if value in seen:
                raise BadInput(f"{self.place(key)}[{index}]", f"{quoted(value)} is given twice")
            seen.add(value)
            names.append(value)
        return names


class UnknownKeys:
    """Keys that nobody reads, counted by where they occur.

    They are ignored, so that a file may carry notes of its own, but they are reported,
    so that a misspelt option does not go unnoticed.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[str, int]] = {}

    def note(self, record: Record, known: Collection[str]) -> None:
        """Remember the keys of `record` that are not in `known`."""
        for key in record.keys:
            if key not in known:
                first, count = self._found.get((record.section, key), (record.place(key), 0))
                self._found[record.section, key] = (first, count + 1)

    def warnings(self) -> tuple[str, ...]:
        """Return one sentence for each unknown key, however often it occurs."""
        return tuple(
            f"{first}: is not a known key, and is ignored"
            + (f" (and {count - 1:,} more like it)" if count > 1 else "")
            for first, count in self._found.values()
        )


def described(value: object) -> str:
    """Return what a value is, short enough for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the string {quoted(value)}"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int) and value.bit_length() > 1000:
        return "an integer of hundreds of digits"
    return f"{value:g}" if isinstance(value, int | float) else type(value).__name__


def _is_name(value: object) -> TypeGuard[str]:
    # Names outside ASCII are welcome; half a surrogate pair is not text, and could not
    # be written to any file.
    return (
        isinstance(value, str)
        and 0 < len(value) <= _NAME_CHARACTERS_MAX
        and (value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value))
    )


def _name_fault(value: object) -> str:
    if not isinstance(value, str):
        return f"must be a string, not {described(value)}"
    if not value:
        return "must not be empty"
    if len(value) > _NAME_CHARACTERS_MAX:
        return f"has {len(value):,} characters; a name has at most {_NAME_CHARACTERS_MAX}"
    return f"{quoted(value)} has half of a surrogate pair, which is not text"
