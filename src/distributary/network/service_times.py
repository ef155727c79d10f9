"""Service times: how long this processor takes over what streams need, as measured.

Adaptation plans by them. A broker says how often it has looked whether a child needs a version,
and how often it has sent one; the host knows how long it was at it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from distributary.broker.host import ServiceTimes

__all__ = ["ServiceClock"]

# Fewer say nothing.
_COUNT_MIN = 50
# How much the latest window counts.
_WEIGHT = 0.3


class ServiceClock:
    """Measures what a processor does for streams."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._means: dict[str, float] = {}

    def did(self, works: Sequence[str]) -> None:
        """Note that kinds of work were done."""
        self._counts.update(works)

    def took(self, work: str, seconds: float) -> None:
        """Note how long a kind of work has taken, be it for several of them."""
        self._seconds[work] += seconds

    def window(self) -> ServiceTimes | None:
        """Return what is to be told the broker after a while, if it is anything new."""
        changed = False
        for work in ("filter", "send"):
            count, seconds = self._counts.pop(work, 0), self._seconds.pop(work, 0.0)
            if count >= _COUNT_MIN and seconds > 0.0:
                mean = seconds / count
                before = self._means.get(work, mean)
                self._means[work] = before + _WEIGHT * (mean - before)
                changed = True
        if not changed or len(self._means) < 2:
            return None
        return ServiceTimes(self._means["filter"], self._means["send"])
