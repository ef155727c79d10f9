"""How much is sampled: the numbers of a sample, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from distributary.errors import BadInput

__all__ = ["SampleSizes"]

_DAY_SECONDS = 86_400.0

# What names have digits for, and what an overlay or a trace can be asked to hold.
_LIMITS = {
    "publications": 1_000_000_000,
    "subscriptions": 10_000_000,
    "users": 10_000_000,
    "brokers": 1_024,
    "objects": 10_000,
    "seconds": 10_000_000,
}


@dataclass(frozen=True)
class SampleSizes:
    """The numbers of rows of a sample, and what else shapes it.

    Attributes
    ----------
    publications, subscriptions, users, brokers
        How many there are of each.
    objects, seconds
        Quoted objects, and how long each is quoted, once every second.
    servers
        How many brokers have users who follow quotes; None for all of them.
    matches
        How many subscriptions an event matches on average, whatever their number.
    days
        The time over which publications are spread.
    """

    publications: int = 10_000
    subscriptions: int = 1_000
    users: int = 1_000
    brokers: int = 64
    objects: int = 20
    seconds: int = 3_600
    servers: int | None = None
    matches: float = 10.0
    days: float = 1.0

    def __post_init__(self) -> None:
        for name, limit in _LIMITS.items():
            _check_count(name, getattr(self, name), limit)
        if self.servers is not None:
            _check_count("servers", self.servers, self.brokers)
        _check_amount("matches", self.matches, 1_000_000.0)
        _check_amount("days", self.days, 3_660.0)

    @property
    def server_count(self) -> int:
        """How many brokers have users who follow quotes; each has at least one user."""
        return min(self.brokers if self.servers is None else self.servers, self.users)

    @property
    def span_us(self) -> int:
        """The time over which publications are spread, in microseconds."""
        return max(1, round(self.days * _DAY_SECONDS * 1e6))


def _check_count(name: str, value: int, limit: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= limit:
        raise BadInput(f"--{name}", f"must be a whole number from 1 to {limit:,}, not {value}")


def _check_amount(name: str, value: float, limit: float) -> None:
    if not math.isfinite(value) or not 0.0 < value <= limit:
        raise BadInput(f"--{name}", f"must be above 0 and at most {limit:,.0f}, not {value:g}")
