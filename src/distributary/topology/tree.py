"""The dissemination tree that one publication follows from its rendezvous broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from distributary.arguments import (
    check_entries,
    check_names,
    check_number,
    check_type,
    checked,
    no_such_name,
)
from distributary.arrays import FloatArray, IntArray, amounts_of, check_amounts, check_array
from distributary.errors import BadInput, quoted

__all__ = ["DisseminationTree", "TreeNode"]

# Nodes of a cycle that a message shows.
_SHOWN_MAX = 4


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
        check_names("names", self.names)
        count = len(self.names)
        if count == 0:
            raise BadInput("tree", "is empty", hint="a tree has at least its root")
        check_array("parents", self.parents, (count,), np.int64)
        above = self.parents[1:]
        if self.parents[0] != -1 or (above < 0).any() or (above >= np.arange(1, count)).any():
            raise BadInput(
                "parents",
                "must be -1 for the first node, and an earlier node for each of the others",
                hint="DisseminationTree.from_nodes takes nodes in any order",
            )
        for field_name, array in (("link_cost", self.link_costs), ("node_cost", self.node_costs)):
            check_amounts(f"{field_name}s", array, (count,), self._place(field_name))
        # The bandwidth of a link that costs nothing is infinite; none can be too large.
        check_array("bandwidths", self.bandwidths, (count,), np.float64)
        wrong = ~(self.bandwidths > 0.0)
        if wrong.any():
            v = int(wrong.argmax())
            fault = f"must be greater than 0, not {self.bandwidths[v]:g}"
            raise BadInput(self._place("bandwidth")(v), fault)

    def _place(self, field_name: str) -> Callable[[int], str]:
        """Return what messages call a field of the node with some index."""
        return lambda v: f"tree: node {quoted(self.names[v])}: {field_name}"

    @classmethod
    @checked
    def from_nodes(cls, nodes: Iterable[TreeNode]) -> DisseminationTree:
        """Build a tree from its nodes, in whatever order they are given.

        The nodes are put level by level, and by name within a level under the same
        parent, so that no planner's result depends on the order of the input.

        Messages call the nodes by their place in the order given, as a file of them does.
        """
        given = list(nodes)
        check_entries("tree", given, TreeNode)
        names = [node.name for node in given]
        check_entries("tree: node", names, str)
        index_of: dict[str, int] = {}
        root: str | None = None
        for index, (name, node) in enumerate(zip(names, given, strict=True)):
            if name in index_of:
                raise BadInput(
                    f"tree[{index}].node",
                    f"node {quoted(name)} is given twice, first at tree[{index_of[name]}]",
                )
            index_of[name] = index
            if node.parent is None:
                if root is not None:
                    raise BadInput(
                        f"tree[{index}].parent",
                        f"node {quoted(name)} is a second root beside {quoted(root)}",
                        hint="only one node has the parent null",
                    )
                root = name
        children: dict[str, list[str]] = {name: [] for name in index_of}
        for index, node in enumerate(given):
            if node.parent in children:
                children[node.parent].append(node.name)
            elif node.parent is not None:
                where = f"tree[{index}].parent"
                check_type(where, node.parent, str)
                raise no_such_name(where, node.parent, index_of, "a node of the tree")
        if not given:
            raise BadInput("tree", "is empty", hint="a tree has at least its root")
        order = [] if root is None else [root]
        for name in order:
            order.extend(sorted(children[name]))
        if len(order) < len(given):
            raise _cycle(given, index_of, set(order))
        position = {name: v for v, name in enumerate(order)}
        ordered = [given[index_of[name]] for name in order]

        def place(key: str) -> Callable[[int], str]:
            return lambda v: f"tree[{index_of[order[v]]}].{key}"

        link_costs = amounts_of([node.link_cost for node in ordered], place("link_cost"))
        with np.errstate(divide="ignore"):
            bandwidths = 1.0 / link_costs
        for v, node in enumerate(ordered):
            if node.bandwidth is not None:
                check_number(place("bandwidth")(v), node.bandwidth, positive=True)
                bandwidths[v] = node.bandwidth
        return cls._of_checked(
            tuple(order),
            np.array(
                [-1 if node.parent is None else position[node.parent] for node in ordered],
                dtype=np.int64,
            ),
            link_costs,
            amounts_of([node.node_cost for node in ordered], place("node_cost")),
            bandwidths,
        )

    def part(self, nodes: IntArray, parents: IntArray) -> DisseminationTree:
        """Return the tree of these nodes of this one, the first of which is its root.

        `parents` are positions in `nodes`.
        """
        return self._of_checked(
            tuple(self.names[v] for v in nodes),
            parents,
            self.link_costs[nodes],
            self.node_costs[nodes],
            self.bandwidths[nodes],
        )

    @classmethod
    def _of_checked(cls, names: tuple[str, ...], *arrays: IntArray | FloatArray) -> Self:
        """Return a tree of what was checked, and is not again.

        Planners take trees apart many thousand times a second.
        """
        tree = object.__new__(cls)
        for array in arrays:
            array.flags.writeable = False
        keys = ("parents", "link_costs", "node_costs", "bandwidths")
        vars(tree).update(zip(keys, arrays, strict=True), names=names)
        return tree

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


def _cycle(nodes: Sequence[TreeNode], index_of: dict[str, int], reached: set[str]) -> BadInput:
    """Return the error about a cycle, above the first node that the root does not reach."""
    above = {node.name: node.parent for node in nodes}
    at = next(node.name for node in nodes if node.name not in reached)
    seen: set[str] = set()
    while at not in seen:
        seen.add(at)
        at = above[at] or at
    shown = [quoted(at)]
    parent = above[at]
    while parent is not None and parent != at and len(shown) < _SHOWN_MAX:
        shown.append(quoted(parent))
        parent = above[parent]
    shown.append(quoted(at) if parent == at else "...")
    return BadInput(
        f"tree[{index_of[at]}].parent",
        f"node {quoted(at)} is on a cycle: {' below '.join(shown)}",
        hint="every node leads up to one root, whose parent is null",
    )
