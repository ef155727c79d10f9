"""A network of nodes and links with delays, and how long a message takes through it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.topology._path_kernels import shortest_paths

__all__ = ["Network"]


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
    """

    names: tuple[str, ...]
    links: IntArray = field(repr=False)
    link_delays: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        count = len(self.links)
        assert self.links.shape == (count, 2)
        assert self.link_delays.shape == (count,)
        assert not count or 0 <= int(self.links.min()) <= int(self.links.max()) < len(self.names)
        self.links.flags.writeable = False
        self.link_delays.flags.writeable = False

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
        delays = shortest_paths(*self._adjacency, np.asarray(nodes, dtype=np.int64))[:, nodes]
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
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(part == np.bincount(part).argmax())
