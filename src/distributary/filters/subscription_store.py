"""Everything the index knows, in arrays: subscriptions, their decisions, groups and pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from distributary.arrays import IntArray
from distributary.content.reading import PublicationView
from distributary.errors import BadInput
from distributary.filters._decision_kernels import Events
from distributary.filters._match_kernels import Structure, match_events
from distributary.filters.decision import WITHIN, Decision, decision
from distributary.filters.decision_table import DecisionTable, encoded
from distributary.filters.events import events_of
from distributary.filters.filter import Filter
from distributary.filters.group_table import GroupTable
from distributary.filters.growth import grown
from distributary.filters.page_table import PAGE_SLOTS_MIN, PageTable
from distributary.filters.text_table import TextTable

__all__ = ["KEYS_MAX", "SubscriptionStore"]

KEYS_MAX = 65_536
"""How many different keys the filters of an index may read: an event has a place for each."""
_NONE = -1


class SubscriptionStore:
    """Subscriptions in slots, in the order in which they came; hashes begin at `seed`.

    Attributes
    ----------
    keys, texts, ids
        The keys and texts of all filters, and the ids of all subscriptions, with numbers.
    key_numbers, numeric
        The number of every key that a filter reads, and the attributes read as numbers.
    filters
        By slot: the filters that compiled loops cannot decide alone.
    live
        How many subscriptions there are.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.keys = TextTable(seed)
        self.texts = TextTable(seed)
        self.ids = TextTable(seed)
        self.filters: dict[int, Filter] = {}
        self.live = 0
        self.decisions = DecisionTable()
        self._groups = GroupTable()
        self._pages = PageTable()
        self._slot_of: NDArray[np.int32] = np.empty(0, np.int32)
        self._id_of: NDArray[np.int32] = np.empty(0, np.int32)
        self._placed = 0
        self.key_numbers: dict[str, int] = {}
        self.numeric: frozenset[str] = frozenset()

    @property
    def dead(self) -> int:
        """How many slots were removed."""
        return self.decisions.slots - self.live

    @property
    def unplaced(self) -> int:
        """How many slots were appended since `place`."""
        return self.decisions.slots - self._placed

    @property
    def _structure(self) -> Structure:
        """All arrays, for compiled loops."""
        groups = self._groups
        return Structure(
            self.decisions.arrays,
            self.texts.arrays,
            groups.lookups,
            groups.keys,
            self._pages.arrays,
            groups.list_starts,
            groups.list_counts,
            groups.members,
        )

    def slots_of(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the slots of subscriptions by the numbers of their ids; -1 for none."""
        self._extend_ids()
        slots = np.full(len(ids), _NONE, np.int32)
        known = ids >= 0
        slots[known] = self._slot_of[ids[known]]
        return slots

    def ids_of(self, slots: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the numbers of the ids of slots."""
        return self._id_of[slots]

    def append(
        self,
        ids: NDArray[np.int32],
        steps: NDArray[np.void],
        counts: NDArray[np.int32],
        required: NDArray[np.int32],
    ) -> int:
        """Add subscriptions and return the first of their slots; `place` makes them matter.

        `ids` are the numbers of their ids, which must be new; the rest are their decisions, as
        `DecisionTable.append` takes them.
        """
        if len(self.keys) > KEYS_MAX:
            raise BadInput(
                "filters", f"read more than {KEYS_MAX:,} different keys, which is the limit"
            )
        first = self.decisions.append(steps, counts, required)
        end = self.decisions.slots
        self._extend_ids()
        self._id_of = grown(self._id_of, first, end)
        self._id_of[first:end] = ids
        self._slot_of[ids] = np.arange(first, end)
        self.live += len(ids)
        return first

    def append_filters(
        self,
        ids: NDArray[np.int32],
        filters: Sequence[Filter],
        decisions: Sequence[Decision] | None = None,
    ) -> None:
        """Add subscriptions with those filters, as `append` does.

        Their decisions are given by whoever has made them already.
        """
        if decisions is None:
            decisions = [decision(filter_) for filter_ in filters]
        arrays = encoded(decisions, self.keys, self.texts)
        first = self.append(ids, *arrays)
        for slot, (item, filter_) in enumerate(zip(decisions, filters, strict=True), start=first):
            if not item.certain:
                self.filters[slot] = filter_

    def place(self) -> None:
        """Enter the subscriptions that were appended into groups and pages."""
        first, end = self._placed, self.decisions.slots
        decisions = self.decisions.arrays
        key_count = len(self.keys)
        groups, pages = self._groups, self._pages
        groups.place(decisions, first, end, key_count=key_count, texts=self.texts.arrays)
        pages.extend(key_count=key_count, group_count=groups.count)
        for group in groups.full(PAGE_SLOTS_MIN).tolist():
            pages.add(decisions, groups.take_ranged(group), group)
        self._placed = end
        self._note_keys(first, end)

    def remove(self, slots: NDArray[np.int32]) -> None:
        """Remove the subscriptions in these slots."""
        self.decisions.remove(slots)
        self._slot_of[self._id_of[slots]] = _NONE
        if self.filters:
            for slot in slots.tolist():
                self.filters.pop(slot, None)
        self.live -= len(slots)

    def rebuilt(self) -> SubscriptionStore:
        """Return a store of the same subscriptions, sorted afresh and without what was removed."""
        alive = np.flatnonzero(self.decisions.arrays.counts[: self.decisions.slots] >= 0)
        slots = alive.astype(np.int32)
        fresh = SubscriptionStore(self.seed)
        steps, counts, required = self.decisions.copied(slots)
        _renumber(steps, "key", steps["op"] <= WITHIN, self.keys, fresh.keys)
        _renumber(steps, "text", steps["op"] < WITHIN, self.texts, fresh.texts)
        arrays = self.ids.arrays
        numbers = self._id_of[slots]
        starts = arrays.starts[numbers]
        ids = fresh.ids.add_spans(arrays.arena, starts, arrays.starts[numbers + 1] - starts)
        fresh.append(ids, steps, counts, required)
        open_slots = np.array(sorted(self.filters), np.int32)
        places = np.searchsorted(slots, open_slots).tolist()
        fresh.filters = {
            new: self.filters[old] for new, old in zip(places, open_slots.tolist(), strict=True)
        }
        fresh.place()
        return fresh

    def match_publications(
        self, publications: Sequence[PublicationView]
    ) -> tuple[IntArray, IntArray]:
        """Return who gets what: places of publications, sorted, and slots."""
        events = events_of(publications, self.key_numbers, self.numeric)
        return self.match(events, publications.__getitem__)

    def match(
        self, events: Events, publication_at: Callable[[int], PublicationView]
    ) -> tuple[IntArray, IntArray]:
        """Return who gets what: rows of events, sorted, and slots.

        `publication_at` gives the event of a row to the filters that compiled loops left open.
        """
        pairs = match_events(self._structure, events)
        rows, slots = pairs >> 32, (pairs >> 1) & 0x7FFFFFFF
        kept = (pairs & 1) == 0
        row = -1
        for place in np.flatnonzero(~kept).tolist():
            if rows[place] != row:
                row = int(rows[place])
                publication = publication_at(row)
            kept[place] = self.filters[int(slots[place])].matches(publication)
        return rows[kept], slots[kept]

    def _extend_ids(self) -> None:
        self._slot_of = grown(self._slot_of, len(self._slot_of), len(self.ids), fill=_NONE)

    def _note_keys(self, first: int, end: int) -> None:
        """Remember keys by name, and which attributes are read as numbers."""
        known = len(self.key_numbers)
        for number in range(known, len(self.keys)):
            self.key_numbers[self.keys[number]] = number
        steps = self.decisions.arrays.steps[
            self.decisions.arrays.starts[first] : self.decisions.arrays.starts[end]
        ]
        within = np.unique(steps["key"][steps["op"] == WITHIN])
        names = {self.keys[int(number)] for number in within}
        self.numeric |= {name for name in names if not name.startswith("/")}


def _renumber(
    steps: NDArray[np.void],
    field: str,
    concerned: NDArray[np.bool_],
    old: TextTable,
    new: TextTable,
) -> None:
    """Give texts new numbers: those of a table that has only the texts in use."""
    used, inverse = np.unique(steps[field][concerned], return_inverse=True)
    arrays = old.arrays
    starts = arrays.starts[used]
    numbers = new.add_spans(arrays.arena, starts, arrays.starts[used + 1] - starts)
    values = steps[field]
    values[concerned] = numbers[inverse]
