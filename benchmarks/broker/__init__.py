"""Studies of what brokers cost, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.broker import durable_operations, three_hops
from benchmarks.study import Study

__all__ = ["STUDIES"]

STUDIES: tuple[Study, ...] = (three_hops.STUDY, durable_operations.STUDY)
