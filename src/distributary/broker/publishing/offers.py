"""Offers: what a home has offered to roots and they have not taken.

A root that has much to do takes its time before it says `Taken`. What it has not taken counts
against its clients, so that publishers are no faster than the slowest broker that their content
goes by, and whoever publishes by way of others does not notice.
"""

from __future__ import annotations

from distributary.broker.pacing import RoundTrip
from distributary.broker.publishing.publications import Kept
from distributary.broker.settings import PublishingSettings
from distributary.broker.timers import Backoff

__all__ = ["Offers"]


class _Offered:
    """What one root has not taken, and how fast it is.

    Attributes
    ----------
    items, bytes
        How much that is.
    gap_ns, heard_ns, together
        How long it is between two that it takes while more wait, when it took the last one or
        began to have something to take, and how many it took then.
    trip
        How long it takes from an offer until it is taken.
    """

    __slots__ = ("bytes", "gap_ns", "heard_ns", "items", "together", "trip")

    def __init__(self) -> None:
        self.items = 0
        self.bytes = 0
        self.gap_ns = 0
        self.heard_ns = 0
        self.together = 0
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
            offered.heard_ns, offered.together = now_ns, 0
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
        if offered.items > 1 and now_ns > offered.heard_ns:
            # What roots say is gathered, so that many are taken together.
            gap_ns = (now_ns - offered.heard_ns) // max(offered.together, 1)
            offered.gap_ns += (gap_ns - offered.gap_ns) // 8 if offered.gap_ns else gap_ns
        offered.together = 1 + (offered.together if now_ns == offered.heard_ns else 0)
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
        return 0 if offered is None else max(offered.gap_ns, now_ns - offered.heard_ns)

    def timeout_ns(self, root: str, repeats: int) -> int:
        """Return how long to wait for a root before it is offered something again."""
        offered = self._by_root.get(root)
        wait_ns = self._backoff.after(repeats)
        return wait_ns if offered is None else max(wait_ns, offered.trip.timeout_ns)
