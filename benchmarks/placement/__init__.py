"""Studies of the placement planner, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.placement import (
    exact_scaling,
    exact_speed,
    heuristic_quality,
    large_graphs,
    slack_or_random,
    steiner,
    weights,
)

__all__ = ["STUDIES"]

STUDIES = (
    exact_speed.STUDY,
    exact_scaling.STUDY,
    large_graphs.STUDY,
    steiner.STUDY,
    heuristic_quality.STUDY,
    slack_or_random.STUDY,
    weights.STUDY,
)
