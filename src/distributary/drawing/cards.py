"""Small trees: a card per node from left to right, everything labelled.

A card names the node, the conversions it runs and the kinds wanted there. A link is a
strand per kind it carries, in the colour of the kind, and with its name where the
strand reaches the card.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.drawing.drawn import DrawnTree
from distributary.drawing.layout import layered_layout
from distributary.drawing.scene import TreeScene
from distributary.drawing.svg import element, number, readable, shortened, text, text_width

__all__ = ["CardLayout", "draw_cards"]

_NAME_SIZE = 13.0
_LINE_SIZE = 11.0
_STRAND_SIZE = 9.5
_LINE_STEP = 18.0
_STRAND_STEP = 14.0
_PORT_STEP = 4.0
_PADDING = 9.0
_CHIP_GAP = 5.0
_CHIP_ROW_WIDTH = 210.0
_CARD_WIDTH_MIN = 84.0
_CARD_GAP = 16.0
_BEND_WIDTH = 64.0
_NODE_CHARACTERS = 26
_KIND_CHARACTERS = 20
_MARGIN = 16.0


class CardLayout:
    """Where cards stand, in columns from left to right; and cards in their places.

    `lefts` and `middles` are the left edge and the vertical middle of each card, shape (nodes,).
    """

    def __init__(
        self,
        parents: IntArray,
        widths: FloatArray,
        heights: FloatArray,
        *,
        gap: float,
        link_widths: FloatArray,
    ) -> None:
        self._widths = widths
        self._heights = heights
        self.lefts, self.middles = layered_layout(
            parents, widths=widths, heights=heights + gap, link_widths=link_widths
        )

    def card(self, v: int, inside: str, role: str) -> str:
        """Return the card of a node in its place, around what is inside."""
        width, height = float(self._widths[v]), float(self._heights[v])
        top = float(self.middles[v] - self._heights[v] / 2.0)
        return element(
            "g",
            element("rect", class_="card", width=width, height=height, rx=7.0) + inside,
            class_=f"node {role}",
            data_node=str(v),
            transform=f"translate({number(float(self.lefts[v]))} {number(top)})",
        )

    def drawn(self, markup: str, margin: float, key: tuple[tuple[str, str], ...]) -> DrawnTree:
        """Return the finished drawing of the cards and what connects them."""
        return DrawnTree(
            markup=markup,
            left=-margin,
            top=-margin,
            width=float((self.lefts + self._widths).max()) + 2.0 * margin,
            height=float((self.middles + self._heights / 2.0).max()) + 2.0 * margin,
            scale=1.0,
            xs=self.lefts + self._widths / 2.0,
            ys=self.middles,
            radii=np.zeros(len(self.lefts)),
            key=key,
        )


@dataclass(frozen=True)
class _Card:
    """The inside of one card, relative to its top left corner."""

    width: float
    height: float
    markup: str


def _dot(colour: str, x: float, y: float) -> str:
    return element("rect", x=x, y=y - 4.0, width=8.0, height=8.0, rx=2.0, fill=colour)


def _conversion(scene: TreeScene, v: int, k: int, top: float) -> tuple[float, str]:
    """Return the width and the markup of the line that says what `k` is made from."""
    origin = int(scene.made_from[v, k])
    middle = top + _LINE_STEP / 2.0
    source = shortened(scene.kinds[origin], _KIND_CHARACTERS)
    target = shortened(scene.kinds[k], _KIND_CHARACTERS)
    x = _PADDING
    parts = [_dot(scene.colours[origin], x, middle)]
    x += 12.0
    parts.append(element("text", text(source), x=x, y=middle + 4.0))
    x += text_width(source, _LINE_SIZE) + 4.0
    parts.append(element("text", "→", x=x, y=middle + 4.0))
    x += 16.0
    parts.append(_dot(scene.colours[k], x, middle))
    x += 12.0
    parts.append(element("text", text(target), x=x, y=middle + 4.0, font_weight="600"))
    x += text_width(target, _LINE_SIZE, bold=True) + _PADDING
    whole = f"{readable(scene.kinds[origin])} → {readable(scene.kinds[k])}"
    parts.append(element("title", text(whole)))
    return x, element("g", "".join(parts), class_=f"made f{k}", data_v=str(v))


def _chips(scene: TreeScene, v: int, top: float) -> tuple[float, float, str]:
    """Return the width, the height and the markup of the kinds held or wanted here."""
    held = [(k, "holds ") for k in np.flatnonzero(scene.held).tolist()] if v == 0 else []
    wanted = [(k, "") for k in np.flatnonzero(scene.wanted[v]).tolist()]
    x, y, widest = _PADDING, top, 0.0
    parts = []
    for k, prefix in held + wanted:
        label = prefix + shortened(scene.kinds[k], _KIND_CHARACTERS)
        width = text_width(label, _LINE_SIZE) + 14.0
        if x > _PADDING and x + width > _CHIP_ROW_WIDTH:
            x, y = _PADDING, y + _LINE_STEP + 1.0
        colour = scene.colours[k]
        outline = element(
            "rect",
            x=x,
            y=y + 1.0,
            width=width,
            height=_LINE_STEP - 3.0,
            rx=7.5,
            fill=colour,
            fill_opacity="0.16",
            stroke=colour,
            stroke_dasharray="3 2" if prefix else "none",
        )
        words = element("text", text(label), x=x + width / 2.0, y=y + 12.5, text_anchor="middle")
        title = element("title", text(prefix + readable(scene.kinds[k])))
        parts.append(
            element(
                "g",
                outline + words + title,
                class_=f"{'held' if prefix else 'wanted'} f{k}",
                data_v=str(v),
            )
        )
        x += width + _CHIP_GAP
        widest = max(widest, x - _CHIP_GAP + _PADDING)
    height = y + _LINE_STEP + 1.0 - top if parts else 0.0
    return widest, height, "".join(parts)


def _card(scene: TreeScene, v: int) -> _Card:
    name = shortened(scene.nodes[v], _NODE_CHARACTERS)
    width = max(_CARD_WIDTH_MIN, text_width(name, _NAME_SIZE, bold=True) + 2.0 * _PADDING)
    parts = [
        element("text", text(name), class_="name", x=_PADDING, y=19.0),
        element("title", text(scene.nodes[v])),
    ]
    y = 27.0
    for k in np.flatnonzero(scene.made[v]).tolist():
        line_width, markup = _conversion(scene, v, k, y)
        width = max(width, line_width)
        parts.append(markup)
        y += _LINE_STEP
    chip_width, chip_height, markup = _chips(scene, v, y)
    parts.append(markup)
    y += chip_height
    return _Card(max(width, chip_width), y + 3.0, "".join(parts))


def _strands(
    scene: TreeScene, v: int, start: tuple[float, float], end: tuple[float, float]
) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return (kind, markup) pairs of the strands into `v`, and of their labels.

    Strands leave the parent close together and spread before the card, so that each
    has room for its name.
    """
    kinds = np.flatnonzero(scene.carried[v]).tolist()
    (x0, y0), (x2, y2) = start, end
    x1, bend = x0 + _BEND_WIDTH, x0 + _BEND_WIDTH / 2.0
    lines, labels = [], []
    for j, k in enumerate(kinds):
        from_y = y0 + j * _PORT_STEP
        to_y = y2 + (j - (len(kinds) - 1) / 2.0) * _STRAND_STEP
        path = (
            f"M{number(x0)} {number(from_y)}C{number(bend)} {number(from_y)} "
            f"{number(bend)} {number(to_y)} {number(x1)} {number(to_y)}H{number(x2)}"
        )
        lines.append((k, f'<path data-v="{v}" d="{path}"/>'))
        label = text(shortened(scene.kinds[k], _KIND_CHARACTERS))
        labels.append((k, element("text", label, x=x1 + 2.0, y=to_y - 4.5)))
    return lines, labels


