"""Trees as outlines: a row per node, children below their parent and further in.

Where cards side by side would be too small to read, rows use the page: they run down it, and on in
as many columns as make them largest. What comes from a parent in an earlier column comes from
the top of the next, where a word says below which node the tree goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.drawing.drawn import DrawnTree, page_scale
from distributary.drawing.layout import node_depths
from distributary.drawing.svg import element, number, shortened, text

__all__ = ["FIRST_LINE", "LINE_STEP", "Outline", "Row"]

FIRST_LINE = 12.0
"""The middle of the first line of a row, below its top."""
LINE_STEP = 19.0

_ROW_GAP = 4.0
_COLUMN_GAP = 34.0
_COLUMNS_MAX = 5
_INDENT = 20.0
_LANE_STEP = 4.0
_PORT_STEP = 3.6
_MARGIN = 18.0
# What the top of a column needs to say where the tree goes on.
_BELOW = 22.0
_BELOW_CHARACTERS = 24


@dataclass(frozen=True)
class Row:
    """What stands in the row of one node, relative to its top left corner."""

    width: float
    lines: int
    markup: str

    @property
    def height(self) -> float:
        """How high it is."""
        return self.lines * LINE_STEP + 5.0


class Outline:
    """Where rows stand, and what connects them.

    Parameters
    ----------
    parents
        Index 0 is the root with parent -1, `parents[v] < v`, shape (nodes,).
    names
        The nodes, as somebody wrote them: nothing in here is trusted.
    carried
        `carried[v, k]`: does the link into `v` carry kind `k`? A link has a line for each.
    """

    def __init__(
        self,
        parents: IntArray,
        names: Sequence[str],
        rows: Sequence[Row],
        carried: BoolArray,
    ) -> None:
        self._parents = parents
        self._names = names
        self._rows = rows
        self._carried = carried
        count = len(parents)
        self._order = _preorder(parents)
        # Each kind that a parent sends to some child has a lane of its own below it.
        sent = np.zeros_like(carried)
        np.logical_or.at(sent, parents[1:], carried[1:])
        self._lane = np.cumsum(sent, axis=1) - 1
        depths = node_depths(parents)
        lanes = np.zeros(int(depths.max()) + 2)
        np.maximum.at(lanes, depths + 1, sent.sum(axis=1))
        inwards = np.cumsum(np.where(lanes > 0, _INDENT + _LANE_STEP * lanes, _INDENT))
        self._inwards = (inwards - inwards[0])[depths]
        self._heights = np.array([row.height for row in rows])
        right = self._inwards + np.array([row.width for row in rows])
        best, chosen = -1.0, np.zeros(count, dtype=np.int64)
        for columns in range(1, min(_COLUMNS_MAX, count) + 1):
            column = self._columns(columns)
            widths = np.zeros(columns)
            np.maximum.at(widths, column, right)
            scale = page_scale(
                float(widths.sum()) + _COLUMN_GAP * (columns - 1) + 2.0 * _MARGIN,
                float(self._tops(column).max()) + 2.0 * _MARGIN,
            )
            # A further column must be worth the break in the tree.
            if scale > best * 1.02:
                best, chosen = scale, column
        self._column = chosen
        widths = np.zeros(int(chosen.max()) + 1)
        np.maximum.at(widths, chosen, right)
        self._column_lefts = np.cumsum(widths + _COLUMN_GAP) - widths - _COLUMN_GAP
        self.lefts: FloatArray = self._column_lefts[chosen] + self._inwards
        self.tops: FloatArray = self._tops(chosen)

    def _columns(self, columns: int) -> IntArray:
        """Return the column of each node, for so many of about the same height."""
        taken = np.cumsum((self._heights + _ROW_GAP)[self._order])
        column = np.zeros(len(self._order), dtype=np.int64)
        share = taken[-1] / columns
        column[self._order] = np.minimum(((taken - 1.0) // share).astype(np.int64), columns - 1)
        return column

    def _tops(self, column: IntArray) -> FloatArray:
        tops = np.zeros(len(column))
        below: dict[int, float] = {}
        for v in self._order.tolist():
            at = below.get(int(column[v]), 0.0 if column[v] == 0 else _BELOW)
            tops[v] = at
            below[int(column[v])] = at + float(self._heights[v]) + _ROW_GAP
        return tops

    def links(self) -> list[tuple[int, int | None, str]]:
        """Return (node, kind, path) for each line into a node; kind None for one that idles."""
        drawn: list[tuple[int, int | None, str]] = []
        # How far down the line of each kind below each parent has been drawn, by column.
        reached: dict[tuple[int, int | None, int], float] = {}
        for v in self._order.tolist()[1:]:
            parent, column = int(self._parents[v]), int(self._column[v])
            here = column == self._column[parent]
            left = float(self._column_lefts[column] + self._inwards[parent])
            top = float(self.tops[parent] + self._heights[parent]) if here else 0.0
            kinds = np.flatnonzero(self._carried[v]).tolist()
            for j, k in enumerate(kinds or [None]):
                lane = 0 if k is None else int(self._lane[parent, k])
                x = left + 10.0 + _LANE_STEP * lane
                y = float(self.tops[v]) + FIRST_LINE
                y += (j - (max(len(kinds), 1) - 1) / 2.0) * _PORT_STEP
                key = (parent, k, column)
                start = reached.get(key, top)
                reached[key] = y
                path = f"M{number(x)} {number(start)}V{number(y)}H{number(float(self.lefts[v]))}"
                drawn.append((v, k, path))
        return drawn

    def row(self, v: int, role: str) -> str:
        """Return the row of a node in its place."""
        row = self._rows[v]
        return element(
            "g",
            element("rect", class_="card", width=row.width, height=row.height, rx=5.0) + row.markup,
            class_=f"node {role}",
            data_node=str(v),
            transform=f"translate({number(float(self.lefts[v]))} {number(float(self.tops[v]))})",
        )

    def _continued(self) -> str:
        """Return, above every column but the first, below which node the tree goes on in it."""
        words = []
        for column in range(1, len(self._column_lefts)):
            v = next(v for v in self._order.tolist() if self._column[v] == column)
            name = shortened(self._names[int(self._parents[v])], _BELOW_CHARACTERS)
            at = float(self.lefts[v])
            words.append(element("text", text(f"below {name}"), class_="quiet", x=at, y=14.0))
        return element("g", "".join(words), font_size=11.0)

    def drawn(self, markup: str, key: tuple[tuple[str, str], ...]) -> DrawnTree:
        """Return the finished drawing of the rows and what connects them."""
        widths = np.array([row.width for row in self._rows])
        return DrawnTree(
            markup=element("g", markup + self._continued(), class_="rows"),
            left=-_MARGIN,
            top=-_MARGIN,
            width=float((self.lefts + widths).max()) + 2.0 * _MARGIN,
            height=float((self.tops + self._heights).max()) + 2.0 * _MARGIN,
            scale=1.0,
            xs=self.lefts + widths / 2.0,
            ys=self.tops + self._heights / 2.0,
            radii=np.zeros(len(widths)),
            key=key,
        )


def _preorder(parents: IntArray) -> IntArray:
    """Return the nodes with everything below a node right after it, siblings by index."""
    children: list[list[int]] = [[] for _ in range(len(parents))]
    for v, parent in enumerate(parents.tolist()[1:], start=1):
        children[parent].append(v)
    order, waiting = [], [0]
    while waiting:
        v = waiting.pop()
        order.append(v)
        waiting.extend(reversed(children[v]))
    return np.array(order, dtype=np.int64)
