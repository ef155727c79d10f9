"""Groups of subscriptions, found through the texts that an event has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import IntArray
from distributary.filters import _group_kernels as kernels
from distributary.filters import _lookup_kernels
from distributary.filters._decision_kernels import Decisions
from distributary.filters._lookup_kernels import Keys, Lookups
from distributary.filters._text_kernels import TextArrays
from distributary.filters.decision import ENDS
from distributary.filters.growth import grown

__all__ = ["GroupTable"]

_TABLE_MIN = 64


class GroupTable:
    """Which subscriptions to look at for which text; group 0 is for every event."""

    def __init__(self) -> None:
        self.lookups = Lookups(
            np.full(_TABLE_MIN, -1, np.int32),
            np.zeros(1, np.uint64),
            np.zeros(1, np.int32),
            np.ones(1, np.int64),
        )
        self.keys = Keys(
            np.zeros(1, np.uint8),
            np.zeros(1, np.uint64),
            np.zeros(1, np.uint64),
            np.full(1, -1, np.int32),
            np.full(1, -1, np.int32),
        )
        self.list_starts: IntArray = np.zeros(2, np.int64)
        self.list_counts: NDArray[np.int32] = np.zeros(2, np.int32)
        self.members: NDArray[np.int32] = np.empty(0, np.int32)
        self._list_rooms: NDArray[np.int32] = np.zeros(2, np.int32)
        self._members_used = 0

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.lookups.used[0])

    def place(
        self, decisions: Decisions, first: int, end: int, *, key_count: int, texts: TextArrays
    ) -> None:
        """Let the slots from `first` to `end` join the groups through which they are found."""
        self._extend_keys(key_count)
        steps = decisions.steps[decisions.starts[first] : decisions.starts[end]]
        lookup_count = int(np.count_nonzero(steps["op"] <= ENDS))
        self._extend_lookups(lookup_count)
        _lookup_kernels.enter_lookups(decisions, first, end, self.lookups, self.keys, texts)
        lists = np.empty(lookup_count + end - first, np.int32)
        slots = np.empty_like(lists)
        count = kernels.choose_groups(decisions, first, end, self.lookups, texts, lists, slots)
        self._extend_lists()
        self._make_room(lists, count)
        kernels.append_members(
            lists, slots, count, self.list_starts, self.list_counts, self.members
        )

    def take_ranged(self, group: int) -> NDArray[np.int32]:
        """Return the slots of a group that have required intervals, which leave it for pages."""
        start = self.list_starts[2 * group + 1]
        slots = self.members[start : start + self.list_counts[2 * group + 1]].copy()
        self.list_counts[2 * group + 1] = 0
        return slots

    def full(self, slots_min: int) -> NDArray[np.int64]:
        """Return the groups with at least so many slots for a page."""
        return np.flatnonzero(self.list_counts[1 : 2 * self.count : 2] >= slots_min)

    def _extend_keys(self, key_count: int) -> None:
        keys = self.keys
        known = len(keys.equals)
        self.keys = Keys(
            grown(keys.equals, known, key_count, fill=0),
            grown(keys.starts, known, key_count, fill=0),
            grown(keys.ends, known, key_count, fill=0),
            grown(keys.starts_max, known, key_count, fill=-1),
            grown(keys.ends_max, known, key_count, fill=-1),
        )

    def _extend_lookups(self, more: int) -> None:
        table, codes, users, used = self.lookups
        needed = self.count + more
        codes = grown(codes, self.count, needed)
        users = grown(users, self.count, needed)
        fresh = 2 * needed > len(table)
        if fresh:
            size = len(table)
            while 2 * needed > size:
                size *= 2
            table = np.full(size, -1, np.int32)
        self.lookups = Lookups(table, codes, users, used)
        if fresh:
            _lookup_kernels.rehash_lookups(self.lookups)

    def _extend_lists(self) -> None:
        known, needed = len(self.list_starts), 2 * self.count
        self.list_starts = grown(self.list_starts, known, needed, fill=0)
        self.list_counts = grown(self.list_counts, known, needed, fill=0)
        self._list_rooms = grown(self._list_rooms, known, needed, fill=0)

    def _make_room(self, lists: NDArray[np.int32], count: int) -> None:
        added = np.zeros(len(self.list_starts), np.int32)
        used = self._members_used
        for move in (False, True):
            end = kernels.move_lists(
                lists,
                count,
                self.list_starts,
                self.list_counts,
                self._list_rooms,
                added,
                self.members,
                used,
                move,
            )
            self.members = grown(self.members, used, end)
        self._members_used = end
