"""The overlay: brokers, the delays between them, and their routing tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from distributary.arrays import FloatArray
from distributary.topology.identifiers import IDENTIFIER_DIGITS, random_identifiers
from distributary.topology.prefix_routing import RoutingTables

__all__ = ["Overlay"]


@dataclass(frozen=True, eq=False)
class Overlay:
    """Brokers that route to each other by prefix, with neighbours chosen by delay.

    Attributes
    ----------
    identifiers
        The brokers; a broker's position is its index.
    delays
        `delays[u, v]` is the delay from `u` to `v`, shape (brokers, brokers).
    coordinates
        Where the brokers are, shape (brokers, 2); None when only delays are known.
    """

    identifiers: tuple[str, ...]
    delays: FloatArray = field(repr=False)
    coordinates: FloatArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        count = len(self.identifiers)
        assert self.delays.shape == (count, count)
        self.delays.flags.writeable = False
        if self.coordinates is not None:
            assert self.coordinates.shape == (count, 2)
            self.coordinates.flags.writeable = False

    @classmethod
    def at(cls, coordinates: FloatArray, identifiers: Sequence[str]) -> Overlay:
        """Place brokers in the plane; the delay between two is their distance."""
        x, y = coordinates[:, 0], coordinates[:, 1]
        delays = np.hypot(x[:, None] - x[None, :], y[:, None] - y[None, :])
        return cls(tuple(identifiers), delays, coordinates)

    @classmethod
    def in_unit_square(
        cls, broker_count: int, rng: np.random.Generator, *, digits: int = IDENTIFIER_DIGITS
    ) -> Overlay:
        """Place brokers with random identifiers uniformly at random in the unit square."""
        identifiers = random_identifiers(broker_count, rng, digits=digits)
        return cls.at(rng.random((broker_count, 2)), identifiers)

    @property
    def broker_count(self) -> int:
        """How many brokers there are."""
        return len(self.identifiers)

    @cached_property
    def tables(self) -> RoutingTables:
        """The routing tables of all brokers, built when first asked for."""
        return RoutingTables.build(self.identifiers, self.delays)
