"""Everything that matching needs of subscribers: sent to executors once, and used in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import IntArray
from distributary.content.documents import parse_document
from distributary.content.profile import DeviceProfile
from distributary.errors import BadInput, quoted
from distributary.filters.index import Index
from distributary.pipeline.transforms.format_choices import FormatChoices

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Recipients", "recipients"]


@dataclass(frozen=True, eq=False)
class Recipients:
    """Subscriptions, ready to be matched.

    Everything is in the order of the index's numbers. The home broker of a user is null when
    it has none.
    """

    index: Index
    subscription_ids: pa.Array
    users: pa.Array
    brokers: pa.Array
    profiles: IntArray
    formats: FormatChoices


def recipients(
    subscriptions: pa.Table, users: pa.Table | None, document: dict[str, object]
) -> Recipients:
    """Return the recipients that tables describe, or raise `BadInput`.

    Who is not in `users` has no home; without the table, nobody has one.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    index = Index.from_arrow(subscriptions.select(["subscription_id", "filters"]))
    ids, names, texts = (
        _text(subscriptions, column) for column in ("subscription_id", "user", "profile")
    )
    if users is None:
        brokers = pa.nulls(len(names), pa.string())
    else:
        homes = _text(users, "user")
        if pc.count_distinct(homes).as_py() < len(homes):
            raise BadInput("users", "has a user twice")
        brokers = _text(users, "broker").take(pc.index_in(names, value_set=homes))
    profiles, numbers = _profiles(ids, texts)
    return Recipients(index, ids, names, brokers, numbers, FormatChoices(document, profiles))


def _profiles(ids: pa.Array, texts: pa.Array) -> tuple[list[DeviceProfile | None], IntArray]:
    """Return the different profiles, and the number of everybody's."""
    encoded = texts.dictionary_encode()
    known: list[DeviceProfile | None] = []
    for code, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            document = parse_document(text)
            profile = None if document is None else DeviceProfile.parse(document)
        except BadInput as error:
            row = int(np.flatnonzero(np.asarray(encoded.indices.fill_null(-1)) == code)[0])
            raise error.within(f"subscription {quoted(ids[row].as_py())}") from None
        known.append(profile)
    numbers = np.asarray(encoded.indices.fill_null(len(known)), np.int64)
    return [*known, None], numbers


def _text(table: pa.Table, column: str) -> pa.Array:
    import pyarrow as pa

    return pa.chunked_array(table.column(column).chunks, pa.string()).combine_chunks()
