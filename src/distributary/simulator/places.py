"""Where brokers stand: their identifiers, the delays between them, and what things cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.broker.host import Neighbour, Surroundings
from distributary.errors import BadInput, counted
from distributary.placement.dissemination import factors
from distributary.simulator.scenario import OverlayTable
from distributary.topology import Overlay, random_identifiers
from distributary.topology.prices import shortest_prices
from distributary.topology.routers import server_delays
from distributary.topology.sites import Sites, gml_sites, matrix_sites

__all__ = ["DELAY_MS_MEAN", "AccessLinks", "Places", "find_places"]

DELAY_MS_MEAN = 20.0
_NS_PER_SECOND = 1e9
# A day. Far beyond it, times do not fit into the clock of a run.
_DELAY_S_MAX = 86_400.0


@dataclass(frozen=True, eq=False)
class AccessLinks:
    """How a client that stands somewhere in the network reaches each broker.

    Attributes
    ----------
    prices
        What a byte costs on the way, shape (brokers,), in the unit of prices between brokers:
        a byte over a link of factor 1.
    delays_ns
        How long a message travels, shape (brokers,).
    """

    prices: FloatArray
    delays_ns: IntArray


@dataclass(frozen=True, eq=False)
class Places:
    """Brokers in a network.

    Attributes
    ----------
    identifiers
        The brokers; a broker's position is its index.
    delays_ns
        From each broker to each other, shape (brokers, brokers).
    link_costs, node_costs
        Factors on transmission and conversion, shapes (brokers, brokers) and (brokers,).
    names
        What brokers are called: by the place in a file where they stand, or by their identifier.
    points
        Where they are on a map, shape (brokers, 2); None where nobody knows.
    notes
        What the file of delays or of the network does not say, and what stands in for it.
    """

    identifiers: tuple[str, ...]
    delays_ns: IntArray = field(repr=False)
    link_costs: FloatArray = field(repr=False)
    node_costs: FloatArray = field(repr=False)
    names: tuple[str, ...] = ()
    points: FloatArray | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.names:
            object.__setattr__(self, "names", self.identifiers)

    @cached_property
    def _core_prices(self) -> FloatArray:
        """What a byte costs from each broker to each other, along the cheapest way."""
        prices = self.link_costs.copy()
        np.fill_diagonal(prices, 0.0)
        return shortest_prices(prices)

    def access(self, one: int, other: int, share: float) -> AccessLinks:
        """Return how brokers are reached from the link between two of them.

        Parameters
        ----------
        share
            Where on the link: 0 is at the one, 1 at the other. At a broker a client would have
            little reason to prefer another: what that saves between brokers is paid for access.
        """
        found = []
        for ways in (self._core_prices, self.delays_ns):
            length = ways[one, other]
            found.append(
                np.minimum(share * length + ways[one], (1.0 - share) * length + ways[other])
            )
        return AccessLinks(found[0], np.rint(found[1]).astype(np.int64))

    def surroundings(
        self, broker: int, *, members: tuple[str, ...], contact: str | None = None
    ) -> Surroundings:
        """Return what a broker is told before it starts."""
        delays = self.delays_ns[broker].tolist()
        costs = self.link_costs[broker].tolist()
        neighbours = [*map(Neighbour, self.identifiers, delays, costs)]
        del neighbours[broker]
        return Surroundings(tuple(neighbours), members, contact, float(self.node_costs[broker]))


def find_places(overlay: OverlayTable, folder: Path, rng: np.random.Generator) -> Places:
    """Return where the brokers of an overlay stand.

    Parameters
    ----------
    folder
        Where the files are that it names.
    """
    count = overlay.brokers
    delay_mean_s = (DELAY_MS_MEAN if overlay.delay_ms_mean is None else overlay.delay_ms_mean) / 1e3
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    points: FloatArray | None = None
    if overlay.topology == "unit-square":
        placed = Overlay.in_unit_square(count, rng)
        identifiers, delays = placed.identifiers, _scaled(placed.delays, delay_mean_s)
    else:
        identifiers = random_identifiers(count, rng)
        if overlay.topology == "power-law":
            delays = server_delays(count, rng, router_count=overlay.routers, delay_mean=1.0)
            delays = _scaled(delays, delay_mean_s)
        else:
            sites = _sites(overlay, folder)
            chosen = _chosen(overlay, sites, rng)
            delays = sites.delays_between(chosen)
            names = tuple(sites.names[k] for k in chosen.tolist())
            points = None if sites.points is None else sites.points[chosen]
            notes = tuple(f"{overlay.file}: {note}" for note in sites.notes)
            if overlay.delay_ms_mean is not None:
                delays = _scaled(delays, delay_mean_s)
    links, nodes = _costs(count, overlay.heterogeneity, rng)
    longest_s = float(delays.max(initial=0.0))
    if longest_s > _DELAY_S_MAX:
        raise BadInput(
            "overlay",
            f"puts brokers {longest_s:g} s apart; at most {_DELAY_S_MAX:g} s are simulated",
            hint="unit says what a file of delays measures in",
        )
    delays_ns = np.rint(delays * _NS_PER_SECOND).astype(np.int64)
    return Places(identifiers, delays_ns, links, nodes, names, points, notes)


def _scaled(delays: FloatArray, mean: float) -> FloatArray:
    """Return delays with this mean over all pairs of different brokers."""
    count = len(delays)
    total = float(delays.sum())
    if count < 2 or total == 0.0:
        return np.zeros_like(delays)
    return delays * (mean * count * (count - 1) / total)


def _sites(overlay: OverlayTable, folder: Path) -> Sites:
    """Return the places in the file of an overlay."""
    assert overlay.file is not None
    path = folder / overlay.file
    if overlay.topology == "gml":
        return gml_sites(path)
    return matrix_sites(path, unit=overlay.unit, round_trip=overlay.round_trip)


def _chosen(overlay: OverlayTable, sites: Sites, rng: np.random.Generator) -> IntArray:
    """Return at which of the places in a file the brokers stand: named ones, or random ones."""
    if overlay.at:
        return sites.indices(overlay.at, "overlay.at")
    count = len(sites.names)
    if count < overlay.brokers:
        noun = "connected node" if overlay.topology == "gml" else "host"
        raise BadInput(
            "overlay.brokers",
            f"is {overlay.brokers}, and {overlay.file} has {counted(count, noun)}",
        )
    return np.sort(rng.choice(count, size=overlay.brokers, replace=False))


def _costs(
    count: int, heterogeneity: str, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return factors for links and processors; a link costs the same in both directions."""
    pairs = count * (count - 1) // 2
    links, nodes = factors(pairs + 1, heterogeneity, rng)
    matrix = np.ones((count, count))
    above = np.triu_indices(count, 1)
    matrix[above] = links[1:]
    matrix.T[above] = links[1:]
    return matrix, nodes[:count].copy()
