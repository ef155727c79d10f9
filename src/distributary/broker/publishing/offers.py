"""Offers: what a home has numbered and offered to roots, and they have not taken."""

from __future__ import annotations

import hashlib
from heapq import heappop, heappush
from typing import NamedTuple

from distributary.broker.publishing.publications import Kept
from distributary.broker.settings import PublishingSettings
from distributary.broker.timers import Backoff, RoundTrip

__all__ = ["Count", "Offers", "Place", "series_of"]

# Offers: what a home has offered to roots and they have not taken.
#
# A root that has much to do takes its time before it says `Taken`. What it has not taken counts
# against its clients, so that publishers are no faster than the slowest broker that their content
# goes by, and whoever publishes by way of others does not notice.

# Over about so many times at which a root has said something.
_LATELY = 8


class _Offered:
    """What one root has not taken, and how fast it is.

    Attributes
    ----------
    items, bytes
        How much that is.
    heard_ns
        When it took the last one, or began to have something to take.
    waited_ns, taken
        For how long it was waited for lately, and how many it took meanwhile. What roots say is
        gathered: a hundred come together, then one, then none for a while. The mean of the times
        between two of them would be that of the few that come alone.
    trip
        How long it takes from an offer until it is taken.
    """

    __slots__ = ("bytes", "heard_ns", "items", "taken", "trip", "waited_ns")

    def __init__(self) -> None:
        self.items = 0
        self.bytes = 0
        self.heard_ns = 0
        self.waited_ns = 0
        self.taken = 0.0
        self.trip = RoundTrip()


class Offers:
    """What roots have been offered and have not taken."""

    def __init__(self, settings: PublishingSettings, backoff: Backoff) -> None:
        self._items_max, self._bytes_max = settings.untaken_items, settings.untaken_bytes
        self._backoff = backoff
        self._by_root: dict[str, _Offered] = {}

    def enter(self, kept: Kept, root: str, now_ns: int) -> None:
        """Note that a publication is offered to a root, and to no other any more."""
        if kept.offered_to == root:
            return
        self.leave(kept)
        offered = self._by_root.get(root)
        if offered is None:
            offered = self._by_root[root] = _Offered()
        if not offered.items:
            offered.heard_ns = now_ns
        kept.offered_to = root
        offered.items += 1
        offered.bytes += kept.size_bytes

    def leave(self, kept: Kept) -> None:
        """Note that a publication waits for no root."""
        if kept.offered_to is None:
            return
        offered = self._by_root[kept.offered_to]
        kept.offered_to = None
        offered.items -= 1
        offered.bytes -= kept.size_bytes

    def taken(self, kept: Kept, root: str, now_ns: int) -> None:
        """Note that a root has taken a publication."""
        if kept.offered_to != root:
            # Roots do not agree yet, or it was offered to another since. Whether that one has to
            # be waited for is found out when it is next looked after.
            self.leave(kept)
            return
        offered = self._by_root[root]
        if offered.items > 1:
            if now_ns > offered.heard_ns:
                waited_ns = now_ns - offered.heard_ns
                offered.waited_ns += waited_ns - offered.waited_ns // _LATELY
                offered.taken -= offered.taken / _LATELY
            offered.taken += 1.0
        offered.heard_ns = now_ns
        if kept.repeats == 1:
            offered.trip.measure(now_ns - kept.offered_ns)
        self.leave(kept)

    def forget(self, root: str) -> None:
        """Forget how fast a broker was that is lost for ever."""
        offered = self._by_root.get(root)
        if offered is not None and not offered.items:
            del self._by_root[root]

    def is_full(self, root: str) -> bool:
        """Whether a root has not taken so much that it should be offered no more."""
        offered = self._by_root.get(root)
        return offered is not None and (
            offered.items >= self._items_max or offered.bytes >= self._bytes_max
        )

    def gap_ns(self, root: str, now_ns: int) -> int:
        """Return how long it should be until a root takes one more."""
        offered = self._by_root.get(root)
        if offered is None:
            return 0
        return int((offered.waited_ns + now_ns - offered.heard_ns) / max(offered.taken, 1.0))

    def timeout_ns(self, root: str, repeats: int) -> int:
        """Return how long to wait for a root before it is offered something again."""
        offered = self._by_root.get(root)
        wait_ns = self._backoff.after(repeats)
        return wait_ns if offered is None else max(wait_ns, offered.trip.timeout_ns)


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

    def settled_before(self, number: int) -> int:
        """Return how many of the numbers right before one are not kept any more."""
        before = number - 1
        while before > 0 and before not in self.kept:
            before -= 1
        return number - 1 - before

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
