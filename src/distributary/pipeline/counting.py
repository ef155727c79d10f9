"""Counting rows on their way, without a job of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

__all__ = ["RowCount", "observed"]


def observed(observation: Observation) -> dict[str, Any]:
    """Return what an observation saw; nothing when there was not a row to see.

    A stage that turns out to be empty is struck out of the plan while it runs, and the
    observations in it with it.
    """
    java: Any = getattr(observation, "_jo", None)
    if java is not None and java.getRow().size() == 0:
        return {}
    figures: dict[str, Any] = observation.get
    return figures


class RowCount:
    """How many rows of one frame went by; known once the frame has been written."""

    def __init__(self) -> None:
        from pyspark.sql import Observation

        self._observation = Observation()

    def of(self, frame: DataFrame) -> DataFrame:
        """Return the same frame, counted when it is next run."""
        from pyspark.sql import functions

        return frame.observe(self._observation, functions.count(functions.lit(1)).alias("rows"))

    @property
    def rows(self) -> int:
        """How many there were; waits until the frame has been run."""
        return int(observed(self._observation).get("rows", 0))
