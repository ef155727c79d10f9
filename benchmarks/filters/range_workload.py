"""Subscriptions of many ranges, and events with a number for each: both as Arrow tables.

Every subscription restricts 10 of 20 numbers, each to an interval of one width, so that a
given share of uniform events matches. Tables are put together column by column: a million
subscriptions of ten conditions are ten million pieces of JSON.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from distributary.content.publication import Publication
from distributary.content.publication_table import publications_schema

__all__ = ["CONDITIONS", "KEYS", "event_batch", "events", "range_subscriptions"]

KEYS = 20
CONDITIONS = 10
_DIGITS = 1000
_ROWS_AT_ONCE = 100_000


def range_subscriptions(*, seed: int, count: int, share: float, first: int = 0) -> pa.Table:
    """Return subscriptions of which about `share` match any one event.

    Bounds have six decimals. Ids are numbered from `first`.
    """
    rng = np.random.default_rng(seed)
    width = round(share ** (1 / CONDITIONS) * _DIGITS**2)
    batches = [
        _subscriptions(rng, first + begin, min(_ROWS_AT_ONCE, count - begin), width)
        for begin in range(0, count, _ROWS_AT_ONCE)
    ]
    return pa.Table.from_batches(batches).combine_chunks()


def _subscriptions(rng: np.random.Generator, first: int, count: int, width: int) -> pa.RecordBatch:
    digits = pa.array([f"{i:03d}" for i in range(_DIGITS)])
    opening = pa.array([f'"/n{key:02d}":{{"min":0.' for key in range(KEYS)])
    keys = np.argsort(rng.random((count, KEYS), dtype=np.float32), axis=1)[:, :CONDITIONS]
    lows = rng.integers(0, _DIGITS**2 - width, (count, CONDITIONS))

    def decimals(numbers: NDArray[np.int64]) -> Iterator[pa.Array]:
        yield digits.take(pa.array(numbers // _DIGITS))
        yield digits.take(pa.array(numbers % _DIGITS))

    pieces: list[pa.Array | pa.Scalar] = [pa.scalar('[{"range":{')]
    for j in range(CONDITIONS):
        pieces.append(opening.take(pa.array(keys[:, j])))
        pieces.extend(decimals(lows[:, j]))
        pieces.append(pa.scalar(',"max":0.'))
        pieces.extend(decimals(lows[:, j] + width))
        pieces.append(pa.scalar("}," if j < CONDITIONS - 1 else "}}}]"))
    filters = pc.binary_join_element_wise(*pieces, "")
    ids = pc.binary_join_element_wise(
        pa.scalar("s"), pc.cast(pa.array(np.arange(first, first + count)), pa.string()), ""
    )
    return pa.record_batch({"subscription_id": ids, "filters": filters})


def _numbers(seed: int, count: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).random((count, KEYS))


def event_batch(*, seed: int, count: int) -> pa.RecordBatch:
    """Return events with a uniform number at each key, as a batch of the table."""
    kind = publications_schema()
    values = _numbers(seed, count)
    names = pa.array([f"/n{key:02d}" for key in range(KEYS)] * count)
    numbers = pa.MapArray.from_arrays(
        pa.array(np.arange(count + 1, dtype=np.int32) * KEYS), names, pa.array(values.ravel())
    )
    one = [("type", {"type": "String", "text": "t"})]
    columns = {
        "attributes": pa.array([one] * count, kind.field("attributes").type),
        "numbers": numbers,
        "texts": pa.array([[]] * count, kind.field("texts").type),
    }
    return pa.record_batch(
        [columns.get(field.name, pa.nulls(count, field.type)) for field in kind], schema=kind
    )


def events(*, seed: int, count: int) -> list[Publication]:
    """Return the same events, one by one."""
    return [
        Publication({"type": "t"}, {f"n{key:02d}": float(value) for key, value in enumerate(row)})
        for row in _numbers(seed, count)
    ]
