"""What a job did: rows in, rows out, seconds, and whatever else is worth a line."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from distributary.pipeline.days import Day, day_list

__all__ = ["JobReport", "Stopwatch"]

Figure = int | float | str | None


@dataclass(frozen=True)
class JobReport:
    """The figures that a job ends with.

    Rows read and written are by table. Seconds are on the wall, without starting Spark. `days`
    are those that were done, in jobs that do some.
    """

    job: str
    rows_in: Mapping[str, int]
    rows_out: Mapping[str, int]
    seconds: float
    figures: Mapping[str, Figure] = field(default_factory=dict)
    days: frozenset[Day] | None = None

    def document(self) -> dict[str, object]:
        """Return the report as JSON has it; `rows_in` and `rows_out` are the sums."""
        return {
            "job": self.job,
            "rows_in": sum(self.rows_in.values()),
            "rows_out": sum(self.rows_out.values()),
            "seconds": round(self.seconds, 3),
            "tables_in": dict(self.rows_in),
            "tables_out": dict(self.rows_out),
            **({} if self.days is None else {"days": day_list(self.days)}),
            **self.figures,
        }


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """How long ago it was made."""
        return time.perf_counter() - self._began
