"""Prices from a network: users and brokers at its places, and what a way costs by its delay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.topology.sites import Sites
from distributary.wiring.layout import metric_places
from distributary.wiring.positions import Positions

__all__ = ["Standing", "standing"]


@dataclass(frozen=True, eq=False)
class Standing:
    """Where users and brokers stand in a network, as indices of sites, and what follows."""

    sites: Sites
    users: IntArray
    brokers: IntArray

    @property
    def broker_names(self) -> list[str]:
        """Brokers by the names of their places."""
        return [self.sites.names[site] for site in self.brokers.tolist()]

    @property
    def access_prices(self) -> FloatArray:
        """Milliseconds between each user and each broker, shape (users, brokers)."""
        return self.sites.prices(self.users, self.brokers)

    @property
    def core_prices(self) -> FloatArray:
        """Milliseconds between each broker and each other, shape (brokers, brokers)."""
        return self.sites.prices(self.brokers, self.brokers)

    @property
    def positions(self) -> Positions:
        """Where they are on the map of the network, or as far apart as its delays say."""
        points = self.sites.points
        if points is None:
            every = np.arange(len(self.sites.names))
            points = metric_places(self.sites.prices(every, every))
        places = tuple(self.sites.names[site] for site in self.users.tolist())
        return Positions(points[self.users], points[self.brokers], places)


def standing(sites: Sites, users: Sequence[str], brokers: Sequence[str]) -> Standing:
    """Return where users and brokers stand, given the names of their places.

    Any number of users may stand at one place, but only one broker.
    """
    found = {name: sites.index(name, "users[].place") for name in dict.fromkeys(users)}
    return Standing(
        sites,
        np.array([found[name] for name in users], dtype=np.int64),
        sites.indices(brokers, "brokers[].place"),
    )
