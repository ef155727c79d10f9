"""Batches of the table `publications` as the arrays that compiled loops read.

Needs pyarrow, which is imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.content.arrow_columns import (
    Column,
    check_table,
    numbers_of,
    text_column,
    validity,
)
from distributary.content.attributes import AttributeValue
from distributary.errors import BadInput, quoted
from distributary.filters import _arrow_kernels as kernels
from distributary.filters._decision_kernels import Events
from distributary.filters._text_kernels import TextArrays
from distributary.filters.events import empty_events
from distributary.filters.growth import read_only
from distributary.filters.sql_casts import integer_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EventRow", "EventTable"]

# Places for a number or a text in a chunk of events.
_CHUNK_PLACES = 2**19
_CHUNK_EVENTS_MAX = 4096


class EventRow:
    """One publication of a table, as filters read it.

    What a filter asks for is read from the table when it asks: most ask for little.
    """

    def __init__(self, table: EventTable, index: int) -> None:
        self._table = table
        self._index = index

    @cached_property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """The attributes by name."""
        return self._table.attributes_of(self._index)

    @cached_property
    def numbers(self) -> Mapping[str, float]:
        """The numbers in the data by JSON Pointer."""
        return self._table.numbers_of(self._index)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The texts in the data by JSON Pointer."""
        return self._table.texts_of(self._index)


class _Map(NamedTuple):
    """A column of maps: row `e` has the entries from `entries[e]` to `entries[e + 1]`."""

    entries: IntArray
    present: BoolArray
    keys: Column

    def rows(self, first: int, end: int) -> tuple[IntArray, BoolArray]:
        """Return `entries` and `present` of some rows."""
        return self.entries[first : end + 1], self.present[first:end]

    def entries_of(self, row: int) -> slice:
        """Return where the entries of a row are."""
        if not self.present[row]:
            return slice(0, 0)
        return slice(int(self.entries[row]), int(self.entries[row + 1]))


