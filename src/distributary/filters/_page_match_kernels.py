"""Finding in pages the subscriptions that an event may match, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import FloatArray, IntArray
from distributary.filters._decision_kernels import with_room
from distributary.filters._page_kernels import (
    ABSENT,
    BUCKET_BITS,
    FREE,
    HULLS,
    LANES,
    ROWS,
    WORDS,
    Pages,
    bucket_of,
)
from distributary.kernels import inner_kernel

__all__ = ["bucket_events", "page_candidates"]

# Rows of a page are and-ed this many at a time before looking whether anything is left.
_ROWS_AT_ONCE = 4
_WORD_BITS = 64


@inner_kernel
def bucket_events(
    numbers: FloatArray,
    edges: FloatArray,
    edge_places: NDArray[np.int32],
    buckets: NDArray[np.uint8],
) -> None:
    """Write the bucket of every number of every event."""
    for event in range(numbers.shape[0]):
        for key in range(numbers.shape[1]):
            number = numbers[event, key]
            row = edge_places[key]
            if row >= 0 and number == number:
                buckets[event, key] = bucket_of(edges, row, number)
            else:
                buckets[event, key] = ABSENT


@inner_kernel
def page_candidates(
    pages: Pages,
    page: int,
    buckets: NDArray[np.uint8],
    concerned: IntArray,
    enough: int,
) -> tuple[IntArray, int]:
    """Return the candidates of a group's pages, from `page` on, until there are enough.

    Page by page, so that its rows stay in the cache for all events. Everything is one
    function on purpose: a call with all these arrays costs more than reading a row.

    `buckets` are by event and key, `concerned` the events, and `enough` how many candidates are
    enough to stop after the page that has them. Returns the candidates, coded as in `decide` (the
    lowest bit is set in those that match for certain), and the page to go on with, -1 when all is
    done.
    """
    # Names without dots: a field that is looked up in the loop is looked up every time.
    bits = pages.bits
    keys = pages.keys
    bounds = pages.bounds
    hull_keys = pages.hull_keys
    hull_lows = pages.hull_lows
    hull_highs = pages.hull_highs
    left = np.empty(LANES * WORDS, np.uint64)
    candidates = np.empty(1024, np.int64)
    count = int(np.int64(0))  # A literal would be another signature of `with_room`.
    while page >= 0 and count < enough:
        head = pages.heads[page]
        key_start = head.key_start
        key_count = int(head.key_count)
        lanes = int(head.lane_count)
        words = lanes * WORDS
        slot_start = head.slot_start
        slot_count = int(head.slot_count)
        bound_start = head.bound_start
        for i in range(concerned.shape[0]):
            event = concerned[i]
            event_buckets = buckets[event]
            anything = np.uint64(0)
            for lane in range(lanes):
                inside = ~np.uint64(0)
                for hull in range(HULLS):
                    bucket = event_buckets[hull_keys[page, lane, hull]]
                    if (
                        bucket < hull_lows[page, lane, hull]
                        or bucket > hull_highs[page, lane, hull]
                    ):
                        inside = np.uint64(0)
                        break
                anything |= inside
                for word in range(lane * WORDS, (lane + 1) * WORDS):
                    left[word] = inside
            base = head.bit_start
            place = 0
            while anything != 0 and place < key_count:
                for _ in range(min(_ROWS_AT_ONCE, key_count - place)):
                    bucket = event_buckets[keys[key_start + place]]
                    at = base + int(bucket >> BUCKET_BITS) * words
                    row = bits[at : at + words]
                    # All lanes, those outside of their hulls too: one long loop compiles to
                    # few wide instructions, and choosing among lanes costs more than it saves.
                    for word in range(words):
                        left[word] &= row[word]
                    base += ROWS * words
                    place += 1
                anything = np.uint64(0)
                for word in range(words):
                    anything |= left[word]
            if anything == 0:
                continue
            for word in range(words):
                rest = left[word]
                if rest != 0:
                    candidates = with_room(candidates, count)
                while rest != 0:
                    lowest = rest & (~rest + np.uint64(1))
                    rest ^= lowest
                    member = _WORD_BITS * word + _place_of(lowest)
                    if member >= slot_count:
                        continue
                    bound = bound_start + 2 * member * key_count
                    holds = True
                    certain = pages.simple[slot_start + member] != 0
                    for place in range(key_start, key_start + key_count):
                        bucket = event_buckets[keys[place]]
                        low = bounds[bound]
                        high = bounds[bound + 1]
                        bound += 2
                        if bucket < low or bucket > high:
                            holds = False
                            break
                        if (bucket == low or bucket == high) and high != FREE:
                            certain = False
                    if holds:
                        slot = np.int64(pages.slots[slot_start + member])
                        code = (event << 32) | (slot << 1) | np.int64(certain)
                        candidates[count] = code
                        count += 1
        page = int(head.following)
    return candidates[:count], page


@inner_kernel
def _place_of(bit: np.uint64) -> int:
    """Return the place of the only bit that is set."""
    place = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if bit >> np.uint64(shift):
            place += shift
            bit >>= np.uint64(shift)
    return place
