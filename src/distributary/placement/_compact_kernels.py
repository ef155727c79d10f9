"""The exact method for small problems, from the tables to the plan in one compiled pass.

The same recurrence as `exact`. Brokers of small trees take microseconds each, so that calling
from Python for every one of them would take far longer than the work. A leaf with one wish,
of which there are many, has no table: it receives one format, and makes the wish of it.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel
from distributary.placement._exact_kernels import (
    LANE_BITS,
    accumulate_projected,
    best_received,
    cheapest_inputs,
    next_conversion,
    receive,
    relax,
    require,
    set_sizes,
)

__all__ = ["small_plan"]

# The empty set of formats. A scalar of NumPy is a variable to the compiler; a literal 0
# would have what it is given to compiled once more.
_EMPTY = cast(int, np.int64(0))


@inner_kernel
def chains_to(
    costs: FloatArray, usable: BoolArray, wish: int, free: bool
) -> tuple[FloatArray, IntArray]:
    """Return what making a wish costs from each format (m,), and the next one on the way.

    Only by usable formats; the next one is -1 at the wish and where there is no way.
    """
    m = costs.shape[0]
    dist = np.full(m, np.inf)
    following = np.full(m, -1, dtype=np.int64)
    if usable[wish]:
        dist[wish] = 0.0
    growing = True
    while growing:
        growing = False
        for i in range(m):
            if not usable[i]:
                continue
            for j in range(m):
                # The cost itself may be infinite, and then it must not meet a factor of zero.
                if np.isinf(costs[i, j]) or np.isinf(dist[j]):
                    continue
                price = dist[j] if free else costs[i, j] + dist[j]
                if price < dist[i]:
                    dist[i] = price
                    following[i] = j
                    growing = True
    return dist, following


@inner_kernel
def local_space(
    costs: FloatArray, sizes: FloatArray, usable: BoolArray, free: bool
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the usable formats of a broker, -1 for padding, with their costs and sizes."""
    m = usable.shape[0]
    used = 0
    for k in range(m):
        if usable[k]:
            used += 1
    count = max(LANE_BITS, used)
    formats = np.full(count, -1, dtype=np.int64)
    at = 0
    for k in range(m):
        if usable[k]:
            formats[at] = k
            at += 1
    local_costs = np.full((count, count), np.inf)
    local_sizes = np.zeros(count)
    for i in range(used):
        local_sizes[i] = sizes[formats[i]]
        for j in range(used):
            price = costs[formats[i], formats[j]]
            local_costs[i, j] = 0.0 if free and not np.isinf(price) else price
    return formats, local_costs, local_sizes