class EventTable:
    """The events of a batch of the table `publications`.

    Its columns `attributes`, `numbers` and `texts` are read, and no others.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        check_table("publications", batch)
        self._batch = batch
        attributes = _map_column(batch, "attributes")
        numbers = _map_column(batch, "numbers")
        texts = _map_column(batch, "texts")
        self._attributes = _flattened(attributes)
        self._attribute_names = attributes.keys
        self._attribute_kinds = _field(attributes, "type")
        self._attribute_texts = _field(attributes, "text")
        self._attribute_column = text_column(self._attribute_texts)
        self._numbers = _flattened(numbers)
        self._number_values: FloatArray = _doubles(numbers.items)
        self._texts = _flattened(texts)
        self._text_column = text_column(texts.items)

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def chunks(
        self, keys: TextArrays, key_count: int, numeric: NDArray[np.bool_]
    ) -> Iterator[tuple[int, Events]]:
        """Yield the events, so many at a time that they fit into a cache, with the first's row.

        `keys` are those that filters read, and `numeric` says which of them are attributes
        that are read as numbers.
        """
        size = max(1, min(_CHUNK_EVENTS_MAX, _CHUNK_PLACES // max(key_count, 1)))
        for first in range(0, len(self), size):
            end = min(len(self), first + size)
            yield first, self._events(first, end, keys, key_count, numeric)

    def _events(
        self, first: int, end: int, keys: TextArrays, key_count: int, numeric: NDArray[np.bool_]
    ) -> Events:
        text_maps = (
            (self._attributes, self._attribute_column, False),
            (self._texts, self._text_column, True),
        )
        spans = [column.offsets[maps.entries[[first, end]]] for maps, column, _ in text_maps]
        parts = zip(text_maps, spans, strict=True)
        data = np.concatenate([column.data[slice(*span)] for (_, column, _), span in parts])
        events = empty_events(end - first, key_count, data)
        size = 0
        for (maps, column, pointers), (begin, stop) in zip(text_maps, spans, strict=True):
            entries, present = maps.rows(first, end)
            found = _found(maps, first, end, keys, pointers=pointers)
            shift = int(size - begin)
            kernels.fill_texts(events, entries, present, found, column.offsets, column.valid, shift)
            size += stop - begin
            if not pointers:
                self._fill_attribute_numbers(events, first, end, found, numeric)
        entries, present = self._numbers.rows(first, end)
        found = _found(self._numbers, first, end, keys, pointers=True)
        values = self._number_values[entries[0] : entries[-1]]
        kernels.fill_numbers(events.numbers, entries, present, found, values)
        return events

    def _fill_attribute_numbers(
        self,
        events: Events,
        first: int,
        end: int,
        found: NDArray[np.int32],
        numeric: NDArray[np.bool_],
    ) -> None:
        import pyarrow as pa

        entries, present = self._attributes.rows(first, end)
        concerned = np.flatnonzero((found >= 0) & numeric[found])
        if not len(concerned):
            return
        values = np.full(len(found), np.nan)
        texts = self._attribute_texts.take(pa.array(concerned + entries[0]))
        values[concerned] = numbers_of(texts)
        kernels.fill_numbers(events.numbers, entries, present, found, read_only(values))

    def row(self, first: int, place: int) -> EventRow:
        """Return the publication at a place of the chunk from `first` on, to be read in Python."""
        return EventRow(self, first + place)

    def attributes_of(self, index: int) -> Mapping[str, AttributeValue]:
        """Return the attributes of one publication."""
        part = self._attributes.entries_of(index)
        names = self._attribute_names[part].to_pylist()
        kinds = self._attribute_kinds[part].to_pylist()
        texts = self._attribute_texts[part].to_pylist()
        return {
            name: _typed(kind, text)
            for name, kind, text in zip(names, kinds, texts, strict=True)
            if text is not None
        }

    def numbers_of(self, index: int) -> Mapping[str, float]:
        """Return the numbers of one publication."""
        found = self._batch.column("numbers")[index].as_py() or ()
        return {key: value for key, value in found if value is not None and np.isfinite(value)}

    def texts_of(self, index: int) -> Mapping[str, str]:
        """Return the texts of one publication."""
        found = self._batch.column("texts")[index].as_py() or ()
        return {key: value for key, value in found if value is not None}


def _typed(kind: str | None, text: str) -> AttributeValue:
    """Return an attribute as CESQL sees it; what does not fit its type is a String."""
    if kind == "Integer":
        number = integer_of(text)
        return text if number is None else number
    if kind == "Boolean" and text in ("true", "false"):
        return text == "true"
    return text


def _map_column(batch: pa.RecordBatch, name: str) -> pa.MapArray:
    import pyarrow as pa

    from distributary.content.publication_table import publications_schema

    if name not in batch.schema.names:
        raise BadInput("publications", f"has no column {quoted(name)}")
    column = batch.column(name)
    kind = publications_schema().field(name).type
    if column.type != kind:
        try:
            column = column.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise BadInput(f"publications.{name}", f"is {column.type}; it must be {kind}") from None
    return column


def _flattened(column: pa.MapArray) -> _Map:
    if len(column) == 0:
        return _Map(np.zeros(1, np.int64), np.ones(0, bool), text_column(column.keys))
    entries = np.asarray(column.offsets.to_numpy(), np.int64)
    return _Map(entries, validity(column), text_column(column.keys))


def _field(column: pa.MapArray, name: str) -> pa.Array:
    """Return a field of the structs in a map, null where the struct is."""
    import pyarrow.compute as pc

    return pc.struct_field(column.items, name)


def _doubles(values: pa.Array) -> FloatArray:
    numbers = values.to_numpy(zero_copy_only=False)
    return read_only(np.asarray(numbers, np.float64))


def _found(
    maps: _Map, first: int, end: int, keys: TextArrays, *, pointers: bool
) -> NDArray[np.int32]:
    """Return the number of the key of each entry of some rows."""
    begin, stop = int(maps.entries[first]), int(maps.entries[end])
    found = np.empty(stop - begin, np.int32)
    column = maps.keys
    kernels.find_keys(keys, column.data, column.offsets, column.valid, begin, pointers, found)
    return found
