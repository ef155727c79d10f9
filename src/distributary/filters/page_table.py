"""Pages of subscriptions with required intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import UintArray
from distributary.filters import _page_kernels as kernels
from distributary.filters._cluster_kernels import cluster
from distributary.filters._decision_kernels import Decisions
from distributary.filters._page_kernels import (
    BUCKETS,
    FREE,
    HULLS,
    LANE_SLOTS,
    LANES,
    ROWS,
    WORDS,
    Pages,
)
from distributary.filters.growth import grown

__all__ = ["PAGE_SLOTS_MIN", "PageTable"]

_T = TypeVar("_T", bound=np.generic)

PAGE_SLOTS_MIN = 256
"""How many subscriptions are worth a page; fewer are walked through one by one."""

# Keys beyond these are left to the walk through the decision: a page must not grow with the
# number of different keys that its subscribers think of.
_KEYS_MAX = 64
# A key is worth its rows when at least one subscription in so many restricts it.
_KEY_SHARE_MIN = 16
_BOUNDS_SAMPLED = 8192


class PageTable:
    """All pages, and where the buckets of each key begin.

    Buckets are chosen when a key first appears in a page, so that each has about as many
    bounds as the others, and stay: rebuilding the index chooses them anew.
    """

    def __init__(self) -> None:
        self.count = 0
        self.arrays = Pages(
            bits=np.empty(0, np.uint64),
            bases=np.empty(0, np.int64),
            lanes=np.empty(0, np.int32),
            key_starts=np.empty(0, np.int64),
            key_counts=np.empty(0, np.int32),
            keys=np.empty(0, np.int32),
            slot_starts=np.empty(0, np.int64),
            slot_counts=np.empty(0, np.int32),
            slots=np.empty(0, np.int32),
            bounds=np.empty(0, np.uint8),
            bound_starts=np.empty(0, np.int64),
            simple=np.empty(0, np.uint8),
            hull_keys=np.empty((0, LANES, HULLS), np.int32),
            hull_lows=np.empty((0, LANES, HULLS), np.uint8),
            hull_highs=np.empty((0, LANES, HULLS), np.uint8),
            first=np.full(1, -1, np.int32),
            following=np.empty(0, np.int32),
            edges=np.empty((0, BUCKETS - 1)),
            edge_places=np.full(1, -1, np.int32),
        )
        self._bits_used = self._keys_used = self._slots_used = self._bounds_used = 0

    def extend(self, *, key_count: int, group_count: int) -> None:
        """Make room for so many keys and groups."""
        pages = self.arrays
        first = _filled(pages.first, group_count)
        edge_places = _filled(pages.edge_places, key_count)
        self.arrays = pages._replace(first=first, edge_places=edge_places)

    def add(self, decisions: Decisions, slots: NDArray[np.int32], group: int) -> None:
        """Put slots of a group into pages."""
        key_counts = np.zeros(len(self.arrays.edge_places), np.int32)
        kernels.count_keys(decisions, slots, key_counts)
        used = np.flatnonzero(key_counts)
        chosen = used[np.argsort(-key_counts[used], kind="stable")][:_KEYS_MAX].astype(np.int32)
        self._choose_edges(decisions, slots, chosen)
        columns = np.full(len(key_counts), -1, np.int32)
        columns[chosen] = np.arange(len(chosen))
        lows = np.full((len(slots), len(chosen)), FREE, np.uint8)
        highs = np.full_like(lows, FREE)
        pages = self.arrays
        kernels.spread(decisions, slots, columns, pages.edges, pages.edge_places, lows, highs)
        order = np.arange(len(slots), dtype=np.int32)
        cluster(lows, highs, order)
        for members in _pages_of(order):
            self._add_page(decisions, slots, members, lows, highs, chosen, group)

    def _add_page(
        self,
        decisions: Decisions,
        slots: NDArray[np.int32],
        members: NDArray[np.int32],
        lows: NDArray[np.uint8],
        highs: NDArray[np.uint8],
        keys: NDArray[np.int32],
        group: int,
    ) -> None:
        lanes = -(-len(members) // LANE_SLOTS)
        kept = _useful_columns(lows[members], highs[members])
        bits: UintArray = np.zeros(len(kept) * ROWS * lanes * WORDS, np.uint64)
        self._reserve(len(bits), len(kept), len(members))
        pages = self.arrays
        page = self.count
        kernels.fill_page(
            lows,
            highs,
            members,
            kept,
            keys[kept],
            lanes,
            bits,
            pages.bounds[self._bounds_used :],
            pages.hull_keys[page],
            pages.hull_lows[page],
            pages.hull_highs[page],
        )
        pages.bits[self._bits_used : self._bits_used + len(bits)] = bits
        pages.keys[self._keys_used : self._keys_used + len(kept)] = keys[kept]
        pages.slots[self._slots_used : self._slots_used + len(members)] = slots[members]
        paged = np.zeros(len(pages.edge_places), np.uint8)
        paged[keys[kept]] = 1
        kernels.mark_simple(decisions, slots[members], paged, pages.simple[self._slots_used :])
        pages.bases[page] = self._bits_used
        pages.lanes[page] = lanes
        pages.key_starts[page] = self._keys_used
        pages.key_counts[page] = len(kept)
        pages.slot_starts[page] = self._slots_used
        pages.slot_counts[page] = len(members)
        pages.bound_starts[page] = self._bounds_used
        pages.following[page] = pages.first[group]
        pages.first[group] = page
        self._bits_used += len(bits)
        self._keys_used += len(kept)
        self._slots_used += len(members)
        self._bounds_used += 2 * len(kept) * len(members)
        self.count += 1

    def _reserve(self, bits: int, keys: int, slots: int) -> None:
        pages = self.arrays
        count = self.count
        self.arrays = Pages(
            bits=grown(pages.bits, self._bits_used, self._bits_used + bits),
            bases=_one_more(pages.bases, count),
            lanes=_one_more(pages.lanes, count),
            key_starts=_one_more(pages.key_starts, count),
            key_counts=_one_more(pages.key_counts, count),
            keys=grown(pages.keys, self._keys_used, self._keys_used + keys),
            slot_starts=_one_more(pages.slot_starts, count),
            slot_counts=_one_more(pages.slot_counts, count),
            slots=grown(pages.slots, self._slots_used, self._slots_used + slots),
            bounds=grown(pages.bounds, self._bounds_used, self._bounds_used + 2 * keys * slots),
            bound_starts=_one_more(pages.bound_starts, count),
            simple=grown(pages.simple, self._slots_used, self._slots_used + slots),
            hull_keys=_one_more(pages.hull_keys, count),
            hull_lows=_one_more(pages.hull_lows, count),
            hull_highs=_one_more(pages.hull_highs, count),
            first=pages.first,
            following=_one_more(pages.following, count),
            edges=pages.edges,
            edge_places=pages.edge_places,
        )

    def _choose_edges(
        self, decisions: Decisions, slots: NDArray[np.int32], keys: NDArray[np.int32]
    ) -> None:
        pages = self.arrays
        new = [int(key) for key in keys if pages.edge_places[key] < 0]
        if not new:
            return
        bounds = np.empty(_BOUNDS_SAMPLED)
        rows = []
        for key in new:
            count = kernels.sample_bounds(decisions, slots, key, bounds)
            sample = np.sort(bounds[:count]) if count else np.zeros(1)
            # Without interpolation: an edge between two finite bounds may overflow.
            places = np.arange(1, BUCKETS) * len(sample) // BUCKETS
            rows.append(sample[places])
            pages.edge_places[key] = len(pages.edges) + len(rows) - 1
        self.arrays = pages._replace(edges=np.concatenate([pages.edges, np.array(rows)]))


def _pages_of(order: NDArray[np.int32]) -> Iterator[NDArray[np.int32]]:
    """Yield the members of each page."""
    size = LANES * LANE_SLOTS
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


def _useful_columns(lows: NDArray[np.uint8], highs: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return the columns that are worth their rows, those that let fewest pass first."""
    free = lows == FREE
    restricted = len(lows) - free.sum(axis=0)
    widths = np.where(free, BUCKETS, highs.astype(np.int64) - lows + 1).sum(axis=0)
    useful = np.flatnonzero(restricted * _KEY_SHARE_MIN >= len(lows))
    return useful[np.argsort(widths[useful], kind="stable")].astype(np.int32)


def _filled(array: NDArray[np.int32], needed: int) -> NDArray[np.int32]:
    """Return the array with room for `needed` items; -1 is in the new ones."""
    known = len(array)
    larger = grown(array, known, needed)
    if larger is not array:
        larger[known:] = -1
    return larger


def _one_more(array: NDArray[_T], used: int) -> NDArray[_T]:
    """Return the array with room for one more row."""
    if used < len(array):
        return array
    larger = np.zeros((max(16, 2 * used), *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger
