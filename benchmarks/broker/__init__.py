"""Studies of what brokers cost, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.broker import (
    idle_subscriptions,
    long_turns,
    relay_turns,
    root_turns,
    steady_home,
)

__all__ = ["STUDIES"]

STUDIES = (
    steady_home.STUDY,
    root_turns.STUDY,
    relay_turns.STUDY,
    long_turns.STUDY,
    idle_subscriptions.STUDY,
)
