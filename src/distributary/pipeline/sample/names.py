"""What users, brokers and objects are called; in the order of names they are in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.arrays import IntArray
from distributary.pipeline.sample.texts import joined, padded

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["broker_names", "object_names", "subscription_names", "user_names"]


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
