"""Timers: what a broker wants to do later.

They are volatile. A broker that is restored sets them anew from what it kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributary.broker.turn import Turn

__all__ = ["Timer", "Timers"]


class Timer:
    """One thing to be done at some time, unless it is cancelled."""

    __slots__ = ("arguments", "at_ns", "call")

    def __init__(self, at_ns: int, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.at_ns = at_ns
        self.call: Callable[..., None] | None = call
        self.arguments = arguments

    def cancel(self) -> None:
        """Do nothing when the time comes."""
        self.call = None
        self.arguments = ()


class Timers:
    """All that one broker wants to do later, earliest first, then in the order it was set."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._count = 0

    def at(self, at_ns: int, call: Callable[..., None], *arguments: Any) -> Timer:
        """Have `call(turn, *arguments)` called at a time."""
        timer = Timer(at_ns, call, arguments)
        self._count += 1
        heapq.heappush(self._heap, (at_ns, self._count, timer))
        return timer

    def next_ns(self) -> int | None:
        """Return when there is something to do next."""
        heap = self._heap
        while heap and heap[0][2].call is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def run(self, turn: Turn) -> None:
        """Do everything that is due."""
        heap = self._heap
        while heap and heap[0][0] <= turn.now_ns:
            timer = heapq.heappop(heap)[2]
            if timer.call is not None:
                call, timer.call = timer.call, None
                call(turn, *timer.arguments)
