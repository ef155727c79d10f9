"""Studies of what brokers cost, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.broker import (
    durable_operations,
    idle_subscriptions,
    long_turns,
    overload,
    relay_turns,
    root_turns,
    steady_home,
    three_hops,
)

__all__ = ["STUDIES"]

STUDIES = (
    steady_home.STUDY,
    root_turns.STUDY,
    relay_turns.STUDY,
    long_turns.STUDY,
    idle_subscriptions.STUDY,
    three_hops.STUDY,
    durable_operations.STUDY,
    overload.STUDY,
)
