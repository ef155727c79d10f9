"""Where users and brokers are, for pictures: no planner looks at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.arrays import FloatArray

__all__ = ["Positions"]


@dataclass(frozen=True, eq=False)
class Positions:
    """Points on a plane (count, 2), in the order of a problem's users and brokers.

    `places` is what the places of users are called, where they have names.
    """

    users: FloatArray
    brokers: FloatArray
    places: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        assert self.users.ndim == self.brokers.ndim == 2
        assert self.users.shape[1] == self.brokers.shape[1] == 2
        assert self.places is None or len(self.places) == len(self.users)
        assert np.isfinite(self.users).all()
        assert np.isfinite(self.brokers).all()
