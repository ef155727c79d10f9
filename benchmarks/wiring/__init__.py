"""Studies of the wiring of users to brokers, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.wiring import branching, large, narrow, pays, ratio, small, speed

__all__ = ["STUDIES"]

STUDIES = (
    small.STUDY,
    speed.STUDY,
    narrow.STUDY,
    ratio.STUDY,
    pays.STUDY,
    branching.STUDY,
    large.STUDY,
)
