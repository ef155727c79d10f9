"""The inner passes of the exact method, over all sets of formats of one broker.

A set of `m` formats is an integer below `2**m`; bit `k` says whether format `k` is
in it. A table has one double per set. Both passes touch `m * 2**m` values and run
over blocks of eight sets that differ in their lowest three formats, which the
compiler turns into vector instructions; shorter tables are padded by callers to at
least three formats. Comparisons are written out because the built-in `min` minds
not-a-numbers and keeps the compiler from doing so.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel

__all__ = [
    "LANE_BITS",
    "accumulate_leaf",
    "accumulate_projected",
    "best_received",
    "cheapest_inputs",
    "next_conversion",
    "receive",
    "relax",
    "require",
    "set_sizes",
    "smallest_subset",
]

LANE_BITS = 3
_LANES = 1 << LANE_BITS


@kernel
def set_sizes(sizes: FloatArray) -> FloatArray:
    """Return the total size of every set; `sizes` (m,) gives a table (2**m,)."""
    m = sizes.shape[0]
    table = np.zeros(1 << m)
    for k in range(m):
        bit = 1 << k
        for x in range(bit):
            table[bit + x] = table[x] + sizes[k]
    return table


@kernel
def cheapest_inputs(costs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the cheapest way into each format from the high and the low part of a set.

    `costs` (m, m) gives `high` (2**(m-3), m) and `low` (m, 8): the cheapest conversion
    of a member of the set into `j` is `min(high[x >> 3, j], low[j, x & 7])`.
    """
    m = costs.shape[0]
    high = np.full((1 << (m - LANE_BITS), m), np.inf)
    for i in range(LANE_BITS, m):
        bit = 1 << (i - LANE_BITS)
        for x in range(bit):
            for j in range(m):
                high[bit + x, j] = min(high[x, j], costs[i, j])
    low = np.full((m, _LANES), np.inf)
    for i in range(LANE_BITS):
        bit = 1 << i
        for x in range(bit):
            for j in range(m):
                low[j, bit + x] = min(low[j, x], costs[i, j])
    return high, low


@kernel
def require(table: FloatArray, wanted: int) -> None:
    """Make every set that lacks a wanted format infinitely dear."""
    if wanted == 0:
        return
    for x in range(table.shape[0]):
        if x & wanted != wanted:
            table[x] = np.inf


@kernel
def relax(table: FloatArray, high: FloatArray, low: FloatArray, weight: float) -> None:
    """Allow conversions: from the cost of serving each set as it is, to the cheapest.

    In place, `table[x] = min(table[x], weight * cheapest input of j + table[x + j])`
    over all formats `j` outside `x`. Sets are visited from large to small, so that
    `table[x + j]` is final when `x` needs it.
    """
    m = high.shape[1]
    lane = np.empty(_LANES)
    for block in range((table.shape[0] >> LANE_BITS) - 1, -1, -1):
        base = block << LANE_BITS
        for x in range(_LANES):
            lane[x] = table[base + x]
        for j in range(LANE_BITS, m):
            bit = 1 << j
            if base & bit == 0:
                into = high[block, j]
                other = base + bit
                for x in range(_LANES):
                    cheapest = low[j, x] if low[j, x] < into else into
                    step = cheapest * weight + table[other + x]
                    lane[x] = step if step < lane[x] else lane[x]
        for x in range(_LANES - 2, -1, -1):
            for j in range(LANE_BITS):
                bit = 1 << j
                if x & bit == 0:
                    into = high[block, j]
                    cheapest = low[j, x] if low[j, x] < into else into
                    step = cheapest * weight + lane[x + bit]
                    lane[x] = step if step < lane[x] else lane[x]
        for x in range(_LANES):
            table[base + x] = lane[x]


@inner_kernel
def smallest_subset(table: FloatArray) -> None:
    """Replace the value of every set by the smallest value of any of its subsets."""
    count = table.shape[0]
    for base in range(0, count, _LANES):
        for k in range(LANE_BITS):
            bit = 1 << k
            for x in range(_LANES):
                if x & bit:
                    smaller = table[base + x - bit]
                    table[base + x] = smaller if smaller < table[base + x] else table[base + x]
    bit = _LANES
    while bit < count:
        for base in range(0, count, bit << 1):
            for x in range(base, base + bit):
                smaller = table[x]
                table[bit + x] = smaller if smaller < table[bit + x] else table[bit + x]
        bit <<= 1


