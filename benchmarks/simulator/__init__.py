"""Studies of the simulator, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.simulator import adaptation_256, dynamic_streams, queueing_speed

__all__ = ["STUDIES"]

STUDIES = (
    queueing_speed.STUDY,
    dynamic_streams.STUDY,
    adaptation_256.STUDY,
)