@inner_kernel
def accumulate_single(total: FloatArray, prices: FloatArray, room: FloatArray) -> None:
    """Add what a leaf costs that receives one format to its parent's table.

    `prices` (m,) is the cost of serving it by each of the parent's formats.
    """
    room[0] = np.inf
    for k in range(prices.shape[0]):
        bit = 1 << k
        price = prices[k]
        for x in range(bit):
            room[bit + x] = price if price < room[x] else room[x]
    for x in range(total.shape[0]):
        total[x] += room[x]


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

    `costs` (m, m) are conversions and `sizes` (m,) formats; `parents` (n,) come before their
    children; `wants` and `usable` are (n, m), `served` is (n,), `held` (m,).
    """
    n, m = wants.shape
    # The wish of every leaf that has no table, -1 for the others.
    wish = np.full(n, -1, dtype=np.int64)
    has_children = np.zeros(n, dtype=np.bool_)
    for v in range(1, n):
        if served[v]:
            has_children[parents[v]] = True
    starts = np.zeros(n + 1, dtype=np.int64)
    widest = LANE_BITS
    for v in range(n):
        starts[v + 1] = starts[v]
        if not served[v]:
            continue
        wishes, count = 0, 0
        for k in range(m):
            if wants[v, k]:
                wishes += 1
                wish[v] = k
            if usable[v, k]:
                count += 1
        if v == 0 or has_children[v] or wishes != 1:
            wish[v] = -1
            count = max(LANE_BITS, count)
            widest = max(widest, count)
            starts[v + 1] += 1 << count
    tables = np.zeros(starts[n])
    room = np.empty(1 << widest)
    dist = np.empty((n, m))
    following = np.empty((n, m), dtype=np.int64)
    position = np.full((n, m), -1, dtype=np.int64)
    for v in range(n):
        at = 0
        for k in range(m):
            if usable[v, k]:
                position[v, k] = at
                at += 1
    for v in range(n - 1, -1, -1):
        if not served[v]:
            continue
        free = node_weights[v] == 0.0
        weight = 1.0 if free else node_weights[v]
        above = max(parents[v], 0)
        if wish[v] >= 0:
            dist[v], following[v] = chains_to(costs, usable[v], wish[v], free)
            total = tables[starts[above] : starts[above + 1]]
            count = 0
            while 1 << count < total.shape[0]:
                count += 1
            prices = np.full(count, np.inf)
            for k in range(m):
                if position[above, k] >= 0 and usable[v, k]:
                    prices[position[above, k]] = dist[v, k] * weight + sizes[k] * link_weights[v]
            accumulate_single(total, prices, room)
            continue
        formats, local_costs, local_sizes = local_space(costs, sizes, usable[v], free)
        table = tables[starts[v] : starts[v + 1]]
        wanted = _EMPTY
        forbidden = _EMPTY
        for bit in range(formats.shape[0]):
            if formats[bit] < 0:
                forbidden |= 1 << bit
            elif wants[v, formats[bit]]:
                wanted |= 1 << bit
        require(table, wanted)
        if forbidden:
            for x in range(table.shape[0]):
                if x & forbidden:
                    table[x] = np.inf
        for k in range(m):
            if wants[v, k] and not usable[v, k]:
                table[:] = np.inf
        high, low = cheapest_inputs(local_costs)
        relax(table, high, low, weight)
        if v == 0:
            continue
        part = room[: table.shape[0]]
        receive(table, set_sizes(local_sizes), link_weights[v], part)
        total = tables[starts[above] : starts[above + 1]]
        count = 0
        while 1 << count < total.shape[0]:
            count += 1
        places = np.full(count, -1, dtype=np.int64)
        for k in range(m):
            if position[above, k] >= 0:
                places[position[above, k]] = position[v, k]
        accumulate_projected(total, part, places)
    receives = np.zeros((n, m), dtype=np.bool_)
    made_from = np.full((n, m), -1, dtype=np.int64)
    in_hand = np.zeros((n, m), dtype=np.bool_)
    in_hand[0] = held
    for v in range(n):
        if not served[v]:
            continue
        free = node_weights[v] == 0.0
        weight = 1.0 if free else node_weights[v]
        if wish[v] >= 0:
            best = -1
            best_price = np.inf
            for k in range(m):
                if in_hand[parents[v], k] and usable[v, k]:
                    price = dist[v, k] * weight + sizes[k] * link_weights[v]
                    if price < best_price:
                        best_price = price
                        best = k
            if best >= 0:
                receives[v, best] = True
                while following[v, best] >= 0:
                    made_from[v, following[v, best]] = best
                    best = following[v, best]
            continue
        formats, local_costs, local_sizes = local_space(costs, sizes, usable[v], free)
        table = tables[starts[v] : starts[v + 1]]
        wanted = _EMPTY
        have = _EMPTY
        for bit in range(formats.shape[0]):
            k = formats[bit]
            if k < 0:
                continue
            if wants[v, k]:
                wanted |= 1 << bit
            if in_hand[0, k] if v == 0 else in_hand[parents[v], k]:
                have |= 1 << bit
        if v > 0:
            have = best_received(table, set_sizes(local_sizes), link_weights[v], have)
            for bit in range(formats.shape[0]):
                if have >> bit & 1:
                    receives[v, formats[bit]] = True
        while True:
            origin, made = next_conversion(table, local_costs, weight, have, wanted)
            if made < 0:
                break
            made_from[v, formats[made]] = formats[origin]
            have |= 1 << made
        for bit in range(formats.shape[0]):
            if have >> bit & 1:
                in_hand[v, formats[bit]] = True
    return receives, made_from
