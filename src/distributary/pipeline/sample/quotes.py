"""Quotes: a value for every object and second that stays, or jumps at random times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.pipeline.sample._quote_kernels import reverting_jumps
from distributary.pipeline.sample.counter_rng import CounterRng
from distributary.pipeline.sample.events import START_US
from distributary.pipeline.sample.sizes import SampleSizes
from distributary.pipeline.sample.texts import object_names

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["object_means", "object_publishers", "object_quotes"]

# Trade opens at half past nine.
_OPENING_US = START_US + 34_200_000_000
_SECOND_US = 1_000_000
_REVERSION = 0.05
_BATCH_ROWS = 65_536


def object_means(seed: int, objects: IntArray) -> FloatArray:
    """Return the price that each of the objects reverts to, from 20 to 200."""
    return 20.0 + 180.0 * CounterRng(seed, "objects").uniform("mean", objects)


def object_publishers(sizes: SampleSizes, seed: int, objects: IntArray) -> IntArray:
    """Return the number of the user who publishes each of the objects."""
    return CounterRng(seed, "objects").below("publisher", objects, sizes.users)


def object_quotes(sizes: SampleSizes, seed: int, number: int) -> Iterator[pa.RecordBatch]:
    """Yield the quotes of one object, in the order of time."""
    import pyarrow as pa

    at = np.array([number])
    mean = float(object_means(seed, at)[0])
    activity = 0.1 + 0.5 * float(CounterRng(seed, "objects").uniform("activity", at)[0])
    rng = CounterRng(seed, f"quotes of {number}")
    times = np.arange(sizes.seconds)
    values = np.empty(sizes.seconds)
    reverting_jumps(
        rng.uniform("jump", times) < activity,
        0.0005 * mean * rng.normal("shock", times),
        mean,
        _REVERSION,
        values,
    )
    values = np.rint(values * 100.0) / 100.0
    name = object_names(at)[0]
    for begin in range(0, sizes.seconds, _BATCH_ROWS):
        part = slice(begin, begin + _BATCH_ROWS)
        yield pa.record_batch(
            {
                "object": pa.repeat(name, len(times[part])),
                "time": pa.array(
                    _OPENING_US + times[part] * _SECOND_US, pa.timestamp("us", tz="UTC")
                ),
                "value": pa.array(values[part]),
            }
        )
