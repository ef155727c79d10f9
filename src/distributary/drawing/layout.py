"""Where to put the nodes of a tree: columns for small trees, rings for large ones.

Both layouts hand out spans. A node's span holds the spans of its children side by
side and is centred on the node, so subtrees never mix, links never cross, and every
parent stands within the reach of its children. Contour packing would make a small
tree a little tighter, at the price of subtrees that interlock.

Trees are given as parents: index 0 is the root with parent -1, `parents[v] < v`.
"""

from __future__ import annotations

import math

import numpy as np

from distributary.arrays import FloatArray, IntArray

__all__ = ["layered_layout", "node_depths", "radial_layout", "subtree_leaves", "subtree_spans"]

_FULL_TURN = 2.0 * math.pi


def node_depths(parents: IntArray) -> IntArray:
    """Return how many links separate each node from the root, shape (nodes,)."""
    depths = [0] * len(parents)
    for v, parent in enumerate(parents.tolist()):
        if parent >= 0:
            depths[v] = depths[parent] + 1
    return np.array(depths, dtype=np.int64)


def subtree_leaves(parents: IntArray) -> IntArray:
    """Return how many leaves stand at or below each node, shape (nodes,)."""
    upward = parents.tolist()
    leaves = [0] * len(upward)
    for v in range(len(upward) - 1, -1, -1):
        leaves[v] = max(leaves[v], 1)
        if v > 0:
            leaves[upward[v]] += leaves[v]
    return np.array(leaves, dtype=np.int64)


def subtree_spans(parents: IntArray, needs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give every node a stretch of one line, its children's stretches inside its own.

    `needs` is the least length of each node's own stretch. Returns the centres and the lengths, all
    of shape (nodes,). The root's begins at 0; those of siblings do not overlap and follow the order
    of their indices.
    """
    upward = parents.tolist()
    count = len(upward)
    lengths = needs.tolist()
    inner = [0.0] * count
    for v in range(count - 1, 0, -1):
        lengths[v] = max(lengths[v], inner[v])
        inner[upward[v]] += lengths[v]
    lengths[0] = max(lengths[0], inner[0])
    centres = [0.0] * count
    centres[0] = lengths[0] / 2.0
    # Where the next child of each node begins; its children as a block are centred.
    begin = [0.0] * count
    begin[0] = centres[0] - inner[0] / 2.0
    for v in range(1, count):
        parent = upward[v]
        centres[v] = begin[parent] + lengths[v] / 2.0
        begin[parent] += lengths[v]
        begin[v] = centres[v] - inner[v] / 2.0
    return np.array(centres), np.array(lengths)


def layered_layout(
    parents: IntArray, *, widths: FloatArray, heights: FloatArray, link_widths: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Lay a tree out from left to right, one column per depth.

    `widths` and `heights` are those of the box of each node, margins included, and `link_widths`
    the room that its incoming link needs before its column. Returns the left edge and the
    vertical middle of each box. All have the shape (nodes,).
    """
    depths = node_depths(parents)
    columns = int(depths.max()) + 1
    column_widths = np.zeros(columns)
    gap_widths = np.zeros(columns)
    np.maximum.at(column_widths, depths, widths)
    np.maximum.at(gap_widths, depths[1:], link_widths[1:])
    column_lefts = np.cumsum(column_widths + gap_widths) - column_widths
    middles, _ = subtree_spans(parents, heights)
    return column_lefts[depths], middles


def radial_layout(
    parents: IntArray, *, diameters: FloatArray, ring_gap: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lay a tree out on rings around its root, one ring per depth.

    Every node gets an arc as long as its diameter at its own ring, and a subtree the
    sum of the arcs of its leaves: crowded branches get the room. The rings are the
    smallest of their kind on which all arcs fit. Inner rings stand farther apart:
    leaves close to the root need the widest angles, and equal steps would pay for
    them with paper at the rim.

    `diameters` is the room that each node needs on its ring. Returns the radius and the angle of
    each node around the root, in radians within one turn, and the angle that its subtree has to
    itself.
    """
    depths = node_depths(parents)
    rings = _rings(parents, depths, diameters, ring_gap)
    needs = np.zeros(len(parents))
    needs[1:] = diameters[1:] / rings[depths[1:]]
    centres, lengths = subtree_spans(parents, needs)
    # Should some inner node need more than its leaves, one factor still makes room:
    # needs shrink as the rings grow.
    turn = float(lengths[0])
    stretch = _FULL_TURN / turn if turn > 0.0 else 0.0
    scale = max(1.0, turn / _FULL_TURN)
    return rings[depths] * scale, centres * stretch, lengths * stretch


def _rings(
    parents: IntArray, depths: IntArray, diameters: FloatArray, ring_gap: float
) -> FloatArray:
    """Return a radius per depth such that the leaves' arcs fill at most one turn.

    Ring `d` is `ring_gap` plus a multiple of 1 / d outside the one before it; the
    multiple is the least that does, found by halving.
    """
    leaf = np.ones(len(parents), dtype=np.bool_)
    leaf[parents[1:]] = False
    arcs = np.bincount(depths[leaf], weights=diameters[leaf])[1:]
    steps = np.arange(1, len(arcs) + 1, dtype=np.float64)
    plain, extra = ring_gap * steps, np.cumsum(1.0 / steps)
    least, enough = 0.0, float(arcs.sum()) / _FULL_TURN
    for _ in range(40):
        multiple = (least + enough) / 2.0
        if float((arcs / (plain + multiple * extra)).sum()) > _FULL_TURN:
            least = multiple
        else:
            enough = multiple
    return np.concatenate(([0.0], plain + enough * extra))
