"""Arrays that grow at their end."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["grown"]

_T = TypeVar("_T", bound=np.generic)


def grown(array: NDArray[_T], used: int, needed: int) -> NDArray[_T]:
    """Return an array with room for `needed` items whose first `used` are those of `array`.

    It is `array` itself when that has the room, and half as large again otherwise, so that
    adding one at a time costs little in the long run.
    """
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, len(array) * 3 // 2), array.dtype)
    larger[:used] = array[:used]
    return larger
