"""Sites: named places where brokers and users can stand, and the delays between them.

They come from a network in a GML file or from a file of measured delays. Whatever reads one of
these for a planner or for the simulator reads it here, so that names mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from distributary.arguments import checked, no_such_name
from distributary.arrays import FloatArray, IntArray
from distributary.errors import BadInput, counted, quoted
from distributary.topology.delay_matrix import HOSTS_MAX, read_delays
from distributary.topology.gml import read_gml

__all__ = ["Sites", "gml_sites", "matrix_sites"]


@dataclass(frozen=True, eq=False)
class Sites:
    """Named places with a way from each to each.

    Attributes
    ----------
    file
        What names them, for messages.
    names
        The sites; a site's position is its index.
    between
        Given some sites: the seconds from each of them to each, 0 on the diagonal.
    points
        Where they are on a map, shape (sites, 2); None where the file does not say.
    notes
        What whoever relies on the delays should know, a sentence each.
    """

    file: str
    names: tuple[str, ...]
    between: Callable[[IntArray], FloatArray] = field(repr=False)
    points: FloatArray | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert self.points is None or self.points.shape == (len(self.names), 2)

    @cached_property
    def delays(self) -> FloatArray:
        """Seconds from each site to each, shape (sites, sites)."""
        return self.delays_between(np.arange(len(self.names)))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.names)}

    def index(self, name: str, place: str) -> int:
        """Return which site has a name; `place` is where it is written, for the message."""
        found = self._index.get(name)
        if found is None:
            raise no_such_name(place, name, self.names, f"a connected place of {self.file}")
        return found

    def indices(self, names: Iterable[str], place: str) -> IntArray:
        """Return which sites have some names, each given once."""
        found: dict[int, None] = {}
        for name in names:
            at = self.index(name, place)
            if at in found:
                raise BadInput(place, f"{quoted(name)} is given twice")
            found[at] = None
        return np.array(list(found), dtype=np.int64)

    def chosen(
        self,
        count: int | None,
        at: Sequence[str],
        rng: np.random.Generator,
        *,
        noun: str,
    ) -> IntArray:
        """Return where brokers stand: at sites by name, or at so many at random, or at all.

        `noun` is the argument that counts them, for the message.
        """
        if at:
            if count is not None and count != len(at):
                raise BadInput(noun, f"is {count}, and 'at' names {counted(len(at), 'place')}")
            return self.indices(at, "at")
        order = rng.permutation(len(self.names))
        count = len(order) if count is None else count
        if count > len(order):
            have = counted(len(order), "connected place")
            raise BadInput(noun, f"is {count:,}, and {self.file} has {have}")
        return order[:count]

    def delays_between(self, sites: IntArray) -> FloatArray:
        """Return the seconds from each to each of some sites."""
        if len(sites) > HOSTS_MAX:
            raise BadInput(
                self.file,
                f"has {len(sites):,} connected places that are asked for; "
                f"delays between {HOSTS_MAX:,} are kept",
            )
        return self.between(sites)

    def prices(self, some: IntArray, others: IntArray) -> FloatArray:
        """Return the milliseconds between sites, the mean of there and back.

        A price holds for both directions, and so does the cable.
        """
        sites = np.unique(np.concatenate([some, others]))
        delays = self.delays_between(sites)
        both_ways = 500.0 * (delays + delays.T)
        return both_ways[np.ix_(np.searchsorted(sites, some), np.searchsorted(sites, others))]


@checked
def gml_sites(path: Path | str) -> Sites:
    """Return the nodes of the largest connected part of a network in a GML file."""
    network = read_gml(path)
    nodes = network.largest_part
    points = network.map_points
    return Sites(
        str(path),
        tuple(network.names[v] for v in nodes.tolist()),
        lambda sites: network.delays_between(nodes[sites]),
        None if points is None else points[nodes],
        network.notes,
    )


@checked
def matrix_sites(path: Path | str, *, unit: str = "ms", round_trip: bool = False) -> Sites:
    """Return the hosts of a file of delays; see `read_delays`."""
    matrix = read_delays(path, unit=unit, round_trip=round_trip)
    return Sites(
        str(path),
        matrix.names,
        lambda sites: np.array(matrix.delays[np.ix_(sites, sites)]),
        None,
        matrix.notes,
    )
