"""Studies of conversions, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.media import pool_overhead, prediction, two_workers

__all__ = ["STUDIES"]

STUDIES = (pool_overhead.STUDY, two_workers.STUDY, prediction.STUDY)
