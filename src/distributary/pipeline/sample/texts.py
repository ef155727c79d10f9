"""Columns of texts made of numbers, without a Python object for each: names among them.

Texts are written as a table of bytes, a row each, of which a first part is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "broker_names",
    "decimals",
    "hexadecimals",
    "joined",
    "json_lengths",
    "object_names",
    "padded",
    "subscription_names",
    "timestamps",
    "user_names",
]

_ZERO, _POINT, _HEX = ord("0"), ord("."), np.frombuffer(b"0123456789abcdef", np.uint8)


def joined(*parts: object) -> pa.Array:
    """Return the parts one after the other; a text stands for a column of it."""
    import pyarrow.compute as compute

    return compute.binary_join_element_wise(*parts, "")


def user_names(numbers: IntArray) -> pa.Array:
    """Return the names of users, as in `user-0000012`."""
    return joined("user-", padded(numbers, 7))


def broker_names(numbers: IntArray) -> pa.Array:
    """Return the names of brokers, as in `broker-0012`."""
    return joined("broker-", padded(numbers, 4))


def object_names(numbers: IntArray) -> pa.Array:
    """Return the names of quoted objects, as in `stock-0012`."""
    return joined("stock-", padded(numbers, 4))


def subscription_names(numbers: IntArray) -> pa.Array:
    """Return the ids of subscriptions, as in `s-0000012`."""
    return joined("s-", padded(numbers, 7))


def padded(numbers: IntArray, digits: int) -> pa.Array:
    """Return whole numbers with zeros in front."""
    return _texts(_digits(numbers, digits))


def decimals(steps: IntArray, *, before: int, after: int) -> pa.Array:
    """Return `steps / 10**after` with exactly so many digits before and after the point."""
    written = np.empty((len(steps), before + 1 + after), np.uint8)
    written[:, :before] = _digits(steps // 10**after, before)
    written[:, before] = _POINT
    written[:, before + 1 :] = _digits(steps % 10**after, after)
    return _texts(written)


def hexadecimals(numbers: IntArray, digits: int) -> pa.Array:
    """Return whole numbers in base 16 with zeros in front."""
    shifts = np.arange(4 * (digits - 1), -1, -4)
    return _texts(_HEX[(numbers[:, None] >> shifts) & 15])


def timestamps(times_us: IntArray) -> pa.Array:
    """Return times since 1970 in microseconds as events have them: UTC, no zeros at the end."""
    seconds, fraction = times_us // 1_000_000, times_us % 1_000_000
    whole = np.datetime_as_string(seconds.astype("datetime64[s]"), unit="s")
    width = len("2026-01-05T00:00:00")
    written = np.empty((len(times_us), width + 8), np.uint8)
    written[:, :width] = whole.astype(f"S{width}").view(np.uint8).reshape(-1, width)
    written[:, width] = _POINT
    written[:, width + 1 : width + 7] = _digits(fraction, 6)
    kept = 6 - _zeros_at_end(fraction, 6)
    lengths = width + np.where(kept > 0, kept + 1, 0) + 1
    written[np.arange(len(written)), lengths - 1] = ord("Z")
    return _texts(written, lengths)


def json_lengths(steps: IntArray, after: int) -> IntArray:
    """Return how many characters JSON takes for `steps / 10**after`, as Python writes it.

    From 0 up, and with at most four digits after the point or at least 1: smaller numbers
    get an exponent.
    """
    whole = steps // 10**after
    before = np.ones(len(steps), np.int64)
    for power in range(1, 16):
        before += whole >= 10**power
    zeros = _zeros_at_end(steps % 10**after, after)
    return before + 1 + np.maximum(after - zeros, 1)


def _digits(numbers: IntArray, digits: int) -> NDArray[np.uint8]:
    powers = 10 ** np.arange(digits - 1, -1, -1)
    return ((numbers[:, None] // powers) % 10 + _ZERO).astype(np.uint8)


def _zeros_at_end(numbers: IntArray, digits: int) -> IntArray:
    zeros = np.zeros(len(numbers), np.int64)
    for power in range(1, digits + 1):
        zeros += numbers % 10**power == 0
    return zeros


def _texts(written: NDArray[np.uint8], lengths: IntArray | None = None) -> pa.Array:
    import pyarrow as pa

    count, width = written.shape
    offsets = np.zeros(count + 1, np.int32)
    if lengths is None:
        offsets[:] = np.arange(count + 1) * width
        data = np.ascontiguousarray(written)
    else:
        np.cumsum(lengths, out=offsets[1:])
        data = written[np.arange(width) < lengths[:, None]]
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data))
