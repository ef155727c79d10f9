"""The overlay: brokers, the delays between them, and their routing tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from distributary.arguments import checked, checked_fields
from distributary.arrays import FloatArray
from distributary.topology.identifiers import random_identifiers
from distributary.topology.prefix_routing import RoutingTables

__all__ = ["Overlay"]


@checked_fields
@dataclass(frozen=True, eq=False)
class Overlay:
    """Brokers that route to each other by prefix, with neighbours chosen by delay.

    A broker's position is its index: `delays[u, v]` is the delay from `u` to `v`.
    """

    identifiers: tuple[str, ...]
    delays: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        count = len(self.identifiers)
        assert self.delays.shape == (count, count)
        self.delays.flags.writeable = False

    @classmethod
    @checked
    def in_unit_square(cls, broker_count: int, rng: np.random.Generator) -> Overlay:
        """Place brokers uniformly at random in the unit square; delays are distances."""
        identifiers = random_identifiers(broker_count, rng)
        x, y = rng.random((broker_count, 2)).T
        return cls(identifiers, np.hypot(x[:, None] - x[None, :], y[:, None] - y[None, :]))

    @cached_property
    def tables(self) -> RoutingTables:
        """The routing tables of all brokers, built when first asked for."""
        return RoutingTables.build(self.identifiers, self.delays)
