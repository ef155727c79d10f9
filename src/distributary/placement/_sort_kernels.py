"""Sorting inside compiled loops; the library's sort takes seconds to compile."""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["sort"]


@kernel
def sort(keys: FloatArray, items: IntArray) -> None:
    """Sort `items` in place by their keys, smallest first; equal ones keep their order.

    A merge sort; `keys[item]` is the key of an item.
    """
    count = items.shape[0]
    spare = np.empty(count, dtype=np.int64)
    width = 1
    while width < count:
        for first in range(0, count, 2 * width):
            middle = min(first + width, count)
            end = min(first + 2 * width, count)
            left, right = first, middle
            for position in range(first, end):
                if right == end or (left < middle and keys[items[left]] <= keys[items[right]]):
                    spare[position] = items[left]
                    left += 1
                else:
                    spare[position] = items[right]
                    right += 1
        items[:] = spare
        width *= 2
