"""How far lines are off for content that they were not drawn through.

A line always passes close to the few points that it was drawn through, so these say
nothing about it. What counts is content of another size.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from distributary.media.line_fit import RESOLUTION, Line

__all__ = ["Misses", "relative_error"]

_WRITTEN_DECIMALS = 4


def relative_error(
    line: Line, *, content_mb: float, amount: float, floor: float = RESOLUTION
) -> float:
    """Return by which share of the amount that was measured the line is off.

    An amount below `floor` counts as that much: being off by half of next to nothing is
    not being off by half.
    """
    return abs(line.at(content_mb) - amount) / max(amount, floor)


@dataclass(frozen=True)
class Misses:
    """Relative errors, summed up.

    How many predictions were compared, and by which share of what was measured they are off.
    """

    count: int
    median: float
    worst: float

    @classmethod
    def of(cls, errors: Sequence[float]) -> Misses | None:
        """Return the summary of some relative errors; None if there are none."""
        return cls(len(errors), statistics.median(errors), max(errors)) if errors else None

    def document(self) -> dict[str, float]:
        """Return the summary as a calibrated graph has it."""
        return {
            "count": self.count,
            "median": round(self.median, _WRITTEN_DECIMALS),
            "worst": round(self.worst, _WRITTEN_DECIMALS),
        }
