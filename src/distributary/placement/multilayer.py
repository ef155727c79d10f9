"""The multilayer graph: placement as a directed Steiner tree problem.

Vertex (v, k) says that format `k` is in hand at broker `v`. Conversions lead from
(v, i) to (v, j), transmissions from (parent of v, k) to (v, k). A plan is a tree from
what the root holds to every (v, k) that is wanted, and the cheapest such tree is the
cheapest plan (CCD, section 3).

The graph is never written out: all brokers share one list of conversions, so that a
vertex is `v * m + k`, a conversion arc `v * conversions + e`, and a transmission arc
has the number of the vertex it enters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.placement.problem import PlacementProblem
from distributary.placement.useful import useful_formats

__all__ = ["MultilayerGraph", "multilayer_graph"]


class MultilayerGraph(NamedTuple):
    """The multilayer graph of one problem, as arrays for the kernels.

    Attributes
    ----------
    parents
        Parent of each broker, (n,).
    child_start, child
        Children of each broker, as `DisseminationTree.child_lists` has them.
    in_start, in_from
        Conversions by target: those into `j` are `e` in `in_start[j]:in_start[j + 1]`,
        from format `in_from[e]`.
    out_start, out_to, out_arc
        The same conversions by origin; `out_arc` is their number `e`.
    arc_of
        The number `e` of the conversion between two formats, or -1, (m, m).
    conversion_costs
        Cost of each conversion arc, (n * conversions,).
    transmission_costs
        Cost of each transmission arc, (n * m,); infinite at the root.
    allowed
        Which vertices can help, (n * m,).
    roots
        Which vertices are given: what the root holds, (n * m,).
    terminals
        The vertices that are wanted and not given, ascending.
    """

    parents: IntArray
    child_start: IntArray
    child: IntArray
    in_start: IntArray
    in_from: IntArray
    out_start: IntArray
    out_to: IntArray
    out_arc: IntArray
    arc_of: IntArray
    conversion_costs: FloatArray
    transmission_costs: FloatArray
    allowed: BoolArray
    roots: BoolArray
    terminals: IntArray


def multilayer_graph(problem: PlacementProblem) -> MultilayerGraph:
    """Return the multilayer graph of a problem."""
    n, m = problem.node_count, problem.format_count
    costs = problem.graph.costs
    # Transposed, so that conversions come out ordered by what they make.
    to, origin = np.nonzero(np.isfinite(costs.T))
    by_origin = np.argsort(origin, kind="stable")
    arc_of = np.full((m, m), -1, dtype=np.int64)
    arc_of[origin, to] = np.arange(len(to))
    start, child = problem.tree.child_lists
    allowed = useful_formats(problem)
    allowed[0] |= problem.held
    roots = np.zeros((n, m), dtype=np.bool_)
    roots[0] = problem.held
    transmission = problem.link_weights[:, None] * problem.graph.sizes[None, :]
    transmission[0] = np.inf
    conversion = problem.node_weights[:, None] * costs[origin, to][None, :]
    return MultilayerGraph(
        problem.tree.parents,
        start,
        child,
        _starts(to, m),
        origin.astype(np.int64),
        _starts(origin, m),
        to[by_origin].astype(np.int64),
        by_origin.astype(np.int64),
        arc_of,
        conversion.ravel(),
        transmission.ravel(),
        allowed.ravel(),
        roots.ravel(),
        np.flatnonzero(problem.wants.ravel() & ~roots.ravel()).astype(np.int64),
    )


def _starts(sorted_or_not: IntArray, count: int) -> IntArray:
    """Return where each value's run starts once the values are sorted."""
    start = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(sorted_or_not, minlength=count), out=start[1:])
    return start
