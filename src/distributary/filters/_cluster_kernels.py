"""Sorting subscriptions so that neighbours have similar intervals, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import IntArray
from distributary.filters._page_kernels import BUCKETS, FREE, LANE_SLOTS
from distributary.kernels import inner_kernel, kernel

__all__ = ["cluster"]

# Into how many parts the intervals on a key are cut when subscriptions are sorted.
_WAYS = 4
_SAMPLE = 2048
_STACK = 4096


@kernel
def cluster(lows: NDArray[np.uint8], highs: NDArray[np.uint8], order: NDArray[np.int32]) -> None:
    """Sort `order`, the rows of `lows` and `highs`, so that neighbours have similar intervals.

    Sets are cut again and again, down to the size of a lane: on the key whose cut narrows
    the intervals most for the bits of information it spends, into those without an interval
    on it and four parts by the middle of their intervals.
    """
    middles = 2 * BUCKETS
    counts = np.zeros(middles, np.int64)
    parts = np.zeros(middles, np.int64)
    mins = np.zeros(middles, np.int64)
    maxs = np.zeros(middles, np.int64)
    turned = np.empty(order.shape[0], np.int32)
    stack = np.empty((_STACK, 2), np.int64)
    stack[0, 0] = 0
    stack[0, 1] = order.shape[0]
    waiting = 1
    while waiting > 0:
        waiting -= 1
        begin = stack[waiting, 0]
        end = stack[waiting, 1]
        if end - begin <= LANE_SLOTS or waiting + _WAYS + 1 > _STACK:
            continue
        stride = max(1, (end - begin) // _SAMPLE)
        best = -1
        best_score = 0.0
        for column in range(lows.shape[1]):
            score = _score(lows, highs, order, begin, end, stride, column, counts, mins, maxs)
            if score > best_score:
                best_score = score
                best = column
        if best < 0:
            continue
        _cut_points(lows, highs, order, begin, end, best, counts, parts)
        sizes = np.zeros(_WAYS + 2, np.int64)
        for i in range(begin, end):
            sizes[_part(lows, highs, order[i], best, parts) + 1] += 1
        for part in range(_WAYS + 1):
            sizes[part + 1] += sizes[part]
        places = sizes.copy()
        for i in range(begin, end):
            part = _part(lows, highs, order[i], best, parts)
            turned[places[part]] = order[i]
            places[part] += 1
        for i in range(begin, end):
            order[i] = turned[i - begin]
        for part in range(_WAYS + 1):
            size = sizes[part + 1] - sizes[part]
            if 0 < size < end - begin:
                stack[waiting, 0] = begin + sizes[part]
                stack[waiting, 1] = begin + sizes[part + 1]
                waiting += 1


@inner_kernel
def _middle(low: int, high: int) -> int:
    """Return twice the middle of an interval; one that is empty counts as a point."""
    return low + max(low, high)


@inner_kernel
def _part(
    lows: NDArray[np.uint8],
    highs: NDArray[np.uint8],
    row: int,
    column: int,
    parts: IntArray,
) -> int:
    low = int(lows[row, column])
    if low == FREE:
        return 0
    return int(parts[_middle(low, int(highs[row, column]))]) + 1


@inner_kernel
def _cut_points(
    lows: NDArray[np.uint8],
    highs: NDArray[np.uint8],
    order: NDArray[np.int32],
    begin: int,
    end: int,
    column: int,
    counts: IntArray,
    parts: IntArray,
) -> None:
    """Write to `parts` which of four parts of equal size each middle belongs to."""
    counts[:] = 0
    total = 0
    for i in range(begin, end):
        low = int(lows[order[i], column])
        if low != FREE:
            counts[_middle(low, int(highs[order[i], column]))] += 1
            total += 1
    passed = 0
    for middle in range(counts.shape[0]):
        parts[middle] = min(_WAYS - 1, passed * _WAYS // max(total, 1))
        passed += counts[middle]


@kernel
def _score(
    lows: NDArray[np.uint8],
    highs: NDArray[np.uint8],
    order: NDArray[np.int32],
    begin: int,
    end: int,
    stride: int,
    column: int,
    counts: IntArray,
    mins: IntArray,
    maxs: IntArray,
) -> float:
    """Return how much a cut on a column narrows hulls, for each bit it takes to tell its parts."""
    counts[:] = 0
    mins[:] = BUCKETS
    maxs[:] = -1
    free = 0
    total = 0
    widest_low = BUCKETS
    widest_high = -1
    for i in range(begin, end, stride):
        low = int(lows[order[i], column])
        if low == FREE:
            free += 1
            continue
        high = max(low, int(highs[order[i], column]))
        middle = low + high
        counts[middle] += 1
        mins[middle] = min(mins[middle], low)
        maxs[middle] = max(maxs[middle], high)
        widest_low = min(widest_low, low)
        widest_high = max(widest_high, high)
        total += 1
    if total == 0:
        return 0.0
    everything = float(free + total)
    before = 0.0
    if free == 0:
        before = everything * np.log2(BUCKETS / (widest_high - widest_low + 1.0))
    bits = 0.0
    if free > 0:
        bits = free * np.log2(everything / free)
    gain = -before
    passed = 0
    size = 0
    part = 0
    low = BUCKETS
    high = -1
    for middle in range(counts.shape[0]):
        if counts[middle] == 0:
            continue
        here = min(_WAYS - 1, passed * _WAYS // total)
        if here != part and size > 0:
            gain += size * np.log2(BUCKETS / (high - low + 1.0))
            bits += size * np.log2(everything / size)
            size = 0
            low = BUCKETS
            high = -1
        part = here
        size += counts[middle]
        passed += counts[middle]
        low = min(low, int(mins[middle]))
        high = max(high, int(maxs[middle]))
    gain += size * np.log2(BUCKETS / (high - low + 1.0))
    bits += size * np.log2(everything / size)
    return gain / bits if bits > 0.0 else 0.0
