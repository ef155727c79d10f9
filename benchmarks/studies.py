"""All studies, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks import (
    broker,
    fidelity,
    filters,
    live,
    media,
    pipeline,
    placement,
    simulator,
    wiring,
)

__all__ = ["STUDIES"]

STUDIES = (
    *placement.STUDIES,
    *fidelity.STUDIES,
    *wiring.STUDIES,
    *filters.STUDIES,
    *media.STUDIES,
    *pipeline.STUDIES,
    *broker.STUDIES,
    *simulator.STUDIES,
    *live.STUDIES,
)
