"""Studies of the pipeline, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.pipeline import (
    another_day,
    channels_traffic,
    match_or_join,
    match_subscriptions,
    plans_map,
    rates_servers,
)

__all__ = ["STUDIES"]

STUDIES = (
    match_subscriptions.STUDY,
    match_or_join.STUDY,
    channels_traffic.STUDY,
    rates_servers.STUDY,
    plans_map.STUDY,
    another_day.STUDY,
)
