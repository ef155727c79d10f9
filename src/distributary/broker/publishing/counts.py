"""Counts: how a home numbers what a session publishes, and what its root must have heard of."""

from __future__ import annotations

import hashlib
from heapq import heappop, heappush
from typing import NamedTuple

from distributary.broker.publishing.publications import Kept

__all__ = ["Count", "Place", "series_of"]

# Of the time in a series, so many bits (a millisecond) give way to what tells counts apart.
_MARK_BITS = 20


class Place(NamedTuple):
    """What numbers count: one session's publications in one cell, whatever their sources.

    Clients that share a source have a count each. With one for all of them, a client that
    moves would take the numbers of the others along.
    """

    client: str
    session: str
    cell: int


def series_of(place: Place, home: str, now_ns: int) -> int:
    """Return the name of a count that begins now.

    Names are ordered as counts begin, and a root tells counts of one client apart by name
    alone. Two gateways that publish the same may well begin in the same instant.
    """
    text = "\n".join((*map(str, place), home))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    mark = int.from_bytes(digest, "big") >> (64 - _MARK_BITS)
    return (now_ns >> _MARK_BITS << _MARK_BITS) | mark


class Count:
    """The numbers of one place, and the publications with a number that are kept.

    Attributes
    ----------
    series
        Its name.
    last
        The number that was given last.
    kept
        What is kept, by number.
    recorded
        Whether there is a record of it. Without one the last number is that of what is kept.
    reviewed_for
        The last root for which everything that is kept has been looked through.
    """

    __slots__ = ("_open", "_root", "kept", "last", "recorded", "reviewed_for", "series")

    def __init__(self, series: int, last: int = 0) -> None:
        self.series = series
        self.last = last
        self.kept: dict[int, Kept] = {}
        self.recorded = False
        self.reviewed_for: str | None = None
        self._root: str | None = None
        # A heap with every number that the root has not settled, and some that it has.
        self._open: list[int] = []

    def enter(self, kept: Kept) -> None:
        """Enter a publication."""
        self.kept[kept.item.number] = kept
        self.last = max(self.last, kept.item.number)
        heappush(self._open, kept.item.number)

    def reopen(self, kept: Kept) -> None:
        """Note that a publication is offered again."""
        heappush(self._open, kept.item.number)

    def remove(self, kept: Kept) -> None:
        """Keep a publication no longer."""
        del self.kept[kept.item.number]

    def first(self, kept: Kept, root: str) -> int:
        """Return the lowest number that the root must have heard of before what follows.

        Every number is pushed when it is entered and whenever it is offered again, and popped
        once for that. Only a new root, which is offered everything anyway, makes the heap anew.
        To look through all that is kept instead would be simpler, and at a few hundred a second
        take most of a broker's time.
        """
        if root != self._root:
            self._root = root
            self._open = sorted(self.kept)
        while True:
            number = self._open[0]
            known = self.kept.get(number)
            if known is not None and not known.settled_by(root):
                assert number <= kept.item.number
                return number
            heappop(self._open)
