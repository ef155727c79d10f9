"""Compiled shortest paths over a sparse network.

Arrays: the links of node `v` are `start[v]` to `start[v + 1]`, each with the node at its
other end in `target` and what it adds in `length`; every link stands there twice, once
from either end.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["shortest_paths"]


@kernel
def shortest_paths(
    start: IntArray, target: IntArray, length: FloatArray, sources: IntArray
) -> FloatArray:
    """Return the length of the shortest path from every source to every node.

    Dijkstra's algorithm with a binary heap that holds each waiting node once and moves it
    up when a shorter way to it is found: pushing it again instead would need a heap as
    large as the number of links, and links are what a network has most of.

    The network is `start` (nodes + 1,), `target` and `length` (links * 2,), not negative. The
    result is (sources, nodes), infinite where there is no path.
    """
    nodes = start.shape[0] - 1
    lengths = np.full((sources.shape[0], nodes), np.inf)
    heap = np.empty(nodes, dtype=np.int64)
    slot = np.empty(nodes, dtype=np.int64)
    for row in range(sources.shape[0]):
        reached = lengths[row]
        slot[:] = -1
        reached[sources[row]] = 0.0
        heap[0] = sources[row]
        slot[sources[row]] = 0
        size = 1
        while size > 0:
            v = heap[0]
            size -= 1
            if size > 0:
                # The last node fills the gap at the top and sinks to its level.
                moving = heap[size]
                at = 0
                while True:
                    child = 2 * at + 1
                    if child >= size:
                        break
                    if child + 1 < size and reached[heap[child + 1]] < reached[heap[child]]:
                        child += 1
                    if reached[heap[child]] >= reached[moving]:
                        break
                    heap[at] = heap[child]
                    slot[heap[at]] = at
                    at = child
                heap[at] = moving
                slot[moving] = at
            for index in range(start[v], start[v + 1]):
                w = target[index]
                through = reached[v] + length[index]
                if through < reached[w]:
                    at = slot[w]
                    if at < 0:
                        at = size
                        size += 1
                    reached[w] = through
                    while at > 0 and reached[heap[(at - 1) // 2]] > through:
                        heap[at] = heap[(at - 1) // 2]
                        slot[heap[at]] = at
                        at = (at - 1) // 2
                    heap[at] = w
                    slot[w] = at
    return lengths
