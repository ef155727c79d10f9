"""Covering: a subscription included in another's registration needs none of its own.

What matches the narrower one matches the wider one, is sent to the same broker and, as both
devices are alike, in the same format. Roots do not look at how large a tolerance is, only at
whether there is one.
"""

from __future__ import annotations

from functools import lru_cache

from distributary.broker.subscriptions.local_subscription import LocalSubscription, State
from distributary.broker.subscriptions.reading import filter_of
from distributary.filters import covers

__all__ = ["Covering"]

# Telling takes a tenth of a millisecond for each pair, and a registration too many is no loss
# but of memory: only so many are tried.
_TRIED_MAX = 16

_Alike = tuple[str | None, bool]


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
                wide is narrow
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
        if local.state is State.REGISTERED:
            alike[local.id] = local
        else:
            alike.pop(local.id, None)

    def cover(self, local: LocalSubscription, coverer: str | None) -> None:
        """Note in whose registration a subscription is included, if in any."""
        if local.coverer is not None:
            covered = self._covered.get(local.coverer, set())
            covered.discard(local.id)
            if not covered:
                self._covered.pop(local.coverer, None)
        local.coverer = coverer
        if coverer is not None:
            self._covered.setdefault(coverer, set()).add(local.id)

    def covered_by(self, subscription_id: str) -> list[str]:
        """Return the ids of those included in a registration, in order."""
        return sorted(self._covered.get(subscription_id, ()))


def _alike(local: LocalSubscription) -> _Alike:
    return local.reading.profile, local.subscription.tolerance is not None


@lru_cache(maxsize=65_536)
def _covers(wide: str, narrow: str) -> bool:
    return covers(filter_of(wide), filter_of(narrow))
