"""Trees in which everybody is below the nearest node that still has room.

Shapes: `n` nodes, the source at 0; `near` holds the `w` nodes nearest to each.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["limited_tree"]


@kernel
def limited_tree(
    order: IntArray, delays: FloatArray, near: IntArray, fanout: int, parents: IntArray
) -> int:
    """Put servers into a tree in the given order, and return the largest number of children.

    `order` (m,) holds the servers, `parents` (n,) is written at them. Each goes below the
    node with the smallest delay to it, of equal ones the smaller index, among the source
    and the servers before it that have fewer than `fanout` children.
    """
    n = delays.shape[0]
    room = np.zeros(n, dtype=np.int64)
    place = np.empty(n, dtype=np.int64)
    open_nodes = np.empty(n, dtype=np.int64)
    open_nodes[0] = 0
    place[0] = 0
    room[0] = fanout
    size = 1
    least_room = fanout
    for index in range(order.shape[0]):
        i = order[index]
        best = -1
        for rank in range(near.shape[1]):
            p = near[i, rank]
            if p >= 0 and room[p] > 0:
                best = p
                break
        if best < 0:
            for at in range(size):
                p = open_nodes[at]
                if (
                    best < 0
                    or delays[p, i] < delays[best, i]
                    or (delays[p, i] == delays[best, i] and p < best)
                ):
                    best = p
        parents[i] = best
        room[best] -= 1
        least_room = min(least_room, room[best])
        if room[best] == 0:
            size -= 1
            last = open_nodes[size]
            open_nodes[place[best]] = last
            place[last] = place[best]
        room[i] = fanout
        place[i] = size
        open_nodes[size] = i
        size += 1
    return fanout - least_room