def draw_cards(scene: TreeScene) -> DrawnTree:
    """Draw a tree of at most some dozens of nodes with everything labelled."""
    count = len(scene.nodes)
    cards = [_card(scene, v) for v in range(count)]
    carried_counts = scene.carried.sum(axis=1)
    # A card is at least as tall as the bundles that enter and leave it.
    leaving = np.bincount(scene.parents[1:], weights=carried_counts[1:], minlength=count)
    heights = np.array([card.height for card in cards])
    heights = np.maximum(heights, carried_counts * _STRAND_STEP + 8.0)
    heights = np.maximum(heights, leaving * _PORT_STEP + 8.0)
    widths = np.array([card.width for card in cards])
    label_widths = np.array(
        [text_width(shortened(name, _KIND_CHARACTERS), _STRAND_SIZE) for name in scene.kinds]
    )
    run_widths = np.where(scene.carried, label_widths, 0.0).max(axis=1, initial=0.0)
    layout = CardLayout(
        scene.parents, widths, heights, gap=_CARD_GAP, link_widths=run_widths + _BEND_WIDTH + 10.0
    )
    lefts, middles = layout.lefts, layout.middles

    # Bundles leave a card in the order of the children they go to.
    port = middles - leaving * _PORT_STEP / 2.0 + _PORT_STEP / 2.0
    faint, lines, labels = [], [], []
    for v in range(1, count):
        parent = int(scene.parents[v])
        right = float(lefts[parent] + widths[parent])
        left, middle = float(lefts[v]), float(middles[v])
        if not scene.reached[v]:
            start = float(middles[parent])
            bend = number(right + _BEND_WIDTH / 2.0)
            faint.append(
                f'<path data-v="{v}" d="M{number(right)} {number(start)}C{bend} {number(start)} '
                f"{bend} {number(middle)} {number(right + _BEND_WIDTH)} {number(middle)}"
                f'H{number(left)}"/>'
            )
            continue
        new_lines, new_labels = _strands(scene, v, (right, float(port[parent])), (left, middle))
        port[parent] += len(new_lines) * _PORT_STEP
        lines += new_lines
        labels += new_labels

    parts = [element("g", "".join(faint), class_="idle-links")]
    for k in scene.shown_kinds:
        strands = "".join(markup for kind, markup in lines if kind == k)
        parts.append(
            element("g", strands, class_=f"strands f{k}", stroke=scene.colours[k], stroke_width=2.4)
        )
    for k in scene.shown_kinds:
        names = "".join(markup for kind, markup in labels if kind == k)
        parts.append(element("g", names, class_=f"labels f{k}"))
    for v, card in enumerate(cards):
        role = "root" if v == 0 else "reached" if scene.reached[v] else "idle"
        parts.append(layout.card(v, card.markup, role))
    return layout.drawn("".join(parts), _MARGIN, _KEY)


_KEY = (
    ('<path class="sample" d="M1 5H23M1 11H23"/>', "sent over a link"),
    (
        '<rect class="sample" x="1" y="2" width="22" height="12" rx="6" fill="none"/>',
        "wanted at the node",
    ),
    (
        '<rect class="sample-fill" x="1" y="4" width="8" height="8" rx="2"/>'
        '<rect class="sample-fill" x="15" y="4" width="8" height="8" rx="2"/>'
        '<path class="sample" d="M10 8H14" stroke-width="1"/>',
        "converted at the node",
    ),
    ('<path class="sample idle-links" d="M1 8H23"/>', "receives nothing"),
)
