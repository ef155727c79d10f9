"""The rule for reporting on arrays, compiled."""

from __future__ import annotations

import math

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["report"]


@kernel
def report(
    values: FloatArray,
    begins: IntArray,
    factor: float,
    previous: FloatArray,
    reported: BoolArray,
    befores: FloatArray,
) -> None:
    """Decide which values are reported, for many sequences at once.

    Shapes are those of `reporting.reported`. What was reported last of each sequence is
    changed in place; `reported` is set where a value is reported, and `befores` to what had
    been reported last when each value came.
    """
    for k in range(len(begins) - 1):
        last = previous[k]
        for r in range(begins[k], begins[k + 1]):
            value = values[r]
            befores[r] = last
            if math.isnan(last):
                news = value > 0.0
            else:
                news = value > last * factor or value * factor < last
            if news:
                reported[r] = True
                last = value
        previous[k] = last
