"""Thresholds and differences of numbers that were written in decimals and are held in doubles.

A copy is outside when its divergence *reaches* the amount, and people write amounts in the
steps in which their values move: 49.00 to 49.01 with an amount of 0.01 is the case that
matters. In doubles that difference comes out below the amount, and the one from 49.01 to
49.02 above it. So a difference is counted as the largest that may have been written, and
a threshold as the smallest; what is forwarded a few units in the last place early does no
harm, what is forwarded late does.

How much is enough, for numbers of at most 15 significant digits:

- A double is within 2**-53 of its decimal, as a share, so that two values add at most 2**-52
  of the larger one to a difference, and rounding the difference another 2**-52. `SLACK` is
  twice that. `SLACK_OUTSIDE` is half of it: what need not be forwarded is never outside.
- An amount less another is off by 2**-52 of the larger amount and by the rounding, for which
  a threshold gives up 2**-51 of it. A product and a quotient give up 2**-52 each time.

At 14 digits on one grid of decimals (as of cents) all of that is less than a step of the grid:
the answer is exact. Every copy is a published value and every effective amount a written one, so
nothing adds up along a chain of brokers. Values so small that a double has fewer digits
(below 1e-300) are as exact as doubles are.

Plain Python, of which `_tolerance_kernels` compiles two functions as they stand: whoever
compares two versions does not wait for a compiler, and both compute the same.
"""

from __future__ import annotations

import math

__all__ = [
    "SLACK",
    "SLACK_OUTSIDE",
    "apart",
    "relative_parts",
    "relative_threshold",
    "threshold",
]

SLACK = 2.0**-50
"""What rounding may hide of a difference, as a share of the larger value."""
SLACK_OUTSIDE = 2.0**-51

_AMOUNT_SLACK = 2.0**-51
# Below 1 by a step: what is multiplied by it comes out lower, however it is rounded.
_DOWN = 1.0 - 2.0**-52
_TINY = 5e-324
_HUGE = 1.7976931348623157e308


def apart(a: float, b: float, slack: float) -> float:
    """Return the most that `|a - b|` may have been as written; 0 for equal values only.

    NaN stands for a value that is not a number: 0 to itself, else infinite.
    """
    if a == b:
        return 0.0
    size, other = abs(a), abs(b)
    most = abs(a - b) + slack * (size if size > other else other)
    if most >= 0.0:
        return most
    return 0.0 if math.isnan(a) and math.isnan(b) else math.inf


def threshold(child: float, parent: float) -> float:
    """Return the least that `child - parent` may have been as written.

    0, which every difference reaches, when the parent's amount is not the smaller; above 0
    otherwise, which equal values never reach.
    """
    if child <= parent:
        return 0.0
    return max(_DOWN * (child - parent) - _AMOUNT_SLACK * child, _TINY)


def relative_parts(child: float, parent: float) -> tuple[float, float]:
    """Return the numerator and the divisor of `relative_threshold` for two amounts."""
    # The value and the divisor are off by 2**-53 each.
    return threshold(child, parent) * (1.0 - _AMOUNT_SLACK), 1.0 + parent


def relative_threshold(numerator: float, value: float, divisor: float) -> float:
    """Return the least that `numerator * |value| / divisor` may be; 0 only for a numerator of 0."""
    if numerator == 0.0:
        return 0.0
    least = numerator * abs(value) * _DOWN / divisor * _DOWN
    # A product beyond the largest double must be within reach.
    return min(max(least, _TINY), _HUGE)
