"""Intervals of doubles: what a `range` filter asks of a number."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["EVERY_NUMBER", "Interval"]


@dataclass(frozen=True)
class Interval:
    """All doubles from `low` to `high`, both of them included.

    An exclusive bound is the next double inside it, so that one kind of interval is
    enough; infinite where there is no bound. Publications hold finite numbers only. Bounds
    that contradict each other are kept as they are, and no number lies between them.
    """

    low: float = -math.inf
    high: float = math.inf

    @staticmethod
    def above(low: float) -> Interval:
        """Return all numbers greater than `low`."""
        return Interval(low=math.nextafter(low, math.inf) + 0.0)

    @staticmethod
    def below(high: float) -> Interval:
        """Return all numbers less than `high`."""
        return Interval(high=math.nextafter(high, -math.inf) + 0.0)

    @property
    def empty(self) -> bool:
        """Does no finite number lie in it?"""
        return self.low > self.high or self.low == math.inf or self.high == -math.inf

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def __and__(self, other: Interval) -> Interval:
        """Return what lies in both; it may be empty."""
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that holds both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def document(self) -> dict[str, float]:
        """Return the bounds as a `range` filter gives them.

        Whether a bound was exclusive is not kept. The shorter of the two numbers that mean
        the same is most likely what somebody wrote: 3 rather than 2.9999999999999996.
        """
        bounds = {}
        if self.low > -math.inf:
            outside = math.nextafter(self.low, -math.inf) + 0.0
            exclusive = self.low == math.inf or len(repr(outside)) < len(repr(self.low))
            bounds.update({"min_exclusive": outside} if exclusive else {"min": self.low})
        if self.high < math.inf:
            outside = math.nextafter(self.high, math.inf) + 0.0
            exclusive = self.high == -math.inf or len(repr(outside)) < len(repr(self.high))
            bounds.update({"max_exclusive": outside} if exclusive else {"max": self.high})
        return bounds


EVERY_NUMBER = Interval()
