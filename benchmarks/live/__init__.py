"""Studies of the running system, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.live import gateway, one_hop, outages, telemetry, three_hops

__all__ = ["STUDIES"]

STUDIES = (one_hop.STUDY, three_hops.STUDY, outages.STUDY, telemetry.STUDY, gateway.STUDY)
