"""All studies, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks import (
    broker,
    fidelity,
    filters,
    live,
    media,
    methods,
    pipeline,
    placement,
    simulator,
    wiring,
)

__all__ = ["STUDIES"]

STUDIES = (
    methods.STUDY,
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
