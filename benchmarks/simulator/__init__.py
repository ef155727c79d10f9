"""Studies of the simulator, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.simulator import (
    adaptation_256,
    dissemination_1024,
    dynamic_streams,
    policies,
    queueing_speed,
)

__all__ = ["STUDIES"]

STUDIES = (
    dissemination_1024.STUDY,
    policies.STUDY,
    queueing_speed.STUDY,
    dynamic_streams.STUDY,
    adaptation_256.STUDY,
)
