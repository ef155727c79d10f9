"""What the index does in batches: tables of subscriptions and of publications in Arrow.

Needs pyarrow, which is imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from distributary.arguments import check_type
from distributary.arrays import IntArray
from distributary.content.arrow_columns import Column, check_table, text_column
from distributary.content.documents import parse_document
from distributary.errors import BadInput, quoted
from distributary.filters.arrow_events import EventTable
from distributary.filters.arrow_subscriptions import gathered_texts, row_chunks, scanned
from distributary.filters.filter import Filter
from distributary.filters.sql_functions import Functions
from distributary.filters.subscription_store import SubscriptionStore

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ID_BYTES_MAX",
    "add_table",
    "id_table",
    "match_table",
    "matched_chunks",
    "slots_in",
]

ID_BYTES_MAX = 4096
_ARROW_BYTES_MAX = 2**31 - 1


def add_table(
    store: SubscriptionStore, subscriptions: pa.Table | pa.RecordBatch, functions: Functions
) -> None:
    """Append the subscriptions of a table to the store; the caller has to `place` them.

    When a subscription is refused, what was appended before it is removed again.
    """
    check_table("subscriptions", subscriptions)
    first = store.decisions.slots
    ids = text_column(_column(subscriptions, "subscription_id"))
    filters = text_column(_column(subscriptions, "filters"))
    for name, column in (("subscription_id", ids), ("filters", filters)):
        if not column.valid.all():
            row = int(np.flatnonzero(~column.valid)[0])
            raise BadInput(f"subscriptions.{name}", f"row {row:,} is null")
    numbers = _new_ids(store, ids)
    try:
        for begin, end in row_chunks(filters):
            found = scanned(filters, begin, end, store.keys, store.texts)
            if begin == 0 and end < len(numbers):
                steps = len(found.steps) * len(numbers) // end * 17 // 16
                store.decisions.reserve(len(numbers), steps)
            store.append(numbers[begin:end][found.plain], found.steps, found.counts, found.counts)
            others = begin + np.flatnonzero(~found.plain)
            parsed = [_parsed(filters, ids, int(row), functions) for row in others]
            store.append_filters(numbers[others], parsed)
    except BadInput:
        store.remove(np.arange(first, store.decisions.slots, dtype=np.int32))
        raise


def slots_in(
    store: SubscriptionStore, subscription_ids: pa.Array | pa.ChunkedArray
) -> NDArray[np.int32]:
    """Return the slots of subscriptions; all of them must be there."""
    import pyarrow as pa

    check_type("subscription_ids", subscription_ids, pa.Array, pa.ChunkedArray)
    column = text_column(_combined(subscription_ids))
    numbers = store.ids.find_spans(column.data, column.offsets[:-1], np.diff(column.offsets))
    slots = store.slots_of(np.where(column.valid, numbers, -1).astype(np.int32))
    missing = np.flatnonzero(slots < 0)
    if len(missing):
        raise BadInput("subscription", f"{quoted(_text(column, int(missing[0])))} is not there")
    if len(np.unique(slots)) < len(slots):
        raise BadInput("subscription_ids", "has an id twice")
    return slots


def matched_chunks(
    store: SubscriptionStore, publications: pa.RecordBatch
) -> Iterator[tuple[IntArray, NDArray[np.int32]]]:
    """Yield the rows of publications and the numbers of the ids of what they match.

    Some publications at a time, in their order: all matches of a batch may be too many.
    """
    table = EventTable(publications)
    numeric = np.zeros(len(store.keys) + 1, bool)
    numeric[[store.key_numbers[name] for name in sorted(store.numeric)]] = True
    for first, events in table.chunks(store.keys.arrays, len(store.keys), numeric):
        rows, slots = store.match(events, partial(table.row, first))
        yield first + rows, store.ids_of(slots)


def match_table(store: SubscriptionStore, publications: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of publications and the ids of the subscriptions they match."""
    import pyarrow as pa

    chunks = list(matched_chunks(store, publications))
    event_index = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in chunks)])
    numbers = np.concatenate([np.empty(0, np.int32), *(found for _, found in chunks)])
    return pa.record_batch(
        {
            "event_index": pa.array(event_index, pa.int64()),
            "subscription_id": _ids(store, numbers),
        }
    )


def id_table(store: SubscriptionStore) -> pa.Array:
    """Return the id of every number, those of removed subscriptions among them."""
    return _ids(store, np.arange(len(store.ids), dtype=np.int32))


def _ids(store: SubscriptionStore, numbers: NDArray[np.int32]) -> pa.Array:
    arrays = store.ids.arrays
    begins = arrays.starts[numbers]
    lengths = arrays.starts[numbers + 1] - begins
    if lengths.sum() > _ARROW_BYTES_MAX:
        raise BadInput(
            "publications", "match more ids than Arrow holds in one column", hint="send fewer"
        )
    return gathered_texts(arrays.arena, begins, lengths)


def _new_ids(store: SubscriptionStore, ids: Column) -> NDArray[np.int32]:
    """Return the numbers of ids, all of which must be new."""
    lengths = np.diff(ids.offsets)
    for unfit, problem in (
        (lengths == 0, "is empty"),
        (lengths > ID_BYTES_MAX, f"has more than {ID_BYTES_MAX:,} bytes"),
    ):
        if unfit.any():
            row = int(np.flatnonzero(unfit)[0])
            raise BadInput("subscriptions.subscription_id", f"row {row:,} {problem}")
    numbers = store.ids.add_spans(ids.data, ids.offsets[:-1], lengths)
    taken = store.slots_of(numbers) >= 0
    if not taken.any():
        _, firsts = np.unique(numbers, return_index=True)
        taken[:] = True
        taken[firsts] = False
    if taken.any():
        name = _text(ids, int(np.flatnonzero(taken)[0]))
        raise BadInput("subscription", f"{quoted(name)} is there already")
    return numbers


def _parsed(filters: Column, ids: Column, row: int, functions: Functions) -> Filter:
    try:
        return Filter.parse(parse_document(_text(filters, row)), functions=functions)
    except BadInput as error:
        raise error.within(f"subscription {quoted(_text(ids, row))}") from None


def _text(column: Column, row: int) -> str:
    return column.data[column.offsets[row] : column.offsets[row + 1]].tobytes().decode()


def _column(table: pa.Table | pa.RecordBatch, name: str) -> pa.Array:
    if name not in table.schema.names:
        raise BadInput("subscriptions", f"has no column {quoted(name)}")
    return _combined(table.column(name))


def _combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column of texts in one piece, its bytes checked to be UTF-8."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            column = column.chunk(0)
        else:
            column = pa.concat_arrays(
                column.cast(pa.large_string()).chunks or [pa.array([], pa.large_string())]
            )
    try:
        column.validate(full=True)
        return column if pa.types.is_large_string(column.type) else column.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise BadInput("subscriptions", f"is not a valid Arrow column: {error}") from None
