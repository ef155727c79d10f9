"""The matching index: which subscriptions does an event concern?

The answer is that of evaluating every filter, always. Conditions that must hold are looked up
(texts in groups, intervals in pages), what is left of the decisions is walked through by
compiled loops, and SQL expressions that are more than a list of conditions are evaluated in
Python, for the few subscriptions that come so far.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distributary.arguments import check_type, checked, kind_of
from distributary.arrays import IntArray
from distributary.content.reading import PublicationView, check_publication
from distributary.content.subscription import Subscription
from distributary.errors import BadInput, WrongType, quoted
from distributary.filters.filter import Filter
from distributary.filters.sql_built_ins import BUILT_INS
from distributary.filters.sql_functions import Functions

if TYPE_CHECKING:
    import pyarrow as pa

    from distributary.filters.decision import Decision
    from distributary.filters.subscription_store import SubscriptionStore

__all__ = ["ID_CHARACTERS_MAX", "Index"]

ID_CHARACTERS_MAX = 1024
# Fewer changes than this never make the index sort its subscriptions afresh.
_CHANGES_MIN = 8192
# How many events are matched at once: every subscription may match every one of them, and
# each has a place for every key.
_EVENTS_MAX = 1000
_PAIRS_MAX = 4_000_000
_PLACES_MAX = 4_000_000
# Subscriptions that come one by one are entered together: most of what entering one takes is
# the same for a thousand. Nobody notices, because whatever asks the store has them entered.
_WAITING_MAX = 1024
# Threads may match at the same time. One for all indexes: a lock cannot be sent elsewhere.
_ENTERING = threading.Lock()


class Index:
    """Subscriptions by id, and the events that match them.

    SQL expressions, in filters that come as JSON, can call `functions`.
    """

    @checked
    def __init__(self, *, functions: Functions = BUILT_INS) -> None:
        # Here and not above: it loads compiled code, which whoever only names the class
        # can do without.
        from distributary.filters.subscription_store import SubscriptionStore

        self._functions = functions
        # Drawn at random, so that nobody can choose texts that make lookups slow. No answer
        # depends on it.
        self._entered: SubscriptionStore = SubscriptionStore(secrets.randbits(64))
        self._waiting: dict[str, tuple[Filter, Decision]] = {}
        self._waiting_keys: set[str] = set()
        self._sorted = 0

    @property
    def _store(self) -> SubscriptionStore:
        """Everything that is known, with what was waiting to be entered."""
        self._enter()
        return self._entered

    def __getstate__(self) -> dict[str, Any]:
        self._enter()
        return self.__dict__

    def __len__(self) -> int:
        return self._entered.live + len(self._waiting)

    def __contains__(self, subscription_id: object) -> bool:
        if not isinstance(subscription_id, str):
            return False
        return subscription_id in self._waiting or self._slot(subscription_id) >= 0

    @checked
    def add(self, subscription: Subscription) -> None:
        """Add a subscription, or refuse it: its id is taken, or its filters break the rules."""
        filter_ = Filter.parse(list(subscription.filters), functions=self._functions)
        self.add_filter(subscription.id, filter_)

    def add_filter(self, subscription_id: str, filter_: Filter) -> None:
        """Add a subscription of which only the filter is known.

        Of many, `add_all` adds all or none, in somewhat less time.
        """
        from distributary.filters.decision import decision
        from distributary.filters.subscription_store import KEYS_MAX

        self._check_new(subscription_id, filter_)
        item = decision(filter_)
        keys = item.keys - self._entered.key_numbers.keys() - self._waiting_keys
        if len(self._entered.keys) + len(self._waiting_keys) + len(keys) > KEYS_MAX:
            # Too many, unless some are no longer used: there they are counted.
            self.add_all([(subscription_id, filter_)])
            return
        self._waiting_keys |= keys
        self._waiting[subscription_id] = (filter_, item)
        if len(self._waiting) >= _WAITING_MAX:
            self._enter()

    @checked
    def add_all(self, subscriptions: Iterable[tuple[str, Filter]]) -> None:
        """Add subscriptions, or none of them when one cannot be added."""
        ids: list[str] = []
        filters: list[Filter] = []
        seen: set[str] = set()
        for at, entry in enumerate(subscriptions):
            if not isinstance(entry, tuple) or len(entry) != 2:
                kind = kind_of(entry)
                raise WrongType(f"subscriptions[{at}]", f"must be an id and a Filter, not {kind}")
            subscription_id, filter_ = entry
            self._check_new(subscription_id, filter_, seen)
            seen.add(subscription_id)
            ids.append(subscription_id)
            filters.append(filter_)
        store = self._store
        try:
            store.append_filters(store.ids.add(ids), filters)
        except BadInput:
            self._entered = store.rebuilt()
            raise
        self._place()

    def _check_new(
        self, subscription_id: str, filter_: Filter, others: Collection[str] = ()
    ) -> None:
        """Raise `BadInput` unless it is an id that is not there, and a filter."""
        _check_id(subscription_id)
        check_type("filter_", filter_, Filter, hint="Filter.parse makes one of a list")
        if subscription_id in others or subscription_id in self:
            raise BadInput("subscription", f"{quoted(subscription_id)} is there already")

    @checked
    def remove(self, subscription_id: str) -> None:
        """Remove a subscription, which must be there."""
        store = self._store
        slot = self._slot(subscription_id)
        if slot < 0:
            raise BadInput("subscription", f"{quoted(subscription_id)} is not there")
        store.remove(np.array([slot], np.int32))
        self._sweep()

    def match(self, publication: PublicationView) -> list[str]:
        """Return the ids of the subscriptions that the publication matches, sorted.

        It is a `Publication`, or anything that can be read like one. `Publication.parse` makes
        one of a mapping, an event in the JSON format of CloudEvents that is already read;
        `parse_event` of a text.
        """
        try:
            _, slots = self._store.match_publications((publication,))
        except AttributeError:
            check_publication("publication", publication)
            raise
        return sorted(self._store.ids.texts(self._store.ids_of(slots)))

    def match_each(self, publications: Sequence[PublicationView]) -> Iterator[list[str]]:
        """Yield what `match` returns for each of the publications, in their order.

        Takes about a third of the time of asking one by one. Some hundreds are matched at
        once, so that memory is bounded. The index must not change before the last.
        """
        store = self._store
        size = min(_EVENTS_MAX, _PAIRS_MAX // (len(self) + 1), _PLACES_MAX // (len(store.keys) + 1))
        size = max(1, size)
        for first in range(0, len(publications), size):
            portion = publications[first : first + size]
            try:
                rows, slots = store.match_publications(portion)
            except AttributeError:
                for at, publication in enumerate(portion, start=first):
                    check_publication(f"publications[{at}]", publication)
                raise
            names = store.ids.texts(store.ids_of(slots))
            begin = 0
            for end in np.searchsorted(rows, np.arange(1, len(portion) + 1)).tolist():
                yield sorted(names[begin:end])
                begin = end

    @classmethod
    def from_arrow(cls, subscriptions: pa.Table, *, functions: Functions = BUILT_INS) -> Index:
        """Return an index of the subscriptions of a table; see `add_batch`."""
        index = cls(functions=functions)
        index.add_batch(subscriptions)
        return index

    def add_batch(self, subscriptions: pa.Table | pa.RecordBatch) -> None:
        """Add the subscriptions of a table, or none of them when one cannot be added.

        Its columns `subscription_id` and `filters` are read, the latter JSON as in
        `Filter.parse`.

        Raises `BadInput` naming the subscription and the place in its filters.
        """
        from distributary.filters.arrow_batches import add_table

        try:
            add_table(self._store, subscriptions, self._functions)
        except BadInput:
            self._entered = self._entered.rebuilt()
            raise
        self._place()

    def remove_batch(self, subscription_ids: pa.Array | pa.ChunkedArray) -> None:
        """Remove subscriptions, or none of them when one is not there."""
        from distributary.filters.arrow_batches import slots_in

        self._store.remove(slots_in(self._store, subscription_ids))
        self._sweep()

    def match_batch(self, publications: pa.RecordBatch) -> pa.RecordBatch:
        """Return who gets what, for a batch of the table `publications`.

        Of the columns that `publication_table.to_arrow` gives, `attributes`, `numbers` and
        `texts` are read. The result has the columns `event_index`, the row of the publication,
        and `subscription_id`, sorted by the first.
        """
        from distributary.filters.arrow_batches import match_table

        return match_table(self._store, publications)

    def match_numbers(
        self, publications: pa.RecordBatch
    ) -> Iterator[tuple[IntArray, NDArray[np.int32]]]:
        """Yield who gets what as numbers, for a batch as `match_batch` takes it.

        For those who look up more than the id of a subscription, and have tables in the
        order of `ids`. The matches come for some thousand publications at a time, so that
        memory is bounded.

        Yields the rows of publications, sorted, and where in `ids` the subscriptions are.
        """
        from distributary.filters.arrow_batches import matched_chunks

        return matched_chunks(self._store, publications)

    def ids(self) -> pa.Array:
        """Return ids by the numbers that `match_numbers` gives, until the index changes.

        Ids of removed subscriptions may be among them. In an index that `from_arrow` made
        they are in the order of its table.
        """
        from distributary.filters.arrow_batches import id_table

        return id_table(self._store)

    def _slot(self, subscription_id: str) -> int:
        """Return where an entered subscription is; -1 if it is not."""
        number = self._entered.ids.find(subscription_id)
        return int(self._entered.slots_of(np.array([number], np.int32))[0])

    def _enter(self) -> None:
        """Enter what has been waiting into the store."""
        if not self._waiting:
            return
        with _ENTERING:
            # Another thread may have been faster.
            if self._waiting:
                filters, decisions = zip(*self._waiting.values(), strict=True)
                store = self._entered
                store.append_filters(store.ids.add(list(self._waiting)), filters, decisions)
                self._place()
                self._waiting_keys = set()
                self._waiting = {}

    def _place(self) -> None:
        """Enter what was appended to the store, sorted together with the rest now and then."""
        store = self._entered
        if store.decisions.slots - self._sorted > max(_CHANGES_MIN, self._sorted) and self._sorted:
            self._entered = store.rebuilt()
            self._sorted = self._entered.live
            return
        if store.live == store.unplaced:
            self._sorted = store.live
        store.place()

    def _sweep(self) -> None:
        """Leave out what was removed, once it is as much as what is left."""
        if self._entered.dead > max(_CHANGES_MIN, self._entered.live):
            self._entered = self._entered.rebuilt()
            self._sorted = self._entered.live


def _check_id(subscription_id: object) -> None:
    if not isinstance(subscription_id, str) or not subscription_id:
        raise BadInput("subscription", "must have an id: text that is not empty")
    if len(subscription_id) > ID_CHARACTERS_MAX:
        raise BadInput(
            "subscription",
            f"{quoted(subscription_id)} has {len(subscription_id):,} characters; "
            f"an id has at most {ID_CHARACTERS_MAX:,}",
        )
    try:
        subscription_id.encode()
    except UnicodeEncodeError:
        raise BadInput(
            "subscription", f"{quoted(subscription_id)} has half of a surrogate pair"
        ) from None
