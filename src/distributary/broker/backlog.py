"""Backlog: work that would be too much for one turn, done in portions.

While a broker is in a turn it does nothing else: it answers no ping, and what its clients send
waits. A restart, or a broker that comes or is lost, may concern everything that is kept, so that
such work is done some of it at a time, with turns for everybody else in between. A backlog is
volatile: after a crash a broker finds in what it kept what is to be done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from distributary.broker.effects import Turn
from distributary.broker.timers import Timers

__all__ = ["PORTION", "Backlog"]

PORTION = 32
"""How many things are done in one turn. To plan and send an item takes about a millisecond."""

_T = TypeVar("_T")


class Backlog:
    """Things to be done by one part of a broker, in order, a portion of them in each turn.

    Whoever gives it something finds the first portion done at once, unless something else is
    waiting. What is done later must find out then whether it still makes sense.
    """

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._waiting: deque[tuple[Callable[[Any, Turn], None], deque[Any]]] = deque()
        self._armed = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return sum(len(things) for _, things in self._waiting)

    def each(self, call: Callable[[_T, Turn], None], things: Iterable[_T], turn: Turn) -> None:
        """Have `call(thing, turn)` called for all things."""
        # As they are: to prepare each of some ten thousand would take longer than a turn may.
        waiting = deque(things)
        if waiting:
            self._waiting.append((call, waiting))
        if not self._armed:
            self._go_on(turn)

    def _go_on(self, turn: Turn) -> None:
        # Armed while it runs: what is given to it meanwhile waits for its turn.
        self._armed = True
        for _ in range(PORTION):
            if not self._waiting:
                break
            call, things = self._waiting[0]
            thing = things.popleft()
            if not things:
                self._waiting.popleft()
            call(thing, turn)
        self._armed = bool(self._waiting)
        if self._armed:
            # Later than now, so that it is in another turn.
            self._timers.at(turn.now_ns + 1, self._go_on)