@kernel
def receive(table: FloatArray, sizes: FloatArray, weight: float, out: FloatArray) -> None:
    """Turn the cost of serving a node from a received set into its cost to the parent.

    `out[x]` becomes the smallest `table[s] + weight * sizes[s]` over the subsets `s`
    of `x`: the parent that holds `x` sends the best part of it.
    """
    for x in range(table.shape[0]):
        out[x] = table[x] + sizes[x] * weight
    smallest_subset(out)


@kernel
def accumulate_projected(total: FloatArray, part: FloatArray, position: IntArray) -> None:
    """Add the table of a child that knows fewer formats than its parent.

    `position[k]` is the child's bit for the parent's format `k`, or -1.
    """
    m = position.shape[0]
    half = m // 2
    lower = np.zeros(1 << half, dtype=np.int64)
    upper = np.zeros(1 << (m - half), dtype=np.int64)
    for k in range(half):
        bit = 1 << k
        for x in range(bit):
            lower[bit + x] = lower[x] | (1 << position[k] if position[k] >= 0 else 0)
    for k in range(m - half):
        bit = 1 << k
        shift = position[half + k]
        for x in range(bit):
            upper[bit + x] = upper[x] | (1 << shift if shift >= 0 else 0)
    for h in range(upper.shape[0]):
        for x in range(lower.shape[0]):
            total[(h << half) + x] += part[upper[h] | lower[x]]


@kernel
def accumulate_leaf(total: FloatArray, reached: FloatArray, received: FloatArray) -> None:
    """Add the cost of serving a leaf that wants few formats to its parent's table.

    `reached` (2**t, m) is what making each subset of the wishes costs from each format,
    `received` (m,) what sending each format to the leaf costs. For every set in hand
    at the parent the wishes are split in the cheapest way into groups, each made from
    one received format. A table over all sets of the leaf's own is not needed, which
    is several times faster for up to four wishes.
    """
    subsets, m = reached.shape
    half = m // 2
    lower = np.full((subsets, 1 << half), np.inf)
    upper = np.full((subsets, 1 << (m - half)), np.inf)
    for a in range(1, subsets):
        for k in range(half):
            bit = 1 << k
            price = reached[a, k] + received[k]
            for x in range(bit):
                lower[a, bit + x] = price if price < lower[a, x] else lower[a, x]
        for k in range(m - half):
            bit = 1 << k
            price = reached[a, half + k] + received[half + k]
            for x in range(bit):
                upper[a, bit + x] = price if price < upper[a, x] else upper[a, x]
    # Long rows, so that the compiler's vector loops pay; all of them fit the first cache.
    lanes = min(1 << half, 256)
    best = np.empty((subsets, lanes))
    for h in range(upper.shape[1]):
        for start in range(0, 1 << half, lanes):
            for a in range(1, subsets):
                into = upper[a, h]
                row = best[a]
                others = lower[a, start : start + lanes]
                for x in range(lanes):
                    row[x] = others[x] if others[x] < into else into
                lowest = a & -a
                b = (a - 1) & a
                while b > 0:
                    if b & lowest:
                        one = best[b]
                        other = best[a - b]
                        for x in range(lanes):
                            both = one[x] + other[x]
                            row[x] = both if both < row[x] else row[x]
                    b = (b - 1) & a
            base = (h << half) + start
            row = best[subsets - 1]
            for x in range(lanes):
                total[base + x] += row[x]


@kernel
def best_received(table: FloatArray, sizes: FloatArray, weight: float, offered: int) -> int:
    """Return the subset of `offered` that is cheapest to receive, the smallest of equals."""
    best = 0
    best_cost = np.inf
    subset = offered
    while True:
        price = table[subset] + sizes[subset] * weight
        if price <= best_cost:
            best_cost = price
            best = subset
        if subset == 0:
            return best
        subset = (subset - 1) & offered


@kernel
def next_conversion(
    table: FloatArray, costs: FloatArray, weight: float, held: int, wanted: int
) -> tuple[int, int]:
    """Return the next conversion (from, to) that the table was computed with, or (-1, -1).

    Choices are not stored: the one that was taken is the one whose cost is the table's,
    up to rounding. When everything wanted is in hand and no conversion has that cost,
    the children were served from here.
    """
    m = costs.shape[0]
    best = np.inf
    best_from = -1
    best_to = -1
    for j in range(m):
        if held >> j & 1:
            continue
        origin = -1
        into = np.inf
        for i in range(m):
            if held >> i & 1 and costs[i, j] < into:
                into = costs[i, j]
                origin = i
        if origin < 0:
            continue
        price = into * weight + table[held | (1 << j)]
        if price < best:
            best = price
            best_from = origin
            best_to = j
    missing = wanted & ~held
    if missing == 0 and not best <= table[held] * (1.0 + 1e-12):
        return -1, -1
    return best_from, best_to
