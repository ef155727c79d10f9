"""The directed Steiner tree approximation that the papers cite, on small layered graphs.

Charikar, Chekuri, Cheung, Dai, Goel, Guha and Li, "Approximation algorithms for directed
Steiner problems", SODA 1998. Level 1 is the union of shortest paths; level 2 adds bunches,
each a path to some vertex and paths from there to several terminals, cheapest per terminal
first, and stays within a factor of the optimum that grows with the root of the terminals.

One thing is added: what is in the tree already is free for later bunches. The guarantee
rests on the density of the best bunch, which this only lowers.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray
from distributary.errors import BadInput
from distributary.placement._charikar_kernels import (
    ABSENT,
    FROM_PARENT,
    LayeredGraph,
    grow_level_one,
)
from distributary.placement._charikar_level2_kernels import grow_level_two
from distributary.placement.plan import NOT_MADE, Plan

__all__ = ["LayeredGraph", "best_steiner_tree", "steiner_tree"]


def steiner_tree(
    graph: LayeredGraph, *, sources: BoolArray, terminals: BoolArray, level: int
) -> Plan:
    """Return a cheap tree from the sources to all terminals.

    Sources (formats,) are in hand at node 0, terminals (nodes, formats) are what every node
    has to get. The level is 1 or 2; level 2 takes about (terminals x nodes x formats^2) steps.
    """
    grow = {1: grow_level_one, 2: grow_level_two}[level]
    # Contiguous and writable, like every array here: each other kind of array would have
    # the kernels compiled once more.
    terminal_node, terminal_format = (index.copy() for index in np.nonzero(terminals))
    origin = grow(graph, sources.copy(), terminal_node, terminal_format)
    if (origin[terminals] == ABSENT).any():
        raise BadInput("conversions", "do not lead from what is in hand to everything needed")
    return Plan(origin == FROM_PARENT, np.where(origin >= 0, origin, NOT_MADE))


def best_steiner_tree(graph: LayeredGraph, *, sources: BoolArray, terminals: BoolArray) -> Plan:
    """Return the cheaper of the trees of levels 1 and 2."""
    trees = [
        steiner_tree(graph, sources=sources, terminals=terminals, level=level) for level in (1, 2)
    ]
    return min(trees, key=graph.cost)
