"""Validation: what must hold of a message beyond the types of its fields.

Handlers change a broker as they go: what they cannot handle has to be found out before. So
every message is checked first, whether it came by itself, over a link or to a root. What is
refused has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from distributary.broker.addresses import has_digits, is_client, is_tenant
from distributary.broker.settings import Settings
from distributary.errors import PeerMisbehaved, quoted

__all__ = ["AMOUNT_MAX", "COUNT_MAX", "NUMBER_MAX", "Check", "Rules", "check_client"]

AMOUNT_MAX = 1e9
"""Far above every factor, price, time in seconds and rate of updates that brokers tell, and
so low that products of several of them are finite."""
COUNT_MAX = 2**31 - 1
"""Of what a broker has many of at the same time."""
NUMBER_MAX = 2**62 - 1
"""Of what is counted for ever, and of times in nanoseconds: there is room to add to it before
it cannot be encoded."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What brokers of one overlay agree on.

    Attributes
    ----------
    identity
        The broker that checks; all identifiers are as long as its own.
    settings
        The same for all brokers.
    """

    identity: str
    settings: Settings

    def brokers(self, names: Iterable[str]) -> None:
        """Refuse what cannot be the name of a broker."""
        digits = len(self.identity)
        for name in names:
            # As `is_broker` has it, which would be called for every name in every message.
            if len(name) != digits or not has_digits(name):
                raise PeerMisbehaved(f"{quoted(name)} is not the name of a broker")

    def tenants(self, names: Iterable[str]) -> None:
        """Refuse what cannot be the name of a tenant."""
        for name in names:
            if not is_tenant(name):
                raise PeerMisbehaved(f"{quoted(name)} is not the name of a tenant")

    def cells(self, cells: Iterable[int]) -> None:
        """Refuse what is not a cell of the space."""
        count = self.settings.space.cell_count
        for cell in cells:
            if not 0 <= cell < count:
                raise PeerMisbehaved(f"a cell that is not among the {count} of the space")

    def amounts(self, amounts: Iterable[float], most: float = AMOUNT_MAX) -> None:
        """Refuse costs, rates and the like that are below 0, too large or not finite."""
        for amount in amounts:
            if not 0.0 <= amount <= most:
                raise PeerMisbehaved(f"an amount of {amount}")

    def numbers(self, numbers: Iterable[int], most: int = NUMBER_MAX) -> None:
        """Refuse numbers and counts that are below 0 or too large."""
        for number in numbers:
            if not 0 <= number <= most:
                raise PeerMisbehaved(f"a number {number}")

    def times(self, times_ns: Iterable[int]) -> None:
        """Refuse times that no clock shows; one that is slow may begin below 0."""
        for time_ns in times_ns:
            if abs(time_ns) > NUMBER_MAX:
                raise PeerMisbehaved(f"a time of {time_ns} ns")


def check_client(message: Any, rules: Rules) -> None:
    """Refuse to hear of a client that is none."""
    if not is_client(message.client):
        raise PeerMisbehaved(f"{quoted(message.client)} is not the address of a client")


Check = Callable[[Any, Rules], None]
"""Refuses a message that nobody who keeps to the protocol sends, by `PeerMisbehaved`."""
