"""Seconds per event of one core, on a machine that others use too.

Time of the processor, all threads together, rather than time on the clock: work on one core
takes as long as that, and others' work does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["seconds_per_event"]

_T = TypeVar("_T")


def seconds_per_event(
    work: Callable[[_T], object], portions: Sequence[_T], *, events: int, repeats: int
) -> float:
    """Return the mean time of an event over all portions, each at the best of several times.

    Portions are short, so that some of the times are free of others' work. All of them
    count: the best of all portions would be the time of the easiest events.
    """
    total = 0.0
    for portion in portions:
        best = float("inf")
        for _ in range(repeats):
            began = time.process_time()
            work(portion)
            best = min(best, time.process_time() - began)
        total += best
    return total / events
