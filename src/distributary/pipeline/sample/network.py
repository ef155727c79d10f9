"""Users, brokers, what it costs to reach them, and the overlay of the brokers."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.pipeline.sample.counter_rng import CounterRng
from distributary.pipeline.sample.publications import MEAN_BYTES
from distributary.pipeline.sample.sizes import SampleSizes
from distributary.pipeline.sample.texts import broker_names, user_names
from distributary.topology.identifiers import random_identifiers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "access_costs_block",
    "brokers_block",
    "core_costs_block",
    "homeless",
    "overlay_block",
    "users_block",
]

_HOMELESS_SHARE = 0.03
# How far users are from the broker in their middle, on a plane one unit wide.
_TOWN_RADIUS = 0.05
# Once across the plane takes so many milliseconds.
_DELAY_MS = 100.0


def users_block(sizes: SampleSizes, seed: int, rows: IntArray) -> pa.RecordBatch:
    """Return rows of `users`. Brokers have equally many; a few users have none yet."""
    import pyarrow as pa
    import pyarrow.compute as compute

    homes = broker_names(rows % sizes.brokers)
    none = pa.scalar(None, pa.string())
    return pa.record_batch(
        {
            "user": user_names(rows),
            "broker": compute.if_else(homeless(sizes, seed, rows), none, homes),
        }
    )


def homeless(sizes: SampleSizes, seed: int, users: IntArray) -> BoolArray:
    """Return which users have no home broker yet; the first user of each broker has one."""
    lost = CounterRng(seed, "users").uniform("homeless", users) < _HOMELESS_SHARE
    return np.asarray(lost & (users >= sizes.brokers))


def brokers_block(sizes: SampleSizes, seed: int, rows: IntArray) -> pa.RecordBatch:
    """Return rows of `brokers`, with room for everybody even if all want everything."""
    import pyarrow as pa

    published = sizes.publications * MEAN_BYTES / (sizes.span_us * 1e-6)
    share = published * (2.0 * sizes.users / sizes.brokers + 4.0)
    capacities = share * (1.0 + CounterRng(seed, "brokers").uniform("capacity", rows))
    return pa.record_batch(
        {"broker": broker_names(rows), "capacity": pa.array(np.rint(capacities))}
    )


def access_costs_block(sizes: SampleSizes, seed: int, rows: IntArray) -> pa.RecordBatch:
    """Return rows of `access_costs`: distances on the plane."""
    import pyarrow as pa

    rng = CounterRng(seed, "users")
    homes = _positions(sizes, seed)[rows % sizes.brokers]
    off = np.column_stack([rng.normal("x", rows), rng.normal("y", rows)])
    costs = _distances(homes + _TOWN_RADIUS * off, _positions(sizes, seed))
    return pa.record_batch({"user": user_names(rows), "costs": _lists(costs)})


def core_costs_block(sizes: SampleSizes, seed: int, rows: IntArray) -> pa.RecordBatch:
    """Return rows of `core_costs`: distances on the plane."""
    import pyarrow as pa

    positions = _positions(sizes, seed)
    costs = _distances(positions[rows], positions)
    return pa.record_batch({"broker": broker_names(rows), "costs": _lists(costs)})


def overlay_block(sizes: SampleSizes, seed: int, rows: IntArray) -> pa.RecordBatch:
    """Return rows of `overlay`; delays are in milliseconds, to all brokers in order."""
    import pyarrow as pa

    positions = _positions(sizes, seed)
    identifiers = pa.array(_identifiers(seed, sizes.brokers))
    return pa.record_batch(
        {
            "broker": broker_names(rows),
            "identifier": identifiers.take(pa.array(rows)),
            "delays": _lists(_DELAY_MS * _distances(positions[rows], positions)),
        }
    )


def _positions(sizes: SampleSizes, seed: int) -> FloatArray:
    rng, brokers = CounterRng(seed, "brokers"), np.arange(sizes.brokers)
    return np.column_stack([rng.uniform("x", brokers), rng.uniform("y", brokers)])


@lru_cache(maxsize=8)
def _identifiers(seed: int, count: int) -> tuple[str, ...]:
    return random_identifiers(count, np.random.default_rng([seed, count]))


def _distances(some: FloatArray, others: FloatArray) -> FloatArray:
    """Return distances between points, shape (some, others)."""
    off = some[:, None, :] - others[None, :, :]
    # Not `hypot`: of a sum of squares and a root, every digit is the same everywhere.
    return np.asarray(np.sqrt(off[:, :, 0] ** 2 + off[:, :, 1] ** 2))


def _lists(table: FloatArray) -> pa.Array:
    import pyarrow as pa

    offsets = np.arange(len(table) + 1, dtype=np.int32) * table.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(table.ravel()))
