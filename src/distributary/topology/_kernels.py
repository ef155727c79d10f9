"""Compiled loops of prefix routing.

Arrays: `digits` (brokers, levels) int64, one row per identifier; `entries` (brokers,
levels, 16) int64, one routing table per broker, holding broker indices or `EMPTY`.
All brokers have distinct identifiers of the same length.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel

__all__ = [
    "EMPTY",
    "NOT_IN_TREE",
    "NO_PARENT",
    "fill_all_tables",
    "parents_in_tree",
    "walk",
]

EMPTY = -1
NO_PARENT = -1
NOT_IN_TREE = -2

_BASE = 16


@kernel
def fill_table(
    digits: IntArray, order: IntArray, own: int, delays: FloatArray, table: IntArray
) -> None:
    """Fill the routing table of broker `own`, in place.

    A broker stands in exactly one entry of somebody else's table: at the level where
    the two identifiers first differ. On all levels before that the entry is the owner's
    own, and there the owner is closest to itself.

    Parameters
    ----------
    order
        Broker indices in ascending order of identifiers, shape (brokers,). Of two
        brokers at the same delay the first in this order is taken.
    delays
        From the owner to every broker, shape (brokers,).
    table
        Written, shape (levels, 16).
    """
    table[:, :] = EMPTY
    for level in range(digits.shape[1]):
        table[level, digits[own, level]] = own
    for other in order:
        if other == own:
            continue
        level = 0
        while digits[other, level] == digits[own, level]:
            level += 1
        digit = digits[other, level]
        taken = table[level, digit]
        if taken == EMPTY or delays[other] < delays[taken]:
            table[level, digit] = other


@kernel
def fill_all_tables(
    digits: IntArray, order: IntArray, delays: FloatArray, entries: IntArray
) -> None:
    """Fill the routing table of every broker, in place; `delays[u, v]` is from u to v."""
    for own in range(digits.shape[0]):
        fill_table(digits, order, own, delays[own], entries[own])


@kernel
def next_entry(table: IntArray, own: int, key: IntArray) -> int:
    """Return the broker to which `own` passes a message for `key`; `own` at the root.

    An empty entry is replaced by the next digit that has one, going round: the
    surrogate. The owner's own entry is never empty, so there always is one.

    Parameters
    ----------
    table
        The owner's routing table, shape (levels, 16).
    key
        Digits of the key, shape (levels,).
    """
    for level in range(table.shape[0]):
        digit = key[level]
        while table[level, digit] == EMPTY:
            digit = (digit + 1) % _BASE
        entry: int = table[level, digit]
        if entry != own:
            return entry
    return own


@kernel
def walk(entries: IntArray, start: int, key: IntArray) -> IntArray:
    """Return the brokers that a message for `key` passes, `start` and the root included.

    Every hop settles at least one more digit, so there are at most as many as levels.
    """
    path = np.empty(entries.shape[1] + 1, dtype=np.int64)
    path[0] = start
    length = 1
    while True:
        broker = path[length - 1]
        following = next_entry(entries[broker], broker, key)
        if following == broker:
            return path[:length]
        path[length] = following
        length += 1


@kernel
def parents_in_tree(entries: IntArray, digits: IntArray, root: int, members: IntArray) -> IntArray:
    """Return each broker's parent in the union of the routes from `root` to `members`.

    Shape (brokers,); `NO_PARENT` at the root and `NOT_IN_TREE` for brokers that no
    route passes.
    """
    parents = np.full(entries.shape[0], NOT_IN_TREE, dtype=np.int64)
    parents[root] = NO_PARENT
    for member in members:
        path = walk(entries, root, digits[member])
        for hop in range(1, path.shape[0]):
            parents[path[hop]] = path[hop - 1]
    return parents
