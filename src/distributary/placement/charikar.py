"""The directed Steiner tree approximation that the papers cite, on small layered graphs.

Charikar, Chekuri, Cheung, Dai, Goel, Guha and Li, "Approximation algorithms for directed
Steiner problems", SODA 1998. Level 1 is the union of shortest paths; level 2 adds bunches,
each a path to some vertex and paths from there to several terminals, cheapest per terminal
first, and stays within a factor of the optimum that grows with the root of the terminals.

One thing is added: what is in the tree already is free for later bunches. The guarantee
rests on the density of the best bunch, which this only lowers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.errors import BadInput
from distributary.placement._bunch_kernels import grow_level_two
from distributary.placement._charikar_kernels import ABSENT, FROM_PARENT, grow_level_one
from distributary.placement.chains import Chains, cheapest_chains
from distributary.placement.plan import NOT_MADE, Plan

__all__ = ["LEVELS", "LayeredGraph", "best_steiner_tree", "directed_steiner_tree", "steiner_tree"]

LEVELS = (1, 2)


@dataclass(frozen=True, eq=False)
class LayeredGraph:
    """A few nodes of a dissemination tree, each with every format: papers, "multilayer graph".

    Attributes
    ----------
    chains
        The conversions, the same at every node up to its weight.
    parents
        Parent of each node, -1 at node 0; parents come first, shape (nodes,).
    sending
        What sending a format into a node costs, shape (nodes, formats); row 0 is unused.
    weights
        What a unit of conversion costs at each node, shape (nodes,).
    """

    chains: Chains
    parents: IntArray
    sending: FloatArray
    weights: FloatArray

    def cost(self, tree: Plan) -> float:
        """Return what the edges of `tree` cost together."""
        node, made = np.nonzero(tree.made_from != NOT_MADE)
        converting = self.weights[node] * self.chains.direct[tree.made_from[node, made], made]
        return float(self.sending[tree.receives].sum() + converting.sum())


def steiner_tree(
    graph: LayeredGraph, *, sources: BoolArray, terminals: BoolArray, level: int
) -> Plan:
    """Return a cheap tree from the sources to all terminals.

    Parameters
    ----------
    graph
        The graph.
    sources
        Which formats are in hand at node 0, shape (formats,).
    terminals
        Which formats every node has to get, shape (nodes, formats).
    level
        1 or 2; level 2 takes about (terminals x nodes x formats^2) steps.
    """
    grow = {1: grow_level_one, 2: grow_level_two}[level]
    # Contiguous and writable, like every array here: each other kind of array would have
    # the kernels compiled once more.
    terminal_node, terminal_format = (index.copy() for index in np.nonzero(terminals))
    origin = grow(
        graph.parents,
        graph.sending,
        graph.weights,
        graph.chains.costs,
        graph.chains.before,
        sources.copy(),
        terminal_node,
        terminal_format,
    )
    if (origin[terminals] == ABSENT).any():
        raise BadInput("conversions", "do not lead from what is in hand to everything needed")
    return Plan(origin == FROM_PARENT, np.where(origin >= 0, origin, NOT_MADE))


def best_steiner_tree(graph: LayeredGraph, *, sources: BoolArray, terminals: BoolArray) -> Plan:
    """Return the cheaper of the trees of levels 1 and 2."""
    trees = [
        steiner_tree(graph, sources=sources, terminals=terminals, level=level) for level in LEVELS
    ]
    return min(trees, key=graph.cost)


def directed_steiner_tree(
    direct: FloatArray | Chains, *, sources: BoolArray, terminals: BoolArray, level: int
) -> IntArray:
    """Return a cheap tree in a plain directed graph, as the predecessor of each vertex.

    Parameters
    ----------
    direct
        Cost of each arc, infinite when there is none, shape (vertices, vertices); or the
        shortest paths between all vertices, when they are known already.
    sources, terminals
        Where the tree starts and what it has to reach, shape (vertices,).
    level
        1 or 2.

    Returns
    -------
    :
        The predecessor of every vertex in the tree; -1 for sources and for vertices that
        are not in it, shape (vertices,).
    """
    chains = direct if isinstance(direct, Chains) else cheapest_chains(direct)
    graph = LayeredGraph(
        chains,
        np.array([-1], dtype=np.int64),
        np.zeros((1, len(sources))),
        np.ones(1),
    )
    tree = steiner_tree(graph, sources=sources, terminals=terminals[None, :], level=level)
    return np.asarray(tree.made_from[0])
