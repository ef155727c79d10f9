"""The tree that content takes through a network: by way of brokers that are no detour."""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray

__all__ = ["quickest_parents"]

# Paths add up their links in another order than their parts do.
_ROUNDING = 1e-9


def quickest_parents(delays: FloatArray, root: int) -> IntArray:
    """Return the parent of each broker in the tree of quickest ways from a root.

    It is the nearest of the brokers through which the way is no longer than without them: on a
    quickest path, the last broker before the end. The root's is -1.

    Delays are those from each broker to each other, shape (brokers, brokers).
    """
    count = len(delays)
    from_root = delays[root]
    # The root goes first among those at its own place.
    order = np.lexsort((np.arange(count) != root, from_root)).tolist()
    parents = np.full(count, -1, dtype=np.int64)
    for position, v in enumerate(order[1:], start=1):
        nearer = np.array(order[:position])
        detours = from_root[nearer] + delays[nearer, v]
        on_the_way = nearer[detours <= from_root[v] * (1.0 + _ROUNDING)]
        # Of those at one place, the one that is farthest from the root in the tree.
        parents[v] = on_the_way[::-1][np.argmin(delays[on_the_way[::-1], v])]
    return parents
