"""Matching: which of some filters does a publication pass?

An index costs about a tenth of a millisecond to ask and a fifteenth of one for every filter
it is built of; asking one filter after the other costs half a microsecond each. Most brokers
have a handful. The answer is the same either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from distributary.filters import Filter, Index

if TYPE_CHECKING:
    from distributary.content.reading import PublicationView

__all__ = ["INDEXED_MIN", "Matcher"]

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
            passed = [key for key, f in self._filters.items() if f.matches(publication)]
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
