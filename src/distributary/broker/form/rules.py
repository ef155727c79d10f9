"""Rules that several messages keep to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from distributary.broker.addresses import is_broker
from distributary.broker.settings import Settings
from distributary.errors import PeerMisbehaved, quoted

__all__ = ["Rules"]


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
            if not is_broker(name, digits):
                raise PeerMisbehaved(f"{quoted(name)} is not the name of a broker")

    def cells(self, cells: Iterable[int]) -> None:
        """Refuse what is not a cell of the space."""
        count = self.settings.space.cell_count
        for cell in cells:
            if not 0 <= cell < count:
                raise PeerMisbehaved(f"a cell that is not among the {count} of the space")

    def amounts(self, amounts: Iterable[float]) -> None:
        """Refuse costs, rates and the like that are below 0 or not finite."""
        for amount in amounts:
            if not 0.0 <= amount < math.inf:
                raise PeerMisbehaved(f"an amount of {amount}")
