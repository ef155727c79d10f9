"""A network of nodes and links with delays, and how long a message takes through it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from distributary.arguments import checked_fields
from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.errors import counted
from distributary.topology._path_kernels import shortest_paths

__all__ = ["Network"]

_PATHS_AT_ONCE = 256
# How far from each other nodes of one place are drawn, as a share of the map.
_BESIDE = 0.012


def _none() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@checked_fields
@dataclass(frozen=True, eq=False)
class Network:
    """Nodes joined by links that work in both directions.

    Attributes
    ----------
    names
        The nodes; a node's position is its index.
    links
        The two ends of each link, shape (links, 2).
    link_delays
        Seconds that a message spends on each link, shape (links,).
    guessed
        The links of which nobody knows how long they are, ascending; all take equally long.
    coordinates
        The longitude and latitude of each node in degrees, NaN where nobody knows, shape
        (nodes, 2); None when nobody knows any.
    """

    names: tuple[str, ...]
    links: IntArray = field(repr=False)
    link_delays: FloatArray = field(repr=False)
    guessed: IntArray = field(default_factory=_none, repr=False)
    coordinates: FloatArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        count = len(self.links)
        assert self.links.shape == (count, 2)
        assert self.link_delays.shape == (count,)
        assert not count or 0 <= int(self.links.min()) <= int(self.links.max()) < len(self.names)
        self.links.flags.writeable = False
        self.link_delays.flags.writeable = False
        self.guessed.flags.writeable = False

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self.names)

    @cached_property
    def _adjacency(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The links by node, as `_path_kernels` wants them."""
        near = np.concatenate((self.links[:, 0], self.links[:, 1]))
        far = np.concatenate((self.links[:, 1], self.links[:, 0]))
        order = np.argsort(near, kind="stable")
        start = np.zeros(self.node_count + 1, dtype=np.int64)
        np.cumsum(np.bincount(near, minlength=self.node_count), out=start[1:])
        return start, far[order], np.concatenate((self.link_delays, self.link_delays))[order]

    def delays_between(self, nodes: IntArray) -> FloatArray:
        """Return the delay between every two of some nodes, along the quickest path.

        Infinite where no path leads; the same in both directions to the last bit.
        """
        nodes = np.asarray(nodes, dtype=np.int64)
        delays = np.empty((len(nodes), len(nodes)))
        # Some at a time: paths lead to all nodes, of which there may be far more than asked for.
        for begin in range(0, len(nodes), _PATHS_AT_ONCE):
            some = slice(begin, begin + _PATHS_AT_ONCE)
            delays[some] = shortest_paths(*self._adjacency, nodes[some])[:, nodes]
        # Adding up a path from its other end can differ in the last bit.
        return np.asarray(np.minimum(delays, delays.T))

    @cached_property
    def largest_part(self) -> IntArray:
        """The nodes of the largest part in which every node reaches every other, ascending."""
        start, target, _ = self._adjacency
        part = np.full(self.node_count, -1, dtype=np.int64)
        parts = 0
        for first in range(self.node_count):
            if part[first] >= 0:
                continue
            part[first] = parts
            waiting = [first]
            while waiting:
                v = waiting.pop()
                for w in target[start[v] : start[v + 1]].tolist():
                    if part[w] < 0:
                        part[w] = parts
                        waiting.append(w)
            parts += 1
        if parts == 0:
            return _none()
        return np.flatnonzero(part == np.bincount(part).argmax())

    @cached_property
    def map_points(self) -> FloatArray | None:
        """Where each node is on a map, shape (nodes, 2); None when nobody knows of any node.

        A node of which that is not known stands among its neighbours, and nodes in one place
        stand close beside each other.
        """
        if self.coordinates is None or np.isnan(self.coordinates).all():
            return None
        longitudes, latitudes = self.coordinates.T
        known = ~np.isnan(longitudes + latitudes)
        # The map is cut where it is emptiest: few networks go around the world.
        around = np.unique(longitudes[known])
        gaps = np.diff(around, append=around[0] + 360.0)
        west = around[(int(gaps.argmax()) + 1) % len(around)]
        points = np.column_stack(
            [
                ((longitudes - west) % 360.0) * np.cos(np.radians(latitudes[known].mean())),
                latitudes,
            ]
        )
        points[~known] = np.nan
        self._fill(points, known)
        _, spot, turn = np.unique(points.round(6), axis=0, return_inverse=True, return_counts=True)
        spot = spot.reshape(-1)
        extent = float(np.ptp(points, axis=0).max()) or 1.0
        for place in np.flatnonzero(turn > 1).tolist():
            here = np.flatnonzero(spot == place)
            angles = 2.0 * np.pi * np.arange(len(here)) / len(here)
            beside = np.column_stack([np.cos(angles), np.sin(angles)])
            points[here] += _BESIDE * extent * beside
        return points

    def _fill(self, points: FloatArray, known: BoolArray) -> None:
        """Put every node that is nowhere amid its neighbours, from known ones outwards."""
        start, target, _ = self._adjacency
        placed = known.copy()
        waiting = True
        while waiting:
            waiting = False
            for v in np.flatnonzero(~placed).tolist():
                near = target[start[v] : start[v + 1]]
                near = near[placed[near]]
                if len(near):
                    points[v] = points[near].mean(axis=0)
                    placed[v] = waiting = True
        points[~placed] = points[placed].mean(axis=0)

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever relies on the delays in the largest part should know, a sentence each."""
        notes = []
        links, guesses = len(self.links), len(self.guessed)
        if guesses:
            delay_ms = 1e3 * float(self.link_delays[self.guessed[0]])
            scaled = np.delete(self.link_delays, self.guessed).any()
            notes.append(
                f"{guesses:,} of {counted(links, 'link')} of unknown length, taken for "
                f"{delay_ms:.3g} ms{' each' if guesses > 1 else ''}"
                f"{', the median of the others' if scaled else ''}"
            )
        apart = self.node_count - len(self.largest_part)
        if apart:
            notes.append(
                f"{apart:,} of {self.node_count:,} nodes left out, not connected with the others"
            )
        return tuple(notes)
