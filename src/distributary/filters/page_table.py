"""Pages of subscriptions with required intervals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import UintArray
from distributary.filters import _page_kernels as kernels
from distributary.filters._cluster_kernels import cluster
from distributary.filters._decision_kernels import Decisions
from distributary.filters._page_kernels import (
    BUCKETS,
    FREE,
    HEAD,
    HULLS,
    LANE_SLOTS,
    LANES,
    ROWS,
    WORDS,
    Pages,
)
from distributary.filters.growth import grown

__all__ = ["PAGE_SLOTS_MIN", "PageTable"]

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
            heads=np.empty(0, HEAD),
            bits=np.empty(0, np.uint64),
            keys=np.empty(0, np.int32),
            slots=np.empty(0, np.int32),
            simple=np.empty(0, np.uint8),
            bounds=np.empty(0, np.uint8),
            hull_keys=np.empty((0, LANES, HULLS), np.int32),
            hull_lows=np.empty((0, LANES, HULLS), np.uint8),
            hull_highs=np.empty((0, LANES, HULLS), np.uint8),
            first=np.full(1, -1, np.int32),
            edges=np.empty((0, BUCKETS - 1)),
            edge_places=np.full(1, -1, np.int32),
        )
        self._bits_used = self._keys_used = self._slots_used = self._bounds_used = 0

    def extend(self, *, key_count: int, group_count: int) -> None:
        """Make room for so many keys and groups."""
        pages = self.arrays
        self.arrays = pages._replace(
            first=grown(pages.first, len(pages.first), group_count, fill=-1),
            edge_places=grown(pages.edge_places, len(pages.edge_places), key_count, fill=-1),
        )

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
        pages.heads[page] = (
            self._bits_used,
            self._keys_used,
            self._slots_used,
            self._bounds_used,
            lanes,
            len(kept),
            len(members),
            pages.first[group],
        )
        pages.first[group] = page
        self._bits_used += len(bits)
        self._keys_used += len(kept)
        self._slots_used += len(members)
        self._bounds_used += 2 * len(kept) * len(members)
        self.count += 1

    def _reserve(self, bits: int, keys: int, slots: int) -> None:
        pages = self.arrays
        count = self.count
        self.arrays = pages._replace(
            heads=grown(pages.heads, count, count + 1),
            bits=grown(pages.bits, self._bits_used, self._bits_used + bits),
            keys=grown(pages.keys, self._keys_used, self._keys_used + keys),
            slots=grown(pages.slots, self._slots_used, self._slots_used + slots),
            simple=grown(pages.simple, self._slots_used, self._slots_used + slots),
            bounds=grown(pages.bounds, self._bounds_used, self._bounds_used + 2 * keys * slots),
            hull_keys=grown(pages.hull_keys, count, count + 1),
            hull_lows=grown(pages.hull_lows, count, count + 1),
            hull_highs=grown(pages.hull_highs, count, count + 1),
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
