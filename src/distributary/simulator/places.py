"""Where brokers stand: their identifiers, the delays between them, and what things cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.broker.messages.host import Neighbour, Surroundings
from distributary.errors import BadInput, counted
from distributary.placement.dissemination import factors
from distributary.simulator.scenario import OverlayTable
from distributary.topology import Overlay, random_identifiers
from distributary.topology.delay_matrix import read_delays
from distributary.topology.gml import read_gml
from distributary.topology.routers import server_delays

__all__ = ["DELAY_MS_MEAN", "Places", "find_places"]

DELAY_MS_MEAN = 20.0
_NS_PER_SECOND = 1e9


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
    """

    identifiers: tuple[str, ...]
    delays_ns: IntArray = field(repr=False)
    link_costs: FloatArray = field(repr=False)
    node_costs: FloatArray = field(repr=False)

    def surroundings(
        self, broker: int, *, members: tuple[str, ...], contact: str | None = None
    ) -> Surroundings:
        """Return what a broker is told before it starts."""
        delays = self.delays_ns[broker].tolist()
        costs = self.link_costs[broker].tolist()
        neighbours = tuple(
            Neighbour(identity, delay_ns, cost)
            for k, (identity, delay_ns, cost) in enumerate(
                zip(self.identifiers, delays, costs, strict=True)
            )
            if k != broker
        )
        return Surroundings(neighbours, members, contact, float(self.node_costs[broker]))


def find_places(overlay: OverlayTable, folder: Path, rng: np.random.Generator) -> Places:
    """Return where the brokers of an overlay stand.

    Parameters
    ----------
    folder
        Where the files are that it names.
    """
    count = overlay.brokers
    delay_mean_s = (DELAY_MS_MEAN if overlay.delay_ms_mean is None else overlay.delay_ms_mean) / 1e3
    if overlay.topology == "unit-square":
        placed = Overlay.in_unit_square(count, rng)
        identifiers, delays = placed.identifiers, _scaled(placed.delays, delay_mean_s)
    else:
        identifiers = random_identifiers(count, rng)
        if overlay.topology == "power-law":
            delays = server_delays(count, rng, router_count=overlay.routers, delay_mean=1.0)
            delays = _scaled(delays, delay_mean_s)
        else:
            delays = _from_file(overlay, folder, rng)
            if overlay.delay_ms_mean is not None:
                delays = _scaled(delays, delay_mean_s)
    links, nodes = _costs(count, overlay.heterogeneity, rng)
    return Places(identifiers, np.rint(delays * _NS_PER_SECOND).astype(np.int64), links, nodes)


def _scaled(delays: FloatArray, mean: float) -> FloatArray:
    """Return delays with this mean over all pairs of different brokers."""
    count = len(delays)
    total = float(delays.sum())
    if count < 2 or total == 0.0:
        return np.zeros_like(delays)
    return delays * (mean * count * (count - 1) / total)


def _from_file(overlay: OverlayTable, folder: Path, rng: np.random.Generator) -> FloatArray:
    """Return the delays between random places of a file."""
    assert overlay.file is not None
    path = folder / overlay.file
    if overlay.topology == "gml":
        network = read_gml(path)
        known = network.delays_between(network.largest_part)
    else:
        known = read_delays(path, unit=overlay.unit, round_trip=overlay.round_trip).delays
    if len(known) < overlay.brokers:
        raise BadInput(
            "overlay.brokers",
            f"is {overlay.brokers}, and {overlay.file} has {counted(len(known), 'place')}",
        )
    chosen = np.sort(rng.choice(len(known), size=overlay.brokers, replace=False))
    return np.array(known[np.ix_(chosen, chosen)])


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
