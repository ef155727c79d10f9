"""Pacing: how long those have to wait for whom there is no room, so that they fit when they come.

Whoever is told the same time as all others finds the same crowd there. So they come one after the
other, each when there should be room for it: a virtual line, of which nobody keeps the names.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Obstacle", "Pacing", "RoundTrip"]


class Obstacle(NamedTuple):
    """Why something cannot be taken now, and when it should be possible.

    Attributes
    ----------
    line
        Those who wait for the same thing stand in one line.
    reason
        What clients are told.
    free_ns, gap_ns
        When there is room at the earliest, and how long it takes until there is for one more.
    """

    line: str
    reason: str
    free_ns: int
    gap_ns: int


class Pacing:
    """One line.

    Parameters
    ----------
    shortest_ns, longest_ns
        How long anybody waits, at least and at most.
    """

    __slots__ = ("_last_ns", "longest_ns", "shortest_ns")

    def __init__(self, shortest_ns: int, longest_ns: int) -> None:
        self.shortest_ns = shortest_ns
        self.longest_ns = longest_ns
        self._last_ns = 0

    def bounded_ns(self, wait_ns: int) -> int:
        """Return a time to wait as anybody is told it."""
        return min(max(wait_ns, self.shortest_ns), self.longest_ns)

    def wait_ns(self, now_ns: int, *, free_ns: int, gap_ns: int, joins: bool = True) -> int:
        """Return how long the next one has to wait.

        Parameters
        ----------
        free_ns
            When there is room at the earliest.
        gap_ns
            How long it takes until there is room for one more.
        joins
            Whether it stands in line from now on.
        """
        due_ns = max(self._last_ns + gap_ns, free_ns)
        wait_ns = self.bounded_ns(due_ns - now_ns)
        if joins:
            self._last_ns = max(self._last_ns, now_ns + wait_ns)
        return wait_ns


class RoundTrip:
    """How long something takes, as Jacobson (1988) has it: its mean, and how far it is off."""

    __slots__ = ("_mean_ns", "_off_ns")

    def __init__(self) -> None:
        self._mean_ns = 0
        self._off_ns = 0

    def measure(self, taken_ns: int) -> None:
        """Note how long it took."""
        if self._mean_ns == 0:
            self._mean_ns, self._off_ns = taken_ns, taken_ns // 2
            return
        self._off_ns += (abs(taken_ns - self._mean_ns) - self._off_ns) // 4
        self._mean_ns += (taken_ns - self._mean_ns) // 8

    @property
    def timeout_ns(self) -> int:
        """After how long it should have been done."""
        return self._mean_ns + 4 * self._off_ns
