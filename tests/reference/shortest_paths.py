"""Shortest paths by relaxing every link until nothing gets shorter."""

from __future__ import annotations

import math


def relaxed_lengths(
    node_count: int, links: list[tuple[int, int, float]], source: int
) -> list[float]:
    """Return the length of the shortest path from `source` to every node."""
    lengths = [math.inf] * node_count
    lengths[source] = 0.0
    changed = True
    while changed:
        changed = False
        for one, other, length in links:
            for near, far in ((one, other), (other, one)):
                if lengths[near] + length < lengths[far]:
                    lengths[far] = lengths[near] + length
                    changed = True
    return lengths
