"""What one conversion, or one format, came to on one sample."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MEGABYTE", "Duration", "Size"]

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Size:
    """How large a sample is in some format, beside the sample's own megabytes."""

    content_mb: float
    mb: float

    def document(self) -> dict[str, float]:
        """Return the measurement as a calibrated graph has it."""
        return {"content_mb": self.content_mb, "mb": self.mb}


@dataclass(frozen=True)
class Duration:
    """How long a conversion of a sample took.

    Attributes
    ----------
    content_mb
        The sample's own megabytes, whatever the format that was converted.
    seconds
        The median over the runs: one run that the machine disturbed does not move it.
    spread
        Seconds between the quartiles of the runs.
    least
        The shortest run. Whatever else the machine does makes runs longer and never shorter,
        so that this one varies least from one calibration to the next.
    """

    content_mb: float
    seconds: float
    spread: float
    least: float

    @classmethod
    def of(cls, content_mb: float, runs: Sequence[float]) -> Duration:
        """Return the summary of some runs, at least one, in seconds each."""
        spread = 0.0
        if len(runs) > 1:
            lower, _, upper = statistics.quantiles(runs, n=4, method="inclusive")
            spread = upper - lower
        return cls(content_mb, statistics.median(runs), spread, min(runs))

    def document(self) -> dict[str, float]:
        """Return the measurement as a calibrated graph has it, to the microsecond."""
        return {
            "content_mb": self.content_mb,
            "seconds": round(self.seconds, 6),
            "spread": round(self.spread, 6),
            "least": round(self.least, 6),
        }
