"""Studies of brokers on NATS against plain NATS, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.live import one_hop, telemetry, three_hops

__all__ = ["STUDIES"]

STUDIES = (one_hop.STUDY, three_hops.STUDY, telemetry.STUDY)
