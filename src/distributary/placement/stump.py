"""Stumps: a broker with the levels just below it, planned anew on its own.

Paper 000, section 5, Algorithm 3. What the broker receives and what the lowest level passes
on stay as they are, so a better plan for the stump is a better plan for the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distributary.arrays import BoolArray, IntArray
from distributary.placement.chains import Chains
from distributary.placement.charikar import LayeredGraph, best_steiner_tree
from distributary.placement.exact import exact_plan, require_within, table_estimate
from distributary.placement.plan import Plan
from distributary.placement.problem import PlacementProblem
from distributary.placement.useful import useful_formats

# What one exact refinement may use; a run makes hundreds of them.
_SECONDS_MAX = 1.0
_BYTES_MAX = 2**30

__all__ = ["Stump", "cut_stump", "replan_approximately", "replan_exactly", "require_small_stumps"]


@dataclass(frozen=True, eq=False)
class Stump:
    """A part of a tree with its sources and terminals.

    Attributes
    ----------
    nodes
        The brokers, the refined one first and parents before children, shape (nodes,).
    parents
        Position of each one's parent in `nodes`, -1 for the first.
    sources
        The formats that the refined broker receives, or holds if it is the root.
    terminals
        The formats that must be in hand at each broker: what it wants, and on the lowest
        level also what it sends on. The paper leaves out the wishes of the brokers above
        the lowest level; without them a refinement could leave them unserved.
    """

    nodes: IntArray
    parents: IntArray
    sources: BoolArray
    terminals: BoolArray


def cut_stump(
    problem: PlacementProblem,
    plan: Plan,
    children: Sequence[IntArray],
    node: int,
    depth: int,
) -> Stump:
    """Return the stump of `node` with `depth` levels below it.

    `children` are for every node those of its children that receive anything.
    """
    nodes = [node]
    parents = [-1]
    level_start = 0
    for _ in range(depth):
        level_end = len(nodes)
        for position in range(level_start, level_end):
            below = children[nodes[position]]
            nodes.extend(below.tolist())
            parents.extend([position] * len(below))
        level_start = level_end
        if level_start == len(nodes):
            break
    members = np.array(nodes, dtype=np.int64)
    terminals = problem.wants[members]
    for position in range(level_start, len(nodes)):
        below = children[nodes[position]]
        if len(below) > 0:
            terminals[position] |= plan.receives[below].any(axis=0)
    return Stump(
        members,
        np.array(parents, dtype=np.int64),
        (plan.receives[node] if node > 0 else problem.held).copy(),
        terminals,
    )


def replan_approximately(problem: PlacementProblem, chains: Chains, stump: Stump) -> Plan:
    """Return a plan for the stump: the better of Charikar's levels 1 and 2."""
    graph = LayeredGraph(
        chains,
        stump.parents,
        problem.link_weights[stump.nodes, None] * problem.graph.sizes,
        problem.node_weights[stump.nodes],
    )
    return best_steiner_tree(graph, sources=stump.sources, terminals=stump.terminals)


def replan_exactly(problem: PlacementProblem, stump: Stump) -> Plan:
    """Return a cheapest plan for the stump."""
    part = PlacementProblem(
        problem.graph,
        problem.tree.part(stump.nodes, stump.parents.copy()),
        stump.terminals.copy(),
        stump.sources.copy(),
        problem.alpha,
        problem.beta,
    )
    return exact_plan(part)


def require_small_stumps(problem: PlacementProblem) -> None:
    """Raise `TooLarge` when there are too many formats to plan any stump exactly."""
    formats = int(useful_formats(problem).sum(axis=1).max())
    require_within(
        table_estimate(formats, tables=1),
        seconds_max=_SECONDS_MAX,
        memory_bytes_max=_BYTES_MAX,
        instead="--steiner charikar",
        what="one exact refinement",
    )
