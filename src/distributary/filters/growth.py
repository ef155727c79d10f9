"""Arrays that grow at their end, and arrays that are only read."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["grown", "read_only"]

_T = TypeVar("_T", bound=np.generic)


def grown(array: NDArray[_T], used: int, needed: int, *, fill: int | None = None) -> NDArray[_T]:
    """Return an array with room for `needed` rows whose first `used` are those of `array`.

    It is `array` itself when that has the room, and half as large again otherwise, so that
    adding one at a time costs little in the long run. `fill` is in the rows that are new.
    """
    if needed <= len(array):
        return array
    size = max(needed, len(array) * 3 // 2)
    larger = np.empty((size, *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    if fill is not None:
        larger[used:] = fill
    return larger


def read_only(array: NDArray[_T]) -> NDArray[_T]:
    """Return the same array, which nobody can write to through what is returned.

    To the compiler, arrays that can be written to are of another type. Bytes come from
    Arrow, from Python and from our own tables; without this, every loop over them would be
    compiled for each.
    """
    same = array.view()
    same.flags.writeable = False
    return same
