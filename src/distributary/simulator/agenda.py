"""The agenda: all that is to happen, in the order of (time, sequence).

A large run has tens of thousands of things ahead of it, all over memory, and a heap compares a
dozen of them for every one that it gives out. So what is to happen later only lies in the span of
time that it belongs to, in any order, until the span is reached; a span is short enough that few
things happen in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

__all__ = ["Agenda", "Entry"]

Entry = tuple[int, int, Callable[..., None], tuple[Any, ...]]
"""When, the how manyth that was entered, and what is called with what."""

# A millisecond, about.
_SPAN_BITS = 20


class Agenda:
    """What is to happen; nothing is entered for a time before what was last given out."""

    def __init__(self) -> None:
        self._count = 0
        self._span = -1
        self._soon: list[Entry] = []
        """A heap of what is left of the present span."""
        self._later: dict[int, list[Entry]] = {}
        self._spans: list[int] = []
        """A heap of the spans in which there is something later."""

    def add(self, at_ns: int, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Have something called at a time."""
        self._count += 1
        entry = (at_ns, self._count, call, arguments)
        span = at_ns >> _SPAN_BITS
        if span <= self._span:
            heappush(self._soon, entry)
            return
        others = self._later.get(span)
        if others is None:
            self._later[span] = [entry]
            heappush(self._spans, span)
        else:
            others.append(entry)

    def until(self, end_ns: int) -> Iterator[Entry]:
        """Give out what happens up to a time, also what is entered meanwhile."""
        while True:
            soon = self._soon
            while soon:
                if soon[0][0] > end_ns:
                    return
                yield heappop(soon)
            if not self._spans or self._spans[0] << _SPAN_BITS > end_ns:
                return
            self._span = heappop(self._spans)
            self._soon = self._later.pop(self._span)
            heapify(self._soon)
