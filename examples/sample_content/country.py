"""All that the samples show: the land, the town, its roads, and what has happened there."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from examples.sample_content.incidents import Incident, place_incidents
from examples.sample_content.names import Names
from examples.sample_content.roads import Network
from examples.sample_content.terrain import NORTH_M, Terrain
from examples.sample_content.town import Town

__all__ = ["Country", "country", "grid_reference"]


class Country:
    """One imaginary piece of country on one bad day.

    Parameters
    ----------
    seed
        Which one. The same seed is the same country, to the last building.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        rng = np.random.default_rng([seed, 0])
        names = Names(rng)
        self.river_name = names.river
        self.terrain = Terrain(seed)
        self.town = Town(self.terrain, names)
        self.network = Network(self.terrain, self.town, names)
        self.incidents: list[Incident] = place_incidents(
            self.terrain, self.town, self.network, river_name=names.river
        )


@lru_cache(maxsize=4)
def country(seed: int) -> Country:
    """Return the country of this seed, made once: map, clip and photo show the same one."""
    return Country(seed)


def grid_reference(x: float, y: float) -> str:
    """Return the square of the map that a point is in: a letter from west, a number from north."""
    return f"{'ABCDEFG'[min(int(x // 1000), 6)]}{min(int((NORTH_M - y) // 1000), 5) + 1}"
