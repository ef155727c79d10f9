"""Which tables jobs read and write, and of which of them a day is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["BY_DAY", "READS", "WRITES", "DayInputs"]

READS: Mapping[str, tuple[str, ...]] = {
    "match": ("publications", "subscriptions"),
    "channels": ("publications", "subscriptions"),
    "traffic": ("rates_published", "interests"),
    "rates": ("quotes", "subscriptions", "users"),
    "plans": ("publications", "deliveries", "overlay"),
    "wire": ("users", "brokers", "access_costs", "core_costs", "rates_published", "interests"),
    "tree": ("rates", "overlay"),
}
"""The tables without which a job does nothing."""

WRITES: Mapping[str, tuple[str, ...]] = {
    "sample": (
        *("publications", "subscriptions", "users", "brokers"),
        *("access_costs", "core_costs", "overlay", "quotes"),
    ),
    "match": ("deliveries",),
    "channels": ("channels", "volume_days", "rates_published", "interests"),
    "traffic": ("received_days", "traffic", "partners", "broker_traffic"),
    "rates": ("rate_days", "rates"),
    "plans": ("plans",),
    "wire": ("wiring",),
    "tree": ("trees",),
}
"""The tables that a job makes."""


@dataclass(frozen=True)
class DayInputs:
    """What the days of a job are made of.

    Attributes
    ----------
    table
        Where they are kept.
    of_day
        The tables of which a day is made of the same day; the first one says which there are.
    whole
        The tables of which every day is made.
    """

    table: str
    of_day: tuple[str, ...]
    whole: tuple[str, ...] = ()


BY_DAY: Mapping[str, DayInputs] = {
    "match": DayInputs("deliveries", ("publications",), ("subscriptions", "users")),
    "channels": DayInputs("volume_days", ("publications",)),
    "traffic": DayInputs("received_days", ("deliveries",)),
    "rates": DayInputs("rate_days", ("quotes",), ("subscriptions", "users")),
    "plans": DayInputs("plans", ("publications", "deliveries"), ("overlay",)),
}
"""The jobs that do some days, in any order."""
