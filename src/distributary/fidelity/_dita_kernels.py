"""Trees in which everybody is below the nearest node that still has room.

Shapes: `n` nodes, the source at 0; `near` holds the `w` nodes nearest to each.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["limited_tree", "nearest"]


@kernel
def nearest(delays: FloatArray, width: int) -> IntArray:
    """Return for every node the `width` nodes with the smallest delay to it, nearest first.

    `delays` (n, n), from row to column; the result is (n, width), filled up with -1. Of
    equal delays the smaller index comes first. Rows are read one after the other: columns
    of ten thousand nodes would miss the cache at every step.
    """
    n = delays.shape[0]
    near = np.full((n, width), -1, dtype=np.int64)
    nearness = np.full((n, width), np.inf)
    size = np.zeros(n, dtype=np.int64)
    for p in range(n):
        for i in range(n):
            # Equal delays came earlier and so have the smaller index.
            if i == p or (size[i] == width and delays[p, i] >= nearness[i, width - 1]):
                continue
            at = size[i] if size[i] < width else width - 1
            while at > 0 and delays[p, i] < nearness[i, at - 1]:
                near[i, at] = near[i, at - 1]
                nearness[i, at] = nearness[i, at - 1]
                at -= 1
            near[i, at] = p
            nearness[i, at] = delays[p, i]
            size[i] = min(size[i] + 1, width)
    return near


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
