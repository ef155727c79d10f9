"""Measurements: what a broker has counted and timed, for those who watch and those who plan.

They are collected in windows. At the end of one the broker reports it as telemetry and begins
the next, so that counting costs an addition and nothing grows.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from distributary.broker.telemetry import (
    ConversionTime,
    HopTime,
    Measured,
    PublishedShare,
    StreamRate,
    TransferTime,
)

__all__ = ["Measurements"]

_NS_PER_SECOND = 1e9


class Measurements:
    """What one broker has measured in the present window, and in the last."""

    def __init__(self) -> None:
        self._last: Measured | None = None
        self.start(0)

    def start(self, now_ns: int) -> None:
        """Begin a window."""
        self._since_ns = now_ns
        self._hops: dict[str, tuple[int, int]] = {}
        self._conversions: dict[tuple[str, str], ConversionTime] = {}
        self._transfers: dict[str, TransferTime] = {}
        self._published: dict[tuple[str, int], tuple[int, int]] = {}
        self._delivered: Counter[str] = Counter()
        self._members: Counter[str] = Counter()

    def hop(self, peer: str, took_ns: int) -> None:
        """Note how long a peer took to acknowledge a message that was sent once."""
        count, sum_ns = self._hops.get(peer, (0, 0))
        self._hops[peer] = (count + 1, sum_ns + took_ns)

    def conversion(self, one: ConversionTime) -> None:
        """Note a conversion."""
        sums = self._conversions.get((one.origin, one.target))
        self._conversions[one.origin, one.target] = one if sums is None else _added(sums, one)

    def transfer(self, peer: str, seconds: float, size_bytes: int) -> None:
        """Note that content has come from a peer."""
        sums = self._transfers.get(peer, TransferTime(peer, 0, 0.0, 0))
        self._transfers[peer] = TransferTime(
            peer, sums.transfers + 1, sums.seconds + seconds, sums.bytes + size_bytes
        )

    def published(self, client: str, cell: int, size_bytes: int) -> None:
        """Note that a client has published something."""
        count, sum_bytes = self._published.get((client, cell), (0, 0))
        self._published[client, cell] = (count + 1, sum_bytes + size_bytes)

    def delivered(self, media_type: str) -> None:
        """Note that something got its number in a subscription."""
        self._delivered[media_type] += 1

    def members(self, *, came: int, down: int, gone: int) -> None:
        """Note that brokers have come or gone."""
        self._members.update(came=came, down=down, gone=gone)

    def end_window(
        self,
        now_ns: int,
        *,
        rates: tuple[StreamRate, ...] = (),
        service: tuple[tuple[str, float], ...] = (),
    ) -> Measured:
        """Return what was measured since the last time.

        Parameters
        ----------
        rates, service
            As in `Measured`; others measure these.
        """
        measured = Measured(
            (now_ns - self._since_ns) / _NS_PER_SECOND,
            tuple(
                HopTime(peer, count, sum_ns / count / _NS_PER_SECOND)
                for peer, (count, sum_ns) in sorted(self._hops.items())
            ),
            tuple(one for _, one in sorted(self._conversions.items())),
            tuple(
                PublishedShare(*place, count, sum_bytes)
                for place, (count, sum_bytes) in sorted(self._published.items())
            ),
            tuple(sorted(self._delivered.items())),
            tuple(sorted((what, n) for what, n in self._members.items() if n)),
            tuple(one for _, one in sorted(self._transfers.items())),
            rates,
            service,
        )
        self.start(now_ns)
        self._last = measured
        return measured

    def snapshot(self) -> dict[str, Any]:
        """Return the last window, as plain data."""
        last = self._last
        if last is None:
            return {}
        return {
            "window_s": last.window_s,
            "hops": [one._asdict() for one in last.hops],
            "conversions": [one._asdict() for one in last.conversions],
            "published": [one._asdict() for one in last.published],
            "delivered": dict(last.delivered),
            "members": dict(last.members),
            "transfers": [one._asdict() for one in last.transfers],
            "rates": [one._asdict() for one in last.rates],
            "service": dict(last.service),
        }


def _added(one: ConversionTime, other: ConversionTime) -> ConversionTime:
    return ConversionTime(
        one.origin,
        one.target,
        one.conversions + other.conversions,
        one.seconds + other.seconds,
        one.bytes + other.bytes,
        one.origin_bytes + other.origin_bytes,
        one.work_s + other.work_s,
    )
