"""Thresholds and differences of numbers, rounded so that no copy slips outside.

Containment is proved in real numbers; a double can be off by half a step. Two roundings
keep the proof true of what is computed:

- A divergence may come out one step too high (four for `relative`, which divides), so the
  amounts that brokers work with are that many steps below the amounts asked for. A copy
  inside the lower amount in real numbers is then inside the amount asked for as computed.
- A threshold is rounded down after every operation. Rounding to nearest is monotone: where
  the true divergence reaches a threshold that is a double, so does the rounded one. Hence
  only the threshold's own rounding could let a copy slip outside, and only upwards.

Plain Python, of which `_tolerance_kernels` compiles two functions as they stand: whoever
compares two versions does not wait for a compiler, and both compute the same.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = [
    "difference",
    "relative_difference",
    "relative_threshold",
    "stepped_down",
    "threshold",
]


def stepped_down(amount: float, steps: int) -> float:
    """Return the double that is `steps` below a positive amount; 0 stays 0."""
    for _ in range(steps):
        if amount > 0.0:
            amount = math.nextafter(amount, 0.0)
    return amount


def threshold(child: float, parent: float) -> float:
    """Return `child - parent`, rounded down; 0 when the parent's amount is the larger."""
    if child <= parent:
        return 0.0
    rounded = child - parent
    # What rounding added, exactly (Knuth's two-sum).
    back = rounded - child
    error = (child - (rounded - back)) - (parent + back)
    return math.nextafter(rounded, 0.0) if error < 0.0 else rounded


def relative_threshold(numerator: float, value: float, divisor: float) -> float:
    """Return `numerator * |value| / divisor`, rounded down after both operations.

    A product beyond the largest double becomes the largest double, not infinity.
    """
    if numerator == 0.0 or value == 0.0:
        return 0.0
    quotient = float(np.nextafter(numerator * abs(value), 0.0))
    if divisor != 1.0:
        quotient = float(np.nextafter(quotient / divisor, 0.0))
    return quotient


def difference(a: float, b: float) -> float:
    """Return `|a - b|`. NaN stands for a value that is not a number: 0 to itself, else infinite."""
    if math.isnan(a) or math.isnan(b):
        return 0.0 if math.isnan(a) and math.isnan(b) else math.inf
    return 0.0 if a == b else abs(a - b)  # Infinity less infinity would be NaN.


def relative_difference(value: float, copy: float) -> float:
    """Return `|value - copy| / |value|`; infinite when only the value is 0."""
    apart = difference(value, copy)
    if apart == 0.0:
        return 0.0
    if value == 0.0 or not (math.isfinite(value) and math.isfinite(copy)):
        return math.inf
    if math.isinf(apart):  # Two huge values of opposite sign; halves are exact there.
        return abs(0.5 * value - 0.5 * copy) / abs(0.5 * value)
    return apart / abs(value)
