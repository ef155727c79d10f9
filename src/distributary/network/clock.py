"""The clock of a host: the wall clock, as it is.

It may be set back or forward; the broker goes by a time of its own that is slewed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

__all__ = ["Alarm", "Clock", "WallClock"]

# The event loop goes by another clock, which nobody sets. So it is looked at the wall clock now
# and then, even if nothing is due for long.
_LOOK_S = 1.0


class Alarm(Protocol):
    """Something that is to be called, and need not be."""

    def cancel(self) -> None:
        """Have it not called."""


class Clock(Protocol):
    """The time by which a host goes."""

    def now_ns(self) -> int:
        """Return nanoseconds since 1970."""

    def call_at(self, at_ns: int, call: Callable[[], None]) -> Alarm:
        """Have something called at a time, or before; whoever is called looks again."""


class WallClock:
    """The time that the machine shows."""

    def now_ns(self) -> int:
        """Return nanoseconds since 1970."""
        return time.time_ns()

    def call_at(self, at_ns: int, call: Callable[[], None]) -> Alarm:
        """Have something called at a time, or before."""
        wait_s = (at_ns - time.time_ns()) / 1e9
        return asyncio.get_running_loop().call_later(min(max(wait_s, 0.0), _LOOK_S), call)
