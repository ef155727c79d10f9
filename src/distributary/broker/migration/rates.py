"""What clients publish: as this broker has measured it, and until then as they advertise it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from distributary.broker.addresses import Address

if TYPE_CHECKING:
    from distributary.broker.core import Core

__all__ = ["PublishingRates"]

# Clients may advertise what they like, and others must not be told what they would refuse.
_ADVERTISED_MAX = 1e12


class PublishingRates:
    """Bytes per second by cell that each client of a broker publishes.

    A client that advertises counts by its word until it has published something for a whole
    period: half a period would make it seem to publish half as much. One that moves here counts
    as its old home has measured it, for as long.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._published: dict[Address, Counter[int]] = {}
        self._measured: dict[Address, dict[int, float]] = {}
        # Those that were here and publishing when the period began.
        self._watched: set[Address] = set()

    def note(self, client: Address, cell: int, size_bytes: int) -> None:
        """Note that a client has published something."""
        self._published.setdefault(client, Counter())[cell] += size_bytes

    def bring(self, client: Address, rates: Mapping[int, float]) -> None:
        """Take over what the old home of a client has measured."""
        if rates:
            self._measured[client] = dict(rates)

    def drop(self, client: Address) -> None:
        """Forget a client."""
        self._published.pop(client, None)
        self._measured.pop(client, None)
        self._watched.discard(client)

    def end_period(self, period_s: float) -> None:
        """Make rates of what was published since this was called last."""
        for client in sorted({*self._published, *self._measured, *self._watched}):
            sizes: Mapping[int, int] = self._published.get(client, {})
            if client in self._watched or not self.of(client):
                self._measured[client] = {
                    cell: size / period_s for cell, size in sorted(sizes.items()) if size
                }
            self._watched.add(client)
            if not sizes and not self._advertised(client) and not self._measured[client]:
                self.drop(client)
        self._published = {}

    def of(self, client: Address) -> Mapping[int, float]:
        """Return what a client publishes, in bytes per second by cell."""
        measured = self._measured.get(client)
        return self._advertised(client) if measured is None else measured

    def clients(self) -> list[Address]:
        """Return the clients that publish something, in order."""
        advertisers = self._core.rendezvous.advertisements.clients()
        return [client for client in sorted({*self._measured, *advertisers}) if self.of(client)]

    def _advertised(self, client: Address) -> dict[int, float]:
        event_bytes = self._core.settings.migration.event_bytes
        rates = self._core.rendezvous.advertisements.rates(client)
        return {
            cell: min(rate * event_bytes, _ADVERTISED_MAX)
            for cell, rate in sorted(rates.items())
            if rate > 0.0
        }
