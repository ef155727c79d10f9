"""When everything in a plan happens, if brokers pass on whole portions.

Shapes: `n` brokers, `m` formats; times are in seconds.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["portion_times"]


@kernel
def portion_times(
    parents: IntArray,
    receives: BoolArray,
    made_from: IntArray,
    held: BoolArray,
    sizes: FloatArray,
    costs: FloatArray,
    link_times: FloatArray,
    node_times: FloatArray,
    waits: FloatArray,
) -> FloatArray:
    """Return when each broker has each format, infinite for those that it never has, (n, m).

    A unit of size takes `link_times[v]` (n,) on the link into `v`, a unit of conversion
    `node_times[v]` (n,) at `v`, whose processor is busy until `waits[v]` (n,). Parents come
    first; the plan is valid.
    """
    n, m = receives.shape
    there = np.full((n, m), np.inf)
    arrived = np.zeros(n)
    queue = np.empty(m, dtype=np.int64)
    for v in range(n):
        if v == 0:
            for k in range(m):
                if held[k]:
                    there[0, k] = 0.0
        else:
            sent = arrived[parents[v]]
            size = 0.0
            for k in range(m):
                if receives[v, k]:
                    sent = max(sent, there[parents[v], k])
                    size += sizes[k]
            arrived[v] = sent + link_times[v] * size
            for k in range(m):
                if receives[v, k]:
                    there[v, k] = arrived[v]
        # First come, first served: what can begin at once, and then what each result allows.
        count = 0
        for k in range(m):
            if made_from[v, k] >= 0 and there[v, made_from[v, k]] < np.inf:
                queue[count] = k
                count += 1
        free = max(arrived[v], waits[v])
        done = 0
        while done < count:
            made = queue[done]
            done += 1
            free += node_times[v] * costs[made_from[v, made], made]
            if there[v, made] < np.inf:
                # It was there already, and so was whatever is made of it.
                there[v, made] = min(there[v, made], free)
                continue
            there[v, made] = free
            for k in range(m):
                if made_from[v, k] == made:
                    queue[count] = k
                    count += 1
    return there
