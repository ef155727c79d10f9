"""The exact method for small problems, from the tables to the plan in one compiled pass.

The same recurrence as `exact`, over one space of formats for all brokers: whatever a broker
may not have is infinitely dear in its table. Brokers of small trees take microseconds each, so
that calling from Python for every one of them would take far longer than the work.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray, kernel
from distributary.placement._exact_kernels import (
    accumulate,
    best_received,
    cheapest_inputs,
    next_conversion,
    receive,
    relax,
    require,
    set_sizes,
)

__all__ = ["small_plan"]


@kernel
def small_plan(
    costs: FloatArray,
    sizes: FloatArray,
    parents: IntArray,
    link_weights: FloatArray,
    node_weights: FloatArray,
    wants: BoolArray,
    usable: BoolArray,
    served: BoolArray,
    held: BoolArray,
) -> tuple[BoolArray, IntArray]:
    """Return what every broker receives (n, m), and what it makes from what (n, m), or -1.

    `costs` (m, m) are conversions and `sizes` (m,) formats, at least three; `parents` (n,)
    come before their children; `wants` and `usable` are (n, m), `served` is (n,), `held` (m,).
    """
    n, m = wants.shape
    set_size = set_sizes(sizes)
    high, low = cheapest_inputs(costs)
    # Where converting costs nothing: zero times infinity would not be a number.
    free = np.where(np.isinf(costs), np.inf, 0.0)
    free_high, free_low = cheapest_inputs(free)
    count = set_size.shape[0]
    tables = np.zeros((n, count))
    room = np.empty(count)
    allowed = np.zeros(n, dtype=np.int64)
    wanted = np.zeros(n, dtype=np.int64)
    for v in range(n):
        for k in range(m):
            if usable[v, k]:
                allowed[v] |= 1 << k
            if wants[v, k]:
                wanted[v] |= 1 << k
    for v in range(n - 1, -1, -1):
        if not served[v]:
            continue
        table = tables[v]
        require(table, wanted[v])
        for x in range(count):
            if x & ~allowed[v]:
                table[x] = np.inf
        if node_weights[v] == 0.0:
            relax(table, free_high, free_low, 1.0)
        else:
            relax(table, high, low, node_weights[v])
        if v > 0:
            receive(table, set_size, link_weights[v], room)
            accumulate(tables[parents[v]], room)
    receives = np.zeros((n, m), dtype=np.bool_)
    made_from = np.full((n, m), -1, dtype=np.int64)
    in_hand = np.zeros(n, dtype=np.int64)
    for k in range(m):
        if held[k]:
            in_hand[0] |= 1 << k
    for v in range(n):
        if not served[v]:
            continue
        table = tables[v]
        if v > 0:
            offered = in_hand[parents[v]] & allowed[v]
            in_hand[v] = best_received(table, set_size, link_weights[v], offered)
            for k in range(m):
                receives[v, k] = in_hand[v] >> k & 1 == 1
        if node_weights[v] == 0.0:
            matrix, weight = free, 1.0
        else:
            matrix, weight = costs, node_weights[v]
        while True:
            origin, made = next_conversion(table, matrix, weight, in_hand[v], wanted[v])
            if made < 0:
                break
            made_from[v, made] = origin
            in_hand[v] |= 1 << made
    return receives, made_from
