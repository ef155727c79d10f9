"""Pages: up to 4,096 subscriptions with required intervals, tested 512 at a time.

The numbers at a key are cut into 248 buckets, and eight of these are a row. For each key that
its subscriptions restrict, a page has 31 rows of bits, and one for events without the number:
a bit for each subscription that may match such an event. An event's rows, and-ed together,
leave few subscriptions. The buckets of their bounds then tell most of them: only where a
number falls into the very bucket of a bound is a walk through the decision needed.
Subscriptions are sorted so that the 512 of a lane ask for much the same: most lanes then fail
on the hull of their intervals, before any row is read.

Bits of a page: `bits[base + ((key_place * ROWS + row) * lanes + lane) * WORDS + word]`. Its
bounds: low and high in `bounds[base + (slot_place * keys + key_place) * 2:]`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import FloatArray, UintArray
from distributary.filters._decision_kernels import Decisions, is_required_interval
from distributary.filters.decision import REJECT, WITHIN
from distributary.kernels import kernel

__all__ = [
    "ABSENT",
    "BUCKETS",
    "BUCKET_BITS",
    "FREE",
    "HEAD",
    "HULLS",
    "LANES",
    "LANE_SLOTS",
    "ROWS",
    "WORDS",
    "Pages",
    "bucket_of",
    "count_keys",
    "fill_page",
    "mark_simple",
    "sample_bounds",
    "spread",
]

ROWS = 32
BUCKET_BITS = 3
BUCKETS = (ROWS - 1) << BUCKET_BITS
ABSENT = BUCKETS
"""Stands for the bucket of an event that has no number; it has the last row to itself."""
WORDS = 8
LANE_SLOTS = 64 * WORDS
LANES = 8
HULLS = 6
FREE = 255
"""Stands for the bucket of a bound where there is no interval."""


HEAD = np.dtype(
    [
        ("bit_start", np.int64),
        ("key_start", np.int64),
        ("slot_start", np.int64),
        ("bound_start", np.int64),
        ("lane_count", np.int32),
        ("key_count", np.int32),
        ("slot_count", np.int32),
        ("following", np.int32),
    ]
)
"""Of a page: where its rows of bits, keys, subscriptions and bounds begin, how many there
are of them, and the next page of the same group; -1 for none."""


class Pages(NamedTuple):
    """All pages of an index.

    Attributes
    ----------
    heads
        Records of `HEAD`, by page.
    bits
        Rows of bits, uint64.
    keys
        The keys of each page.
    slots, simple
        The subscriptions of each page, in the order of the bits, and whether the bounds are
        all that a subscription asks for.
    bounds
        The buckets of the bounds of every subscription. One without an interval on a key has
        0 and FREE, which every event passes.
    hull_keys, hull_lows, hull_highs
        By page, lane and hull: an event's number at the key must be in these buckets.
    first
        By group: its first page, or -1.
    edges, edge_places
        Where buckets begin: row `edge_places[key]` of `edges`; -1 for a key without.
    """

    heads: NDArray[np.void]
    bits: UintArray
    keys: NDArray[np.int32]
    slots: NDArray[np.int32]
    simple: NDArray[np.uint8]
    bounds: NDArray[np.uint8]
    hull_keys: NDArray[np.int32]
    hull_lows: NDArray[np.uint8]
    hull_highs: NDArray[np.uint8]
    first: NDArray[np.int32]
    edges: FloatArray
    edge_places: NDArray[np.int32]


@kernel
def bucket_of(edges: FloatArray, row: int, number: float) -> int:
    """Return the bucket of a number: how many of the edges are not above it."""
    low = 0
    high = BUCKETS - 1
    while low < high:
        middle = (low + high) >> 1
        if edges[row, middle] <= number:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def count_keys(decisions: Decisions, slots: NDArray[np.int32], counts: NDArray[np.int32]) -> None:
    """Add to `counts` how many required intervals the slots have on each key."""
    for i in range(slots.shape[0]):
        start = decisions.starts[slots[i]]
        for place in range(start, start + decisions.required[slots[i]]):
            if is_required_interval(decisions, start, place):
                counts[decisions.steps[place].key] += 1


@kernel
def sample_bounds(
    decisions: Decisions, slots: NDArray[np.int32], key: int, bounds: FloatArray
) -> int:
    """Fill `bounds` with finite bounds of the slots' steps on `key`; return how many there are.

    Slots are taken at a distance that gives about as many bounds as there is room for.
    """
    stride = max(1, 2 * slots.shape[0] // bounds.shape[0])
    count = 0
    for i in range(0, slots.shape[0], stride):
        start = decisions.starts[slots[i]]
        for place in range(start, start + decisions.required[slots[i]]):
            step = decisions.steps[place]
            if step.op != WITHIN or step.key != key:
                continue
            for bound in (step.low, step.high):
                if np.isfinite(bound) and count < bounds.shape[0]:
                    bounds[count] = bound
                    count += 1
    return count


@kernel
def spread(
    decisions: Decisions,
    slots: NDArray[np.int32],
    columns: NDArray[np.int32],
    edges: FloatArray,
    edge_places: NDArray[np.int32],
    lows: NDArray[np.uint8],
    highs: NDArray[np.uint8],
) -> None:
    """Write the buckets of the slots' required intervals, a column for each chosen key.

    `columns` has the column of each key, or -1. `lows` and `highs` are by slot and column, FREE
    before. Several intervals on a key are intersected; when they have nothing in common, low is
    above high.
    """
    for i in range(slots.shape[0]):
        start = decisions.starts[slots[i]]
        for place in range(start, start + decisions.required[slots[i]]):
            step = decisions.steps[place]
            if is_required_interval(decisions, start, place) and columns[step.key] >= 0:
                column = columns[step.key]
                row = edge_places[step.key]
                low = bucket_of(edges, row, step.low)
                high = bucket_of(edges, row, step.high)
                if lows[i, column] == FREE:
                    lows[i, column] = low
                    highs[i, column] = high
                else:
                    lows[i, column] = max(lows[i, column], low)
                    highs[i, column] = min(highs[i, column], high)


@kernel
def fill_page(
    lows: NDArray[np.uint8],
    highs: NDArray[np.uint8],
    order: NDArray[np.int32],
    columns: NDArray[np.int32],
    column_keys: NDArray[np.int32],
    lanes: int,
    bits: UintArray,
    bounds: NDArray[np.uint8],
    hull_keys: NDArray[np.int32],
    hull_lows: NDArray[np.uint8],
    hull_highs: NDArray[np.uint8],
) -> None:
    """Write the bits, the bounds and the hulls of one page.

    Parameters
    ----------
    order
        Its rows of `lows` and `highs`.
    columns
        Those that the page has bits for.
    column_keys
        The keys of these.
    lanes, bits
        How many lanes it has, and its bits, all zero before.
    bounds
        By row of `order` and column, low and high, one after the other.
    hull_keys, hull_lows, hull_highs
        By lane and hull.
    """
    widths = np.empty(columns.shape[0])
    lane_lows = np.empty(columns.shape[0], np.int64)
    lane_highs = np.empty(columns.shape[0], np.int64)
    for lane in range(lanes):
        begin = lane * LANE_SLOTS
        end = min(order.shape[0], begin + LANE_SLOTS)
        for j in range(columns.shape[0]):
            column = columns[j]
            lane_lows[j] = BUCKETS
            lane_highs[j] = -1
            free = False
            for i in range(begin, end):
                word = lane * WORDS + ((i - begin) >> 6)
                bit = np.uint64(1) << np.uint64((i - begin) & 63)
                low = int(lows[order[i], column])
                high = int(highs[order[i], column])
                if low == FREE:
                    free = True
                    low = 0
                    high = FREE
                place = 2 * (i * columns.shape[0] + j)
                bounds[place] = low
                bounds[place + 1] = high
                if low <= high:
                    for row in range(low >> BUCKET_BITS, (high >> BUCKET_BITS) + 1):
                        bits[(j * ROWS + row) * lanes * WORDS + word] |= bit
                lane_lows[j] = min(lane_lows[j], low)
                lane_highs[j] = max(lane_highs[j], high)
            widths[j] = 2.0 * BUCKETS if free else lane_highs[j] - lane_lows[j]
        narrowest = np.argsort(widths)
        for hull in range(HULLS):
            hull_keys[lane, hull] = 0
            hull_lows[lane, hull] = 0
            hull_highs[lane, hull] = FREE
            if hull < columns.shape[0] and widths[narrowest[hull]] < BUCKETS - 1:
                j = narrowest[hull]
                hull_keys[lane, hull] = column_keys[j]
                # An empty hull must stay empty as bytes: nothing is both above and below.
                hull_lows[lane, hull] = max(0, lane_lows[j])
                hull_highs[lane, hull] = max(0, lane_highs[j])
                if lane_highs[j] < lane_lows[j]:
                    hull_lows[lane, hull] = FREE


@kernel
def mark_simple(
    decisions: Decisions,
    slots: NDArray[np.int32],
    paged: NDArray[np.uint8],
    simple: NDArray[np.uint8],
) -> None:
    """Write which slots ask for nothing but required intervals on the keys that are `paged`."""
    for i in range(slots.shape[0]):
        slot = slots[i]
        start = decisions.starts[slot]
        simple[i] = decisions.counts[slot] == decisions.required[slot]
        for place in range(start, start + decisions.required[slot]):
            step = decisions.steps[place]
            if step.op != WITHIN or step.on_false != REJECT or paged[step.key] == 0:
                simple[i] = 0
