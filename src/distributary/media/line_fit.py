"""Straight lines through measurements: a fixed part, and a part for every megabyte.

Neither part may be negative. A line through two noisy measurements often cuts the axis
below zero, and a plan for a small publication would then be paid for converting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["RESOLUTION", "Line", "fit_line"]

RESOLUTION = 1e-6
"""Below a byte, and below a microsecond, a difference says nothing about a line."""
_WRITTEN_DIGITS = 6
# What is left of a zero after rounding: not a second, nor a kilobyte, for the largest content.
_NOTHING = 1e-12


@dataclass(frozen=True)
class Line:
    """An amount that grows with the content.

    `per_mb` is what every megabyte (a million bytes) of the source content adds.
    """

    fixed: float
    per_mb: float

    def at(self, megabytes: float) -> float:
        """Return the amount for content of this size."""
        return self.fixed + self.per_mb * megabytes

    def document(self) -> dict[str, float]:
        """Return the line as a calibrated graph has it; further digits would be noise."""
        return {"fixed": _rounded(self.fixed), "per_mb": _rounded(self.per_mb)}


def fit_line(points: Sequence[tuple[float, float]]) -> Line:
    """Return the line that misses the measurements least, in proportion to each.

    Minimises the sum of squared relative errors over all lines whose two parts are not
    negative; exact. Relative, because the largest sample would decide alone otherwise,
    and small content be off by a multiple. From samples of one size nothing can be said
    about the fixed part: it is 0 then.

    A point is the megabytes of source content, greater than 0, and the amount measured, at least 0.
    """
    weights = [1.0 / max(amount, RESOLUTION) ** 2 for _, amount in points]
    proportional = Line(0.0, _through_origin(points, weights))
    if len({megabytes for megabytes, _ in points}) < 2:
        return proportional
    level = Line(_mean([amount for _, amount in points], weights), 0.0)
    slanted = _least_squares(points, weights)
    # The error is convex: if its least is outside, the least inside is on the border,
    # where one of the two parts is 0.
    inside = [slanted] if slanted.fixed >= 0.0 and slanted.per_mb >= 0.0 else []
    return min((*inside, proportional, level), key=lambda line: _error(line, points, weights))


def _least_squares(points: Sequence[tuple[float, float]], weights: Sequence[float]) -> Line:
    middle = _mean([megabytes for megabytes, _ in points], weights)
    height = _mean([amount for _, amount in points], weights)
    # From the middle of the points, where sums of products lose no digits.
    rise = math.fsum(
        weight * (megabytes - middle) * (amount - height)
        for (megabytes, amount), weight in zip(points, weights, strict=True)
    )
    run = math.fsum(
        weight * (megabytes - middle) ** 2
        for (megabytes, _), weight in zip(points, weights, strict=True)
    )
    # Sizes so near each other that their difference vanishes when squared are one size.
    slope = rise / run if run > 0.0 else math.inf
    return Line(height - slope * middle, slope)


def _through_origin(points: Sequence[tuple[float, float]], weights: Sequence[float]) -> float:
    pairs = list(zip(points, weights, strict=True))
    above = math.fsum(weight * megabytes * amount for (megabytes, amount), weight in pairs)
    below = math.fsum(weight * megabytes * megabytes for (megabytes, _), weight in pairs)
    return above / below


def _mean(amounts: Sequence[float], weights: Sequence[float]) -> float:
    weighted = (amount * weight for amount, weight in zip(amounts, weights, strict=True))
    return math.fsum(weighted) / math.fsum(weights)


def _error(line: Line, points: Sequence[tuple[float, float]], weights: Sequence[float]) -> float:
    return math.fsum(
        weight * (line.at(megabytes) - amount) ** 2
        for (megabytes, amount), weight in zip(points, weights, strict=True)
    )


def _rounded(amount: float) -> float:
    return 0.0 if amount < _NOTHING else float(f"{amount:.{_WRITTEN_DIGITS}g}")
