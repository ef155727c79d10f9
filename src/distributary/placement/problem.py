"""The placement problem: one publication, one tree, and who wants which formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distributary.arguments import check_entries, check_number, check_type, checked, no_such_name
from distributary.arrays import BoolArray, FloatArray, check_array
from distributary.content import AdaptationGraph
from distributary.errors import BadInput, quoted
from distributary.topology import DisseminationTree

__all__ = ["PlacementProblem"]


@dataclass(frozen=True, eq=False)
class PlacementProblem:
    """Where should each conversion of one publication run?

    Attributes
    ----------
    graph
        The formats and the conversions between them.
    tree
        The brokers the publication passes; its root holds the source format.
    wants
        `wants[v, k]`: does a client of broker `v` want format `k`?
    held
        `held[k]`: is format `k` in hand at the root? The source format of a
        publication; several formats when a part of a larger tree is planned anew.
    alpha, beta
        What a unit of transmission and a unit of conversion are worth.
    """

    graph: AdaptationGraph
    tree: DisseminationTree
    wants: BoolArray
    held: BoolArray
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        check_type("graph", self.graph, AdaptationGraph)
        check_type("tree", self.tree, DisseminationTree)
        check_array("wants", self.wants, (self.node_count, self.format_count), np.bool_)
        check_array("held", self.held, (self.format_count,), np.bool_)
        if not self.held.any():
            raise BadInput("held", "has no format: the root holds at least the source format")
        check_number("alpha", self.alpha)
        check_number("beta", self.beta)
        hopeless = self.wants & ~self.graph.makeable[self.held].any(axis=0)
        if hopeless.any():
            v, k = (int(index) for index in np.argwhere(hopeless)[0])
            raise BadInput(
                f"tree: node {quoted(self.tree.names[v])}",
                f"wants {quoted(self.graph.names[k])}, which cannot be made from the source "
                f"format {quoted(self.graph.names[int(np.flatnonzero(self.held)[0])])}",
                hint="add the missing conversion, or drop the wish",
            )

    @classmethod
    @checked
    def from_wishes(
        cls,
        graph: AdaptationGraph,
        tree: DisseminationTree,
        wishes: Mapping[str, str | Iterable[str]],
        *,
        source: str | Iterable[str],
        alpha: float = 1.0,
        beta: float = 1.0,
    ) -> PlacementProblem:
        """Build a problem from names: which formats are wanted at which broker.

        Brokers without wishes may be left out. `source` is the format of the publication, or
        several that the root holds.
        """
        brokers = {name: v for v, name in enumerate(tree.names)}
        wants = np.zeros((tree.node_count, graph.format_count), dtype=np.bool_)
        for broker, wished in wishes.items():
            if broker not in brokers:
                raise no_such_name("wishes", str(broker), brokers, "a node of the tree")
            place = f"wishes of {quoted(broker)}"
            wants[brokers[broker]] = _chosen(graph, wished, place)
        return cls(graph, tree, wants, _chosen(graph, source, "source"), alpha, beta)

    @property
    def node_count(self) -> int:
        """How many brokers the tree has."""
        return self.tree.node_count

    @property
    def format_count(self) -> int:
        """How many formats the adaptation graph has."""
        return self.graph.format_count

    @cached_property
    def link_weights(self) -> FloatArray:
        """What one unit of size costs on each node's incoming link, after weighting."""
        return self.alpha * self.tree.link_costs

    @cached_property
    def node_weights(self) -> FloatArray:
        """What one unit of conversion costs at each node, after weighting."""
        return self.beta * self.tree.node_costs

    @cached_property
    def wanted_below(self) -> BoolArray:
        """`wanted_below[v, k]`: is `k` wanted at `v` or anywhere below it?"""
        below = self.wants.copy()
        for v in range(self.node_count - 1, 0, -1):
            below[self.tree.parents[v]] |= below[v]
        return below

    @cached_property
    def served(self) -> BoolArray:
        """`served[v]`: must `v` receive anything at all?"""
        return np.asarray(self.wanted_below.any(axis=1))


def _chosen(graph: AdaptationGraph, formats: str | Iterable[str], place: str) -> BoolArray:
    """Return which formats of the graph these names are; a single one may stand alone."""
    check_type(place, formats, str, Iterable)
    given = [formats] if isinstance(formats, str) else list(formats)
    check_entries(place, given, str)
    known = {name: k for k, name in enumerate(graph.names)}
    chosen = np.zeros(graph.format_count, dtype=np.bool_)
    for name in given:
        if name not in known:
            raise no_such_name(place, name, known, "a format")
        chosen[known[name]] = True
    return chosen
