"""Sets of doubles as disjoint intervals, in order: what several ranges leave together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

from distributary.filters.interval import Interval

__all__ = ["EVERY_NUMBER", "Spans", "common", "joined", "whole_numbers", "without"]

Spans: TypeAlias = tuple[Interval, ...]
"""Intervals that are not empty, do not touch, and go up."""

EVERY_NUMBER: Spans = (Interval(),)

# Beyond this, integers differ that one double stands for.
_WHOLE_MAX = 2.0**53


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
