"""How much a user publishes on each channel: the histogram of its generating function.

Zhao and Wu, section VI: a random quadratic function, its negative part set to zero.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray

__all__ = ["quadratic_cells"]


def quadratic_cells(values: FloatArray, channels: int) -> FloatArray:
    """Integrate the positive part of quadratic functions over each cell of 0 to 1.

    `values` (functions, 3) are those at 0, at a half and at 1. The result, shape (functions,
    channels), is exact up to rounding.
    """
    start, middle, end = values[:, 0, None], values[:, 1, None], values[:, 2, None]
    a = 2.0 * (start - 2.0 * middle + end)
    b = 4.0 * middle - 3.0 * start - end
    edges = np.linspace(0.0, 1.0, channels + 1)[None, :]
    low, high = edges[:, :-1], edges[:, 1:]
    left, right = _roots(a, b, start)

    def integral(first: FloatArray, last: FloatArray) -> FloatArray:
        # Simpson's rule, which is exact for quadratic functions.
        width = np.maximum(last - first, 0.0)
        centre = 0.5 * (first + last)
        heights = [start + x * (b + x * a) for x in (first, centre, last)]
        whole = width / 6.0 * (heights[0] + 4.0 * heights[1] + heights[2])
        return np.maximum(whole, 0.0)

    # An upward parabola is positive outside its roots, a downward one between them.
    outside = integral(low, np.minimum(high, left)) + integral(np.maximum(low, right), high)
    inside = integral(np.maximum(low, left), np.minimum(high, right))
    return np.where(a >= 0.0, outside, inside)


def _roots(a: FloatArray, b: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the roots of a x^2 + b x + c, the smaller first.

    Without roots they are one point beyond the right end, so that the whole of a positive
    function lies outside them and nothing of a negative one between them. A straight line
    has one root and another at infinity, on the side where the line is negative.
    """
    with np.errstate(all="ignore"):
        q = -0.5 * (b + np.copysign(np.sqrt(b * b - 4.0 * a * c), b))
        one, other = q / a, c / q
        left, right = np.fmin(one, other), np.fmax(one, other)
        line = -c / b
        left = np.where(a == 0.0, np.where(b > 0.0, -np.inf, line), left)
        right = np.where(a == 0.0, np.where(b > 0.0, line, np.inf), right)
    missing = np.isnan(left) | np.isnan(right) | ((a == 0.0) & (b == 0.0))
    # Where beyond the ends a root is makes no difference; infinity does not multiply.
    return (
        np.where(missing, 2.0, np.clip(left, -1.0, 2.0)),
        np.where(missing, 2.0, np.clip(right, -1.0, 2.0)),
    )
