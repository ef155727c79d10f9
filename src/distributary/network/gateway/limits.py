"""Limits: what one tenant may take of a gateway, so that others have their share.

Each gateway counts for itself: with several of them a tenant may have as many times the rate.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from http import HTTPStatus

from distributary.content.tables import bounded
from distributary.network.gateway.problems import Problem

__all__ = ["LimitsTable", "Rate", "TenantLimiter"]

# A second and a half of what is permitted may come at once.
_BURST_S = 1.5
# What others have subscribed to meanwhile is noticed after so long.
_COUNT_S = 60.0
_COUNT_FULL_S = 2.0
_SLOTS = 60


@dataclass(frozen=True)
class LimitsTable:
    """`[limits]`: what each tenant may take.

    Attributes
    ----------
    subscriptions
        How many subscriptions it may have.
    stored_mib
        How many MiB it may put within `stored_s`.
    stored_s
        The time over which `stored_mib` is counted: no less than brokers keep content that nobody
        needs any more.
    events_per_s
        How many events it may publish a second.
    """

    subscriptions: int = bounded(10_000, 1, 10**9)
    stored_mib: int = bounded(16_384, 1, 10**9)
    stored_s: float = bounded(600.0, 1.0, 1e9)
    events_per_s: float = bounded(20_000.0, 0.01, 1e9)


class Rate:
    """A token bucket: a rate that may be exceeded for a moment.

    Parameters
    ----------
    per_s
        How many come back a second.
    burst
        How many there are at most.
    """

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._there = burst
        self._at = -math.inf

    def wait_s(self, count: float, now: float) -> float:
        """Take some and return 0, or take none and return how long it is until they are there.

        Who wants more at once than there ever are gets them when the bucket is full, and the
        bucket owes them: a batch is never impossible, and the rate is kept.
        """
        # A clock that is set back gives nothing, and takes nothing.
        if now > self._at:
            self._there = min(self._burst, self._there + (now - self._at) * self._per_s)
        self._at = now
        missing = min(count, self._burst) - self._there
        if missing > 0:
            return missing / self._per_s
        self._there -= count
        return 0.0


class _Window:
    """How many bytes came within the last while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._slots: deque[tuple[float, int]] = deque()
        self.bytes = 0

    def look(self, now: float) -> None:
        while self._slots and self._slots[0][0] <= now - self._seconds:
            self.bytes -= self._slots.popleft()[1]

    def add(self, count: int, now: float) -> None:
        self.bytes += count
        if self._slots and now - self._slots[-1][0] < self._seconds / _SLOTS:
            began, before = self._slots.pop()
            self._slots.append((began, before + count))
        else:
            self._slots.append((now, count))

    def frees_s(self, now: float) -> float:
        return self._slots[0][0] + self._seconds - now if self._slots else 0.0


@dataclass
class _Tenant:
    events: Rate
    stored: _Window
    subscriptions: int = 0
    counted_at: float = -math.inf


class TenantLimiter:
    """Counts what tenants take of one gateway, and refuses what is beyond their limits.

    Parameters
    ----------
    clock
        In seconds, from anywhere.

    Attributes
    ----------
    stored_s
        For how long brokers keep what nobody needs any more.
    """

    def __init__(self, table: LimitsTable, clock: Callable[[], float] = time.monotonic) -> None:
        self.stored_s = table.stored_s
        self._table = table
        self._clock = clock
        # As many as have tokens.
        self._tenants: dict[str, _Tenant] = {}

    def take_events(self, tenant: str, count: int) -> None:
        """Count events to be published, or raise a problem that says when to come again."""
        per_s = self._table.events_per_s
        wait_s = self._tenant(tenant).events.wait_s(count, self._clock())
        if wait_s > 0:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"events_per_s: the limit of {per_s:g} events a second is reached",
                retry_s=wait_s,
            )

    async def wait_for_events(self, tenant: str, count: int) -> None:
        """Count events of somebody who need not be told to come again, as it can be kept waiting.

        Whoever sends many in a row would otherwise have those behind a refused one overtake it.
        """
        while wait_s := self._tenant(tenant).events.wait_s(count, self._clock()):
            await asyncio.sleep(wait_s)

    def take_bytes(self, tenant: str, count: int) -> None:
        """Count bytes to be stored, or raise a problem that says when to come again."""
        stored, now = self._tenant(tenant).stored, self._clock()
        stored.look(now)
        if stored.bytes + count > self._table.stored_mib * 2**20:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"stored_mib: the limit of {self._table.stored_mib:,} MiB "
                f"within {self._table.stored_s:g} s is reached",
                retry_s=max(1.0, stored.frees_s(now)),
            )
        stored.add(count, now)

    async def take_subscription(
        self, tenant: str, held: Callable[[], AsyncIterator[object]]
    ) -> None:
        """Count a subscription that is to be made, or raise a problem.

        Parameters
        ----------
        held
            Gives all that a tenant has, when they have to be counted.
        """
        there, limit = self._tenant(tenant), self._table.subscriptions
        now = self._clock()
        since_s = now - there.counted_at
        # Whoever has ended some need not wait long; but counting takes time.
        if since_s > (_COUNT_S if there.subscriptions < limit else _COUNT_FULL_S):
            # Whoever comes meanwhile goes by what was known: all would count, and for long.
            before, there.counted_at = there.subscriptions, now
            counted = 0
            async for _ in held():
                counted += 1
                if counted >= limit:
                    break
            there.subscriptions += counted - before
        if there.subscriptions >= limit:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"subscriptions: the limit of {limit:,} subscriptions is reached",
                retry_s=_COUNT_FULL_S,
            )
        there.subscriptions += 1

    def forget(self, tenant: str) -> None:
        """Forget what a tenant has taken, as when it is erased."""
        self._tenants.pop(tenant, None)

    def _tenant(self, name: str) -> _Tenant:
        found = self._tenants.get(name)
        if found is None:
            per_s = self._table.events_per_s
            events = Rate(per_s, max(1.0, _BURST_S * per_s))
            found = self._tenants[name] = _Tenant(events, _Window(self._table.stored_s))
        return found
