"""Retries: which messages are to be sent again, and when."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from distributary.broker.timers import Timer, Timers
from distributary.broker.turn import Turn

__all__ = ["Retries"]


class Retries:
    """What all messages of a broker wait for, with one timer.

    Nearly everything is acknowledged in time. So nothing is done about it then: what is not
    wanted any more is left out when its time comes.

    Parameters
    ----------
    wanted
        Whether the message with a number to a peer is still to be sent again at a time.
    again
        Sends it again.
    """

    def __init__(
        self,
        timers: Timers,
        *,
        wanted: Callable[[str, int, int], bool],
        again: Callable[[str, int, Turn], None],
    ) -> None:
        self._timers = timers
        self._wanted = wanted
        self._again = again
        self._due: list[tuple[int, str, int]] = []
        self._timer: Timer | None = None

    def push(self, at_ns: int, peer: str, number: int) -> None:
        """Have a message sent again at a time."""
        heapq.heappush(self._due, (at_ns, peer, number))
        if self._timer is None or at_ns < self._timer.at_ns:
            self._arm()

    def clear(self) -> None:
        """Have nothing sent again."""
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timers.at(self._due[0][0], self._run)

    def _run(self, turn: Turn) -> None:
        self._timer = None
        while self._due:
            at_ns, peer, number = self._due[0]
            wanted = self._wanted(peer, number, at_ns)
            if wanted and at_ns > turn.now_ns:
                self._arm()
                return
            heapq.heappop(self._due)
            if wanted:
                self._again(peer, number, turn)
