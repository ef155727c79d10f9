"""The dissemination tree that one publication follows from its rendezvous broker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.errors import BadInput, quoted

__all__ = ["DisseminationTree", "TreeNode"]


@dataclass(frozen=True)
class TreeNode:
    """One broker of a dissemination tree, as files and generators describe it.

    Attributes
    ----------
    parent
        The broker it receives from; None at the root.
    link_cost, node_cost
        Factors on transmissions over its incoming link and on its conversions.
    bandwidth
        Size units per second on its incoming link; None means 1 / `link_cost`.
    """

    name: str
    parent: str | None
    link_cost: float = 1.0
    node_cost: float = 1.0
    bandwidth: float | None = None


@dataclass(frozen=True, eq=False)
class DisseminationTree:
    """Brokers and links of one tree, as arrays in an order where parents come first.

    Attributes
    ----------
    names
        The brokers; the root has index 0 and `parents[v] < v` for the others.
    parents
        Index of each node's parent, -1 at the root, shape (nodes,).
    link_costs, node_costs
        Factors on the incoming link and on the processor, shape (nodes,).
    bandwidths
        Size units per second on the incoming link, shape (nodes,).
    """

    names: tuple[str, ...]
    parents: IntArray
    link_costs: FloatArray
    node_costs: FloatArray
    bandwidths: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        count = len(self.names)
        assert count > 0
        assert self.parents.shape == (count,)
        assert self.parents[0] == -1
        assert bool(np.all(self.parents[1:] < np.arange(1, count)))
        assert bool(np.all(self.parents[1:] >= 0))
        for array in (self.parents, self.link_costs, self.node_costs, self.bandwidths):
            array.flags.writeable = False

    @classmethod
    def from_nodes(cls, nodes: Iterable[TreeNode]) -> DisseminationTree:
        """Build a tree from its nodes, in whatever order they are given.

        The nodes are put level by level, and by name within a level under the same
        parent, so that no planner's result depends on the order of the input.
        """
        by_name: dict[str, TreeNode] = {}
        for node in nodes:
            if node.name in by_name:
                raise BadInput("tree", f"node {quoted(node.name)} is given twice")
            by_name[node.name] = node
        if not by_name:
            raise BadInput("tree", "is empty", hint="a tree has at least its root")
        children: dict[str, list[str]] = {name: [] for name in by_name}
        roots = []
        for node in by_name.values():
            if node.parent is None:
                roots.append(node.name)
            elif node.parent in children:
                children[node.parent].append(node.name)
            else:
                raise BadInput(
                    "tree", f"parent {quoted(node.parent)} of node {quoted(node.name)} is no node"
                )
        if len(roots) > 1:
            roots.sort()
            raise BadInput("tree", f"has two roots, {quoted(roots[0])} and {quoted(roots[1])}")
        order = list(roots)
        for name in order:
            order.extend(sorted(children[name]))
        if len(order) < len(by_name):
            stuck = min(by_name.keys() - set(order))
            raise BadInput("tree", f"node {quoted(stuck)} is on or below a cycle")
        position = {name: v for v, name in enumerate(order)}
        ordered = [by_name[name] for name in order]
        link_costs = np.array([node.link_cost for node in ordered], dtype=np.float64)
        with np.errstate(divide="ignore"):
            bandwidths = 1.0 / link_costs
        for v, node in enumerate(ordered):
            if node.bandwidth is not None:
                bandwidths[v] = node.bandwidth
        return cls(
            tuple(order),
            np.array(
                [-1 if node.parent is None else position[node.parent] for node in ordered],
                dtype=np.int64,
            ),
            link_costs,
            np.array([node.node_cost for node in ordered], dtype=np.float64),
            bandwidths,
        )

    @property
    def node_count(self) -> int:
        """How many brokers the tree has."""
        return len(self.names)

    @cached_property
    def child_lists(self) -> tuple[IntArray, IntArray]:
        """Children as (start, child): those of `v` are `child[start[v]:start[v + 1]]`."""
        counts = np.bincount(self.parents[1:], minlength=self.node_count)
        start = np.zeros(self.node_count + 1, dtype=np.int64)
        np.cumsum(counts, out=start[1:])
        # Stable, so that siblings keep the order of their indices.
        child = np.argsort(self.parents[1:], kind="stable").astype(np.int64) + 1
        return start, child

    @cached_property
    def depths(self) -> IntArray:
        """Links between the root and each node."""
        depths = np.zeros(self.node_count, dtype=np.int64)
        for v in range(1, self.node_count):
            depths[v] = depths[self.parents[v]] + 1
        return depths

    def children(self, node: int) -> IntArray:
        """Return the indices of the children of `node`, in ascending order."""
        start, child = self.child_lists
        return child[start[node] : start[node + 1]]
