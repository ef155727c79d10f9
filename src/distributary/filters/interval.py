"""Intervals of doubles, what a `range` filter asks of a number; and disjoint sets of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["EVERY_NUMBER", "Interval", "Spans", "common", "joined", "whole_numbers", "without"]

# Beyond this, integers differ that one double stands for.
_WHOLE_MAX = 2.0**53


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


Spans: TypeAlias = tuple[Interval, ...]
"""Intervals that are not empty, do not touch, and go up."""

EVERY_NUMBER: Spans = (Interval(),)


def joined(intervals: Iterable[Interval]) -> Spans:
    """Return the union of the intervals; those that touch become one."""
    found: list[Interval] = []
    for interval in sorted((i for i in intervals if not i.empty), key=lambda i: i.low):
        if found and interval.low <= math.nextafter(found[-1].high, math.inf):
            found[-1] = found[-1].hull(interval)
        else:
            found.append(interval)
    return tuple(found)


def common(first: Spans, second: Spans) -> Spans:
    """Return what lies in both."""
    found: list[Interval] = []
    i = j = 0
    while i < len(first) and j < len(second):
        both = first[i] & second[j]
        if not both.empty:
            found.append(both)
        if first[i].high < second[j].high:
            i += 1
        else:
            j += 1
    return tuple(found)


def without(spans: Spans, holes: Spans) -> Spans:
    """Return what lies in `spans` and not in `holes`."""
    low = -math.inf
    gaps: list[Interval] = []
    for hole in holes:
        gaps.append(Interval(low, Interval.below(hole.low).high))
        low = Interval.above(hole.high).low
    gaps.append(Interval(low))
    return common(spans, tuple(gap for gap in gaps if not gap.empty))


def whole_numbers(spans: Spans, *, count_max: int) -> list[int] | None:
    """Return the integers in `spans`, or None when they are more than `count_max`.

    Very large integers count as more: a double does not tell them apart.
    """
    found: list[int] = []
    for span in spans:
        if span.low < -_WHOLE_MAX or span.high > _WHOLE_MAX:
            return None
        low, high = math.ceil(span.low), math.floor(span.high)
        if len(found) + max(0, high - low + 1) > count_max:
            return None
        found.extend(range(low, high + 1))
    return found
