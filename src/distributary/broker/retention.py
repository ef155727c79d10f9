"""Retention: what is kept for a while, and then forgotten."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

from distributary.broker.timers import Timer, Timers
from distributary.broker.turn import Turn

__all__ = ["Retention"]

_Key = TypeVar("_Key")


class Retention(Generic[_Key]):
    """Keys with the time at which each is forgotten; one timer serves all of them.

    Parameters
    ----------
    timers
        The broker's.
    forget
        Called with `(key, turn)` when the time has come.
    """

    def __init__(self, timers: Timers, forget: Callable[[_Key, Turn], None]) -> None:
        self._timers = timers
        self._forget = forget
        self._heap: list[tuple[int, int, _Key]] = []
        self._count = 0
        self._timer: Timer | None = None

    def keep(self, key: _Key, until_ns: int) -> None:
        """Have a key forgotten at a time; one that is kept twice is forgotten twice."""
        self._count += 1
        heapq.heappush(self._heap, (until_ns, self._count, key))
        if self._timer is None or until_ns < self._timer.at_ns:
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timers.at(self._heap[0][0], self._due)

    def _due(self, turn: Turn) -> None:
        heap = self._heap
        while heap and heap[0][0] <= turn.now_ns:
            _, _, key = heapq.heappop(heap)
            self._forget(key, turn)
        self._timer = None
        if heap:
            self._arm()
