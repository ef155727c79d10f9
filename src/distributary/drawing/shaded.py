"""Trees in which every node has a measure: colour says how much, size how busy it is.

Where a `TreeScene` shows what kinds of content move through a tree, a `ShadedTree` shows
one figure per node. Small trees are cards from left to right with the figures written on
them, large ones rings of dots that tell theirs when pointed at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.drawing.cards import CardLayout
from distributary.drawing.drawn import LABELLED_MAX, READABLE, DrawnTree
from distributary.drawing.layout import radial_layout, subtree_leaves
from distributary.drawing.outline import FIRST_LINE, LINE_STEP, Outline, Row
from distributary.drawing.palette import colours
from distributary.drawing.picture import Picture
from distributary.drawing.scene import NOT_MADE, TreeScene
from distributary.drawing.svg import element, named, number, shortened, text, text_width

__all__ = ["BANDS_MAX", "ShadedTree", "draw_shaded", "shaded_picture"]

# From cool to hot, out of the colours that stay apart for colour-blind eyes.
SHADES = tuple(colours(8)[k] for k in (0, 4, 1, 5, 7, 6))
BANDS_MAX = len(SHADES)

_NAME_SIZE = 13.0
_LINE_SIZE = 11.0
_ROW_SIZE = 12.0
_LINE_STEP = 16.0
_PADDING = 9.0
_CARD_GAP = 12.0
_LINK_WIDTH = 70.0
_NODE_CHARACTERS = 26
_MARGIN = 20.0

_DOT_RADIUS = 3.0
_DOT_GROWTH = 9.0
_RING_GAP = 40.0
_SCREEN_WIDTH = 1000.0
_NAMED_NODES_MAX = 14


@dataclass(frozen=True, eq=False)
class ShadedTree:
    """A tree and one measure per node.

    Attributes
    ----------
    nodes
        A name per node, as somebody wrote it: nothing in here is trusted.
    parents
        Index 0 is the root with parent -1, `parents[v] < v`, shape (nodes,).
    noun
        What a band of the measure is called, in the singular.
    bands
        What each band of the measure covers, from little to much; at most `BANDS_MAX`.
    band
        Which band each node is in, shape (nodes,); the root's is not looked at.
    busy
        How busy each node is beside the busiest, from 0 to 1, shape (nodes,).
    details
        The figures of each node, as words.
    """

    title: str
    subtitle: str
    nodes: tuple[str, ...]
    parents: IntArray = field(repr=False)
    noun: str
    bands: tuple[str, ...]
    band: IntArray = field(repr=False)
    busy: FloatArray = field(repr=False)
    details: tuple[tuple[str, ...], ...] = field(repr=False)

    def __post_init__(self) -> None:
        count = len(self.nodes)
        assert self.parents.shape == self.band.shape == self.busy.shape == (count,)
        assert len(self.details) == count
        assert 1 <= len(self.bands) <= BANDS_MAX

    def told(self, v: int) -> str:
        """Return the name of a node and its figures on one line."""
        return " · ".join((self.nodes[v], *self.details[v]))


def shaded_picture(tree: ShadedTree) -> Picture:
    """Draw a tree in which every node has a measure; its bands are what the legend explains."""
    return Picture(_scene(tree), draw_shaded(tree))


def _scene(tree: ShadedTree) -> TreeScene:
    count, bands = len(tree.nodes), len(tree.bands)
    carried = np.zeros((count, bands), dtype=np.bool_)
    carried[np.arange(1, count), tree.band[1:]] = True
    nothing = np.zeros((count, bands), dtype=np.bool_)
    return TreeScene(
        title=tree.title,
        subtitle=tree.subtitle,
        nodes=tree.nodes,
        parents=tree.parents,
        kind_noun=tree.noun,
        kinds=tree.bands,
        carried=carried,
        made_from=np.full((count, bands), NOT_MADE, dtype=np.int64),
        wanted=nothing,
        # Bands that no node is in are part of the scale all the same.
        held=np.ones(bands, dtype=np.bool_),
        link_costs=np.zeros(count),
        node_costs=np.zeros(count),
        legend_columns=("nodes",),
        legend_cells=tuple((f"{int(uses):,}",) for uses in carried.sum(axis=0)),
        details=tree.details,
        palette=SHADES[:bands],
    )


def draw_shaded(tree: ShadedTree) -> DrawnTree:
    """Draw a tree: as cards while they can be read on a page, then as rows, or as dots."""
    if len(tree.nodes) > LABELLED_MAX:
        return _dots(tree)
    cards = _cards(tree)
    if cards.page_scale >= READABLE:
        return cards
    return max(cards, _outline(tree), key=lambda drawn: drawn.page_scale)


def _by_band(tree: ShadedTree, role: str, pieces: list[str], colouring: str) -> list[str]:
    """Return the pieces of all nodes but the root in a group per band."""
    groups = []
    for k in range(len(tree.bands)):
        inside = "".join(pieces[v - 1] for v in (np.flatnonzero(tree.band[1:] == k) + 1).tolist())
        if inside:
            groups.append(element("g", inside, class_=f"{role} f{k}", **{colouring: SHADES[k]}))
    return groups


def _link(tree: ShadedTree, v: int, path: str) -> str:
    """Return the link into `v`, heavier the busier `v` is."""
    title = element("title", text(f"{tree.nodes[int(tree.parents[v])]} → {tree.told(v)}"))
    return element("path", title, data_v=str(v), stroke_width=1.2 + 5.0 * tree.busy[v], d=path)


def _cards(tree: ShadedTree) -> DrawnTree:
    """Draw a card per node, columns by depth, the figures on the cards."""
    count = len(tree.nodes)
    names = [shortened(name, _NODE_CHARACTERS) for name in tree.nodes]
    widths = 2.0 * _PADDING + np.array(
        [
            max(
                text_width(name, _NAME_SIZE, bold=True),
                *(text_width(line, _LINE_SIZE) for line in lines),
                60.0,
            )
            for name, lines in zip(names, tree.details, strict=True)
        ]
    )
    heights = np.array([30.0 + _LINE_STEP * len(lines) for lines in tree.details])
    layout = CardLayout(
        tree.parents, widths, heights, gap=_CARD_GAP, link_widths=np.full(count, _LINK_WIDTH)
    )
    lefts, middles = layout.lefts, layout.middles
    links, cards = [], []
    for v in range(count):
        lines = "".join(
            element("text", text(line), x=_PADDING, y=35.0 + _LINE_STEP * index)
            for index, line in enumerate(tree.details[v])
        )
        shade = "none" if v == 0 else SHADES[int(tree.band[v])]
        inside = (
            element("rect", width=5.0, height=float(heights[v]), rx=2.5, fill=shade)
            + element("text", text(names[v]), class_="name", x=_PADDING, y=19.0)
            + lines
            + element("title", text(tree.told(v)))
        )
        cards.append(layout.card(v, inside, "root" if v == 0 else "reached"))
        if v > 0:
            parent = int(tree.parents[v])
            x0, y0 = float(lefts[parent] + widths[parent]), float(middles[parent])
            x1, y1 = float(lefts[v]), float(middles[v])
            bend = number(x1 - _LINK_WIDTH / 2.0)
            path = (
                f"M{number(x0)} {number(y0)}H{number(x1 - _LINK_WIDTH)}"
                f"C{bend} {number(y0)} {bend} {number(y1)} {number(x1)} {number(y1)}"
            )
            links.append(_link(tree, v, path))
    markup = "".join((*_by_band(tree, "strands", links, "stroke"), *cards))
    return layout.drawn(markup, _MARGIN, _key("link"))


def _outline(tree: ShadedTree) -> DrawnTree:
    """Draw a row per node, the figures one after the other."""
    count = len(tree.nodes)
    columns = max(len(lines) for lines in tree.details)
    # Figures of the same kind stand below each other.
    room = [
        max(text_width(lines[at], _ROW_SIZE) for lines in tree.details if at < len(lines))
        for at in range(columns)
    ]
    names = [shortened(name, _NODE_CHARACTERS) for name in tree.nodes]
    rows = []
    for v in range(count):
        shade = "none" if v == 0 else SHADES[int(tree.band[v])]
        x = 2.0 * _PADDING + text_width(names[v], _NAME_SIZE, bold=True)
        parts = [
            element("rect", width=5.0, height=LINE_STEP + 5.0, rx=2.5, fill=shade),
            element("text", text(names[v]), class_="name", x=_PADDING, y=FIRST_LINE + 4.5),
        ]
        for line, width in zip(tree.details[v], room, strict=False):
            parts.append(element("text", text(line), x=x, y=FIRST_LINE + 4.0))
            x += width + _PADDING
        parts.append(element("title", text(tree.told(v))))
        rows.append(Row(x, 1, "".join(parts)))
    carried = np.ones((count, 1), dtype=np.bool_)
    outline = Outline(tree.parents, tree.nodes, rows, carried)
    links = [""] * (count - 1)
    for v, _, path in outline.links():
        links[v - 1] = _link(tree, v, path)
    cards = [outline.row(v, "root" if v == 0 else "reached") for v in range(count)]
    markup = "".join((*_by_band(tree, "strands", links, "stroke"), *cards))
    return outline.drawn(markup, _key("link"))


def _dots(tree: ShadedTree) -> DrawnTree:
    """Draw a dot per node, a ring per depth, larger dots for busier nodes."""
    sizes = _DOT_RADIUS + _DOT_GROWTH * np.sqrt(tree.busy)
    radii, angles, _ = radial_layout(tree.parents, diameters=2.0 * sizes + 3.0, ring_gap=_RING_GAP)
    angles = angles - math.pi / 2.0
    xs, ys = radii * np.cos(angles), radii * np.sin(angles)
    links, dots = [], []
    for v in range(1, len(tree.nodes)):
        parent = int(tree.parents[v])
        x0, y0, x1, y1 = (float(a) for a in (xs[parent], ys[parent], xs[v], ys[v]))
        middle = float(radii[parent] + radii[v]) / 2.0
        # From the source links start out straight: it has no direction of its own.
        first = float(angles[parent] if parent else angles[v])
        last = float(angles[v])
        path = (
            f"M{number(x0)} {number(y0)}C{number(middle * math.cos(first))} "
            f"{number(middle * math.sin(first))} {number(middle * math.cos(last))} "
            f"{number(middle * math.sin(last))} {number(x1)} {number(y1)}"
        )
        links.append(_link(tree, v, path))
        title = element("title", text(tree.told(v)))
        dots.append(element("circle", title, data_v=str(v), cx=x1, cy=y1, r=float(sizes[v])))
    reach = float((radii + sizes).max()) + _MARGIN
    scale = max(1.0, 2.0 * reach / _SCREEN_WIDTH)
    root = element("circle", element("title", text(tree.told(0))), r=float(sizes[0]) + 3.0)
    parts = (
        *_by_band(tree, "strands", links, "stroke"),
        *_by_band(tree, "made", dots, "fill"),
        element("g", root, class_="root", stroke_width=2.5),
        element("g", _names(tree, xs, ys, sizes, scale), class_="names"),
    )
    return DrawnTree(
        markup="".join(parts),
        left=-reach,
        top=-reach,
        width=2.0 * reach,
        height=2.0 * reach,
        scale=scale,
        xs=xs,
        ys=ys,
        radii=sizes,
        key=_key("link, and dot"),
    )


def _names(
    tree: ShadedTree, xs: FloatArray, ys: FloatArray, sizes: FloatArray, scale: float
) -> str:
    """Return the names of the root and of the nodes with most below them."""
    leaves = subtree_leaves(tree.parents)
    inner = np.unique(tree.parents[1:])
    order = inner[np.lexsort((inner, -leaves[inner]))].tolist() or [0]
    places = ((tree.nodes[v], float(xs[v] + sizes[v]) + 5.0 * scale, float(ys[v])) for v in order)
    return named(places, 12.0 * scale, most=_NAMED_NODES_MAX)[1]


def _key(heavy: str) -> tuple[tuple[str, str], ...]:
    return (
        ('<path class="sample" d="M1 8H23" stroke-width="1.2"/>', f"thin {heavy}: idle"),
        ('<path class="sample" d="M1 8H23" style="stroke-width:6"/>', f"thick {heavy}: busiest"),
    )
