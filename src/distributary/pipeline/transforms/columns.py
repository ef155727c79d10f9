"""Columns of tables that the driver holds: texts, homes, and documents that repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from distributary.arrays import IntArray
from distributary.content.documents import parse_document
from distributary.errors import BadInput, quoted

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["codes_by_name", "home_brokers", "parsed_texts", "texts"]

T = TypeVar("T")


def texts(table: pa.Table, column: str) -> pa.Array:
    """Return a column of texts in one piece."""
    import pyarrow as pa

    return pa.chunked_array(table.column(column).chunks, pa.string()).combine_chunks()


def home_brokers(users: pa.Table | None, names: pa.Array) -> pa.Array:
    """Return the home broker of each of some users, null where the table `users` has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if users is None:
        return pa.nulls(len(names), pa.string())
    known = texts(users, "user")
    if pc.count_distinct(known).as_py() < len(known):
        raise BadInput("users", "has a user twice")
    return texts(users, "broker").take(pc.index_in(names, value_set=known))


def codes_by_name(column: pa.Array) -> tuple[tuple[str, ...], IntArray]:
    """Return the different texts of a column, sorted, and which of them each is; -1 for null."""
    encoded = column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    code_of = np.full(len(names) + 1, -1, np.int64)
    code_of[order] = np.arange(len(names))
    indices = np.asarray(encoded.indices.fill_null(len(names)), np.int64)
    return tuple(names[index] for index in order), code_of[indices]


def parsed_texts(
    subscriptions: pa.Table, column: str, parse: Callable[[object], T]
) -> tuple[list[T | None], IntArray]:
    """Return what the different documents of a column say, and which of them each row has.

    The last one is None: what rows without a document have. Each is parsed once; raises
    `BadInput` naming the first subscription whose document cannot be.
    """
    encoded = texts(subscriptions, column).dictionary_encode()
    numbers = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)), np.int64)
    parsed: list[T | None] = []
    for number, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            document = parse_document(text)
            parsed.append(None if document is None else parse(document))
        except BadInput as error:
            first = int(np.flatnonzero(numbers == number)[0])
            name = subscriptions.column("subscription_id")[first].as_py()
            raise error.within(f"subscription {quoted(name)}") from None
    return [*parsed, None], numbers
