"""How long to wait before trying again: longer each time, and not all at once."""

from __future__ import annotations

import random

__all__ = ["Backoff"]

_FIRST_S = 0.1
_MOST_S = 10.0


class Backoff:
    """The waits of one thing that is tried again and again.

    A thousand clients that lost the same gateway would otherwise return at the same moment, so
    each wait is drawn from the upper half of its range.
    """

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._next_s = _FIRST_S

    def wait_s(self, told_s: float | None = None) -> float:
        """Return how long to wait now; not less than the other side has told us to."""
        wait_s = self._next_s * self._rng.uniform(0.5, 1.0)
        self._next_s = min(2 * self._next_s, _MOST_S)
        return max(wait_s, told_s or 0.0)

    def succeeded(self) -> None:
        """Begin with short waits again."""
        self._next_s = _FIRST_S
