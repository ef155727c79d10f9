"""Trees of some dozens of nodes can be read on a page: nothing overlaps, nothing is tiny."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.drawing.drawn import READABLE
from distributary.drawing.outline import Outline, Row
from distributary.drawing.shaded import ShadedTree, draw_shaded
from distributary.drawing.tree_picture import tree_picture
from distributary.placement import place
from distributary.placement.draw import plan_scene
from distributary.placement.generate import generate_problem


@st.composite
def outlines(draw: st.DrawFn) -> tuple[Outline, list[Row], list[int]]:
    count = draw(st.integers(1, 40))
    parents = [-1] + [draw(st.integers(0, v - 1)) for v in range(1, count)]
    rows = [
        Row(float(draw(st.integers(40, 600))), draw(st.integers(1, 3)), "") for _ in range(count)
    ]
    kinds = draw(st.integers(1, 5))
    flags = st.lists(st.booleans(), min_size=kinds, max_size=kinds)
    carried = np.array([draw(flags) for _ in range(count)], dtype=np.bool_)
    names = [f"n{v}" for v in range(count)]
    return Outline(np.array(parents), names, rows, carried), rows, parents


@given(outlines())
def test_rows_do_not_overlap_and_children_stand_further_in(
    drawn: tuple[Outline, list[Row], list[int]],
) -> None:
    outline, rows, parents = drawn
    boxes = [
        (left, top, left + row.width, top + row.height)
        for left, top, row in zip(outline.lefts, outline.tops, rows, strict=True)
    ]
    for v, (left, top, right, bottom) in enumerate(boxes):
        for x0, y0, x1, y1 in boxes[:v]:
            assert right <= x0 or x1 <= left or bottom <= y0 or y1 <= top
    lines = outline.links()
    assert {v for v, _, _ in lines} == set(range(1, len(parents)))
    for v, _, path in lines:
        found = re.fullmatch(r"M(\S+) (\S+)V(\S+)H(\S+)", path)
        assert found is not None
        x, start, y, end = map(float, found.groups())
        assert x < end == pytest.approx(outline.lefts[v], abs=0.06)
        assert start <= y + 0.06
        assert outline.tops[v] <= y <= outline.tops[v] + rows[v].height


@pytest.mark.parametrize("brokers", [30, 60, 100])
@pytest.mark.parametrize("tree", ["routes", "recursive"])
def test_plans_can_be_read_when_the_whole_of_them_is_on_a_page(brokers: int, tree: str) -> None:
    problem = generate_problem("map", seed=brokers, brokers=brokers, matching=1.0, tree=tree)
    drawn = tree_picture(plan_scene(problem, place(problem))).tree
    assert drawn.page_scale >= (READABLE if brokers < 100 else 0.6)
    assert drawn.markup.count('class="name"') == brokers


@pytest.mark.parametrize("count", [30, 60])
def test_trees_of_streams_can_be_read_too(count: int) -> None:
    rng = np.random.default_rng(count)
    parents = np.array([-1, *(int(rng.integers(0, max(1, v // 3))) for v in range(1, count))])
    figures = ("loss 0.0434", "delay 21.55 ms", "load 2.53 %", "1.23 updates/s")
    tree = ShadedTree(
        title="t",
        subtitle="s",
        nodes=tuple(f"n{v:02}" for v in range(count)),
        parents=parents,
        noun="band",
        bands=("little", "much"),
        band=rng.integers(0, 2, size=count),
        busy=rng.random(count),
        details=(figures,) * count,
    )
    drawn = draw_shaded(tree)
    assert drawn.page_scale >= READABLE
    assert drawn.markup.count("updates/s</text>") == count
