"""Trees of some dozens of nodes: a row per node that says what it gets, makes and wants."""

from __future__ import annotations

import numpy as np

from distributary.drawing.drawn import DrawnTree
from distributary.drawing.outline import FIRST_LINE, LINE_STEP, Outline, Row
from distributary.drawing.scene import TreeScene
from distributary.drawing.svg import element, readable, shortened, text, text_width

__all__ = ["draw_rows"]

_NAME_SIZE = 13.0
_SIZE = 12.0
_PADDING = 9.0
_GAP = 12.0
_CHIP_GAP = 5.0
# Where a row goes on in a second line, whichever of these makes the picture largest.
_WIDTHS = (560.0, 420.0, 320.0)
_NODE_CHARACTERS = 30
_KIND_CHARACTERS = 24


class _Line:
    """The inside of a row, written from left to right."""

    def __init__(self, width_max: float) -> None:
        self._width_max = width_max
        self.parts: list[str] = []
        self.lines = 1
        self.width = 0.0
        self._x = _PADDING
        self._begin = _PADDING

    def put(self, width: float, markup: str, gap: float) -> None:
        """Add something, on the next line where it does not fit on this one."""
        if self._x + width > self._width_max and self._x > self._begin:
            self._x = self._begin
            self.lines += 1
        y = FIRST_LINE + (self.lines - 1) * LINE_STEP
        self.parts.append(element("g", markup, transform=f"translate({self._x:.1f} {y:.1f})"))
        self._x += width + gap
        self.width = max(self.width, self._x - gap)

    def hang(self) -> None:
        """Have further lines begin below what comes next."""
        self._begin = self._x


def draw_rows(scene: TreeScene) -> DrawnTree:
    """Draw a tree as an outline, with everything labelled."""
    return max((_drawn(scene, width) for width in _WIDTHS), key=lambda drawn: drawn.page_scale)


def _drawn(scene: TreeScene, width_max: float) -> DrawnTree:
    count = len(scene.nodes)
    rows = [_row(scene, v, width_max) for v in range(count)]
    outline = Outline(scene.parents, scene.nodes, rows, scene.carried)
    faint: list[str] = []
    lines: dict[int, list[str]] = {k: [] for k in scene.shown_kinds}
    for v, k, path in outline.links():
        (faint if k is None else lines[k]).append(element("path", data_v=str(v), d=path))
    parts = [element("g", "".join(faint), class_="idle-links")]
    for k, strands in lines.items():
        parts.append(
            element(
                "g",
                "".join(strands),
                class_=f"strands f{k}",
                stroke=scene.colours[k],
                stroke_width=2.4,
            )
        )
    for v in range(count):
        role = "root" if v == 0 else "reached" if scene.reached[v] else "idle"
        parts.append(outline.row(v, role))
    return outline.drawn("".join(parts), _KEY)


def _row(scene: TreeScene, v: int, width_max: float) -> Row:
    line = _Line(width_max)
    name = shortened(scene.nodes[v], _NODE_CHARACTERS)
    words = element("text", text(name), class_="name", y=4.5)
    line.put(text_width(name, _NAME_SIZE, bold=True), words, _GAP)
    line.hang()
    for k in np.flatnonzero(scene.carried[v]).tolist():
        width, markup = _named_dot(scene, k)
        line.put(width, element("g", markup, class_=f"labels f{k}"), _GAP)
    for k in np.flatnonzero(scene.made[v]).tolist():
        width, markup = _conversion(scene, v, k)
        line.put(width, element("g", markup, class_=f"made f{k}", data_v=str(v)), _GAP)
    held = [(k, "holds ") for k in np.flatnonzero(scene.held).tolist()] if v == 0 else []
    wanted = [(k, "") for k in np.flatnonzero(scene.wanted[v]).tolist()]
    for k, prefix in held + wanted:
        width, markup = _chip(scene, k, prefix)
        role = "held" if prefix else "wanted"
        line.put(width, element("g", markup, class_=f"{role} f{k}", data_v=str(v)), _CHIP_GAP)
    inside = "".join(line.parts) + element("title", text(scene.nodes[v]))
    return Row(line.width + _PADDING, line.lines, inside)


def _named_dot(scene: TreeScene, k: int) -> tuple[float, str]:
    """Return the width and the markup of a kind: its colour and its name."""
    name = shortened(scene.kinds[k], _KIND_CHARACTERS)
    dot = element("rect", x=0.0, y=-4.0, width=8.0, height=8.0, rx=2.0, fill=scene.colours[k])
    title = element("title", text(readable(scene.kinds[k])))
    return 12.0 + text_width(name, _SIZE), dot + element("text", text(name), x=12.0, y=4.0) + title


def _conversion(scene: TreeScene, v: int, k: int) -> tuple[float, str]:
    first, origin = _named_dot(scene, int(scene.made_from[v, k]))
    second, target = _named_dot(scene, k)
    arrow = element("text", "→", x=first + 3.0, y=4.0)
    moved = element("g", target, transform=f"translate({first + 19.0:.1f} 0)", font_weight="600")
    return first + 19.0 + 1.1 * second, origin + arrow + moved


def _chip(scene: TreeScene, k: int, prefix: str) -> tuple[float, str]:
    """Return the width and the markup of a kind that is wanted or held."""
    label = prefix + shortened(scene.kinds[k], _KIND_CHARACTERS)
    width = text_width(label, _SIZE) + 14.0
    colour = scene.colours[k]
    outline = element(
        "rect",
        y=-8.0,
        width=width,
        height=16.0,
        rx=8.0,
        fill=colour,
        fill_opacity="0.16",
        stroke=colour,
        stroke_dasharray="3 2" if prefix else "none",
    )
    words = element("text", text(label), x=width / 2.0, y=4.0, text_anchor="middle")
    title = element("title", text(prefix + readable(scene.kinds[k])))
    return width, outline + words + title


_KEY = (
    ('<path class="sample" d="M4 1V12H23" fill="none"/>', "sent over a link"),
    ('<rect class="sample-fill" x="8" y="4" width="8" height="8" rx="2"/>', "arrives at the node"),
    (
        '<rect class="sample-fill" x="1" y="4" width="8" height="8" rx="2"/>'
        '<rect class="sample-fill" x="15" y="4" width="8" height="8" rx="2"/>'
        '<path class="sample" d="M10 8H14" stroke-width="1"/>',
        "converted at the node",
    ),
    (
        '<rect class="sample" x="1" y="2" width="22" height="12" rx="6" fill="none"/>',
        "wanted at the node",
    ),
    ('<path class="sample idle-links" d="M4 1V12H23" fill="none"/>', "receives nothing"),
)
