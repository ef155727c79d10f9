"""Studies of what brokers cost, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.broker import overload
from benchmarks.study import Study

__all__ = ["STUDIES"]

STUDIES: tuple[Study, ...] = (overload.STUDY,)
