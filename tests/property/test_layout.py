"""Layouts keep every node apart, every parent among its children, and depth visible."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from distributary.arrays import FloatArray, IntArray
from distributary.drawing.layout import (
    layered_layout,
    node_depths,
    radial_layout,
    subtree_leaves,
    subtree_spans,
)

NODES_MAX = 40
SLACK = 1e-6


@st.composite
def sized_trees(draw: st.DrawFn) -> tuple[IntArray, FloatArray]:
    """Draw a tree of any shape, and a size per node."""
    count = draw(st.integers(1, NODES_MAX))
    reach = draw(st.sampled_from([1, 3, NODES_MAX]))
    parents = [-1] + [draw(st.integers(max(0, v - reach), v - 1)) for v in range(1, count)]
    sizes = draw(st.lists(st.floats(1.0, 50.0), min_size=count, max_size=count))
    return np.array(parents, dtype=np.int64), np.array(sizes)


def children_of(parents: IntArray, node: int) -> list[int]:
    return np.flatnonzero(parents == node).tolist()


@given(sized_trees())
def test_depths_and_leaves_agree_with_their_definitions(tree: tuple[IntArray, FloatArray]) -> None:
    parents, _ = tree
    depths, leaves = node_depths(parents), subtree_leaves(parents)
    assert depths[0] == 0
    for v in range(len(parents)):
        below = children_of(parents, v)
        assert leaves[v] == (sum(leaves[c] for c in below) if below else 1)
        assert all(depths[c] == depths[v] + 1 for c in below)


@given(sized_trees())
def test_spans_meet_every_need_and_nest_without_overlap(tree: tuple[IntArray, FloatArray]) -> None:
    parents, needs = tree
    centres, lengths = subtree_spans(parents, needs)
    starts, ends = centres - lengths / 2.0, centres + lengths / 2.0
    assert bool((lengths >= needs - SLACK).all())
    assert abs(starts[0]) <= SLACK
    for v in range(len(parents)):
        below = children_of(parents, v)
        for left, right in pairwise(below):
            assert ends[left] <= starts[right] + SLACK
        if below:
            assert starts[v] <= starts[below[0]] + SLACK
            assert ends[below[-1]] <= ends[v] + SLACK
            assert centres[below[0]] - SLACK <= centres[v] <= centres[below[-1]] + SLACK


@given(sized_trees())
def test_boxes_of_a_layered_layout_do_not_overlap(tree: tuple[IntArray, FloatArray]) -> None:
    parents, sizes = tree
    widths, links = sizes, sizes[::-1].copy()
    lefts, middles = layered_layout(parents, widths=widths, heights=sizes, link_widths=links)
    for v in range(len(parents)):
        if v > 0:
            parent = parents[v]
            assert lefts[parent] + widths[parent] + links[v] <= lefts[v] + SLACK
        for w in range(v):
            apart_x = lefts[v] + widths[v] <= lefts[w] + SLACK or lefts[w] + widths[w] <= lefts[v]
            apart_y = abs(middles[v] - middles[w]) >= (sizes[v] + sizes[w]) / 2.0 - SLACK
            assert apart_x or apart_y


@given(sized_trees(), st.floats(1.0, 60.0))
def test_a_radial_layout_grows_with_depth_and_keeps_nodes_apart(
    tree: tuple[IntArray, FloatArray], ring_gap: float
) -> None:
    parents, diameters = tree
    radii, angles, arcs = radial_layout(parents, diameters=diameters, ring_gap=ring_gap)
    depths = node_depths(parents)
    assert radii[0] == 0.0
    assert bool((angles >= -SLACK).all())
    assert bool((angles <= 2.0 * math.pi + SLACK).all())
    for v in range(1, len(parents)):
        assert radii[v] >= radii[parents[v]] + ring_gap - SLACK
        # Each node has an arc of its own, at least as long as it is wide.
        assert arcs[v] * radii[v] >= diameters[v] - SLACK
        for w in range(1, v):
            if depths[v] == depths[w]:
                assert radii[v] == radii[w]
                assert abs(angles[v] - angles[w]) >= (arcs[v] + arcs[w]) / 2.0 - SLACK
    points = np.column_stack((radii * np.cos(angles), radii * np.sin(angles)))
    for v in range(len(parents)):
        others = np.delete(points, v, axis=0)
        assert bool((np.hypot(*(others - points[v]).T) > 0.1).all())


@given(sized_trees())
def test_a_radial_parent_stands_within_the_angles_of_its_children(
    tree: tuple[IntArray, FloatArray],
) -> None:
    parents, diameters = tree
    _, angles, _ = radial_layout(parents, diameters=diameters, ring_gap=20.0)
    for v in range(len(parents)):
        below = children_of(parents, v)
        if below:
            assert angles[below[0]] - SLACK <= angles[v] <= angles[below[-1]] + SLACK
