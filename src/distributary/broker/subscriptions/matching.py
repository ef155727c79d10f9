"""Matching: which of some filters does a publication pass?

An index costs about a tenth of a millisecond to ask and a fifteenth of one for every filter
it is built of; asking one filter after the other costs half a microsecond each. Most brokers
have a handful. The answer is the same either way.

Covering: a subscription included in another's registration needs none of its own.

What matches the narrower one matches the wider one, is sent to the same broker and, as both
devices are alike, in the same format. Roots do not look at how large a tolerance is, only at
whether there is one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

from distributary.broker.addresses import tenant_of
from distributary.broker.subscriptions.subscription import LocalSubscription, State, filter_of
from distributary.filters import Filter, Index, covers

if TYPE_CHECKING:
    from distributary.content.reading import PublicationView

__all__ = ["INDEXED_MIN", "Covering", "Matcher"]

INDEXED_MIN = 256
"""From how many filters on an index is quicker; measured."""

_Key = TypeVar("_Key", str, tuple[str, str])


class Matcher(Generic[_Key]):
    """Filters by key, and which of them a publication passes.

    Parameters
    ----------
    indexed_min
        From how many filters on an index is used.
    """

    def __init__(self, *, indexed_min: int = INDEXED_MIN) -> None:
        self._indexed_min = indexed_min
        self._filters: dict[_Key, Filter] = {}
        self._index: Index | None = None
        # Keys are numbered for the index, which is told of changes when it is asked next.
        self._numbers: dict[_Key, str] = {}
        self._keys: dict[str, _Key] = {}
        self._changed: dict[_Key, None] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._filters)

    def put(self, key: _Key, filter_: Filter) -> None:
        """Add a filter, in place of the one with that key if there is one."""
        self._filters[key] = filter_
        if self._index is not None:
            self._changed[key] = None

    def discard(self, key: _Key) -> None:
        """Remove a filter, if it is there."""
        if self._filters.pop(key, None) is not None and self._index is not None:
            self._changed[key] = None

    def match(self, publication: PublicationView) -> list[_Key]:
        """Return the keys of the filters that a publication passes, in order."""
        if len(self._filters) < self._indexed_min:
            self._index = None
            # Filters of the same text are the same object, and many clients ask for the same.
            tested: dict[int, bool] = {}
            passed: list[_Key] = []
            for key, filter_ in self._filters.items():
                found = tested.get(id(filter_))
                if found is None:
                    found = tested[id(filter_)] = filter_.matches(publication)
                if found:
                    passed.append(key)
            passed.sort()
            return passed
        return sorted(self._keys[number] for number in self._current().match(publication))

    def _current(self) -> Index:
        if self._index is None:
            self._index = Index()
            self._numbers.clear()
            self._keys.clear()
            self._changed = dict.fromkeys(self._filters)
        added: list[tuple[str, Filter]] = []
        for key in self._changed:
            number = self._numbers.pop(key, None)
            if number is not None:
                self._index.remove(number)
                del self._keys[number]
            filter_ = self._filters.get(key)
            if filter_ is not None:
                self._count += 1
                number = self._numbers[key] = str(self._count)
                self._keys[number] = key
                added.append((number, filter_))
        self._changed = {}
        if added:
            self._index.add_all(added)
        return self._index


# Telling takes a tenth of a millisecond for each pair, and a registration too many is no loss
# but of memory: only so many are tried.
_TRIED_MAX = 16

_Alike = tuple[str, str | None, bool]


class Covering:
    """Which subscriptions have registrations, and which are included in those."""

    def __init__(self) -> None:
        self._wide: dict[_Alike, dict[str, LocalSubscription]] = {}
        self._covered: dict[str, set[str]] = {}

    def find(self, narrow: LocalSubscription) -> LocalSubscription | None:
        """Return a registered subscription that covers another one, if there is any.

        It has been registered at least as long: whatever is owed to the narrower one, and may
        still be on its way, was sent on account of it too.
        """
        tried = 0
        for wide in self._wide.get(_alike(narrow), {}).values():
            if (
                wide.id == narrow.id
                or wide.since_ns > narrow.since_ns
                or narrow.cell_mask & ~wide.cell_mask
            ):
                continue
            if tried == _TRIED_MAX:
                return None
            tried += 1
            if _covers(wide.reading.filters, narrow.reading.filters):
                return wide
        return None

    def changed(self, local: LocalSubscription) -> None:
        """Note a subscription's state, whenever it has changed."""
        alike = self._wide.setdefault(_alike(local), {})
        # One that has been changed is withdrawn before long.
        if local.state is State.REGISTERED and not local.until_ns:
            alike[local.registration] = local
        else:
            alike.pop(local.registration, None)

    def cover(self, local: LocalSubscription, coverer: str | None) -> None:
        """Note in whose registration a subscription is included, if in any."""
        if local.coverer is not None:
            covered = self._covered.get(local.coverer, set())
            covered.discard(local.registration)
            if not covered:
                self._covered.pop(local.coverer, None)
        local.coverer = coverer
        if coverer is not None:
            self._covered.setdefault(coverer, set()).add(local.registration)

    def covered_by(self, registration: str) -> list[str]:
        """Return those included in a registration, in order, as roots would call them."""
        return sorted(self._covered.get(registration, ()))


def _alike(local: LocalSubscription) -> _Alike:
    tenant = tenant_of(local.client)
    return tenant, local.reading.profile, local.subscription.tolerance is not None


@lru_cache(maxsize=65_536)
def _covers(wide: str, narrow: str) -> bool:
    return covers(filter_of(wide), filter_of(narrow))
