"""Charts: bars and lines as SVG, for the figures of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from distributary.drawing.palette import colours
from distributary.drawing.svg import element, shortened, text, text_width

__all__ = ["PANEL_WIDTH", "BarChart", "LineChart"]

PANEL_WIDTH = 560.0
_TITLE_SIZE = 15.0
_SIZE = 12.0
_ROW = 22.0
_HEAD = 34.0
_LABELS = 150.0
_FIGURES = 80.0
_PLOT_HEIGHT = 180.0
_AXIS = 24.0


@dataclass(frozen=True)
class BarChart:
    """Rows of bars, each made of parts.

    Attributes
    ----------
    parts
        The names of the parts, each in a colour of its own.
    rows
        (name, the size of each part, what is written beside it).
    """

    title: str
    parts: tuple[str, ...]
    rows: Sequence[tuple[str, tuple[float, ...], str]]

    @property
    def height(self) -> float:
        """How high the chart is."""
        return _HEAD + _ROW * (len(self.rows) + (1 if len(self.parts) > 1 else 0))

    def markup(self) -> str:
        """Return the chart, its upper left corner at (0, 0)."""
        shown = [element("text", text(self.title), class_="title", y=18.0, font_size=_TITLE_SIZE)]
        palette = colours(len(self.parts))
        room = PANEL_WIDTH - _LABELS - _FIGURES
        largest = max((sum(sizes) for _, sizes, _ in self.rows), default=0.0) or 1.0
        for k, (name, sizes, figure) in enumerate(self.rows):
            top = _HEAD + k * _ROW
            label = shortened(name, 22)
            shown.append(
                element(
                    "text",
                    text(label),
                    x=_LABELS - 8.0,
                    y=top + 15.0,
                    font_size=_SIZE,
                    text_anchor="end",
                )
            )
            left = _LABELS
            for size, colour in zip(sizes, palette, strict=True):
                width = room * size / largest
                shown.append(
                    element(
                        "rect", x=left, y=top + 3.0, width=width, height=_ROW - 8.0, fill=colour
                    )
                )
                left += width
            shown.append(
                element(
                    "text",
                    text(figure),
                    class_="quiet",
                    x=left + 6.0,
                    y=top + 15.0,
                    font_size=_SIZE,
                )
            )
        if len(self.parts) > 1:
            shown.append(_legend(self.parts, palette, _HEAD + len(self.rows) * _ROW))
        return "".join(shown)


@dataclass(frozen=True)
class LineChart:
    """One line over time.

    Attributes
    ----------
    points
        (seconds, value) in the order of time.
    """

    title: str
    points: Sequence[tuple[float, float]]

    @property
    def height(self) -> float:
        """How high the chart is."""
        return _HEAD + _PLOT_HEIGHT + _AXIS

    def markup(self) -> str:
        """Return the chart, its upper left corner at (0, 0)."""
        shown = [element("text", text(self.title), class_="title", y=18.0, font_size=_TITLE_SIZE)]
        left, right = 60.0, PANEL_WIDTH
        top, bottom = _HEAD, _HEAD + _PLOT_HEIGHT
        begin, end = self.points[0][0], self.points[-1][0]
        span = (end - begin) or 1.0
        largest = max(value for _, value in self.points) or 1.0
        for share in (0.0, 0.5, 1.0):
            y = bottom - share * (bottom - top)
            shown.append(
                element("line", class_="rule", x1=left, x2=right, y1=y, y2=y, stroke_width=1.0)
            )
            shown.append(_tick(f"{share * largest:.3g}", left - 6.0, y + 4.0, "end"))
        for share in (0.0, 0.5, 1.0):
            x = left + share * (right - left)
            anchor = "end" if share == 1.0 else "middle"
            shown.append(_tick(f"{begin + share * span:.0f} s", x, bottom + 18.0, anchor))
        steps = "L".join(
            f"{left + (at - begin) / span * (right - left):.1f} "
            f"{bottom - value / largest * (bottom - top):.1f}"
            for at, value in self.points
        )
        shown.append(
            element("path", d=f"M{steps}", fill="none", stroke=colours(1)[0], stroke_width=2.0)
        )
        return "".join(shown)


def _tick(words: str, x: float, y: float, anchor: str) -> str:
    return element(
        "text", text(words), class_="quiet", x=x, y=y, font_size=_SIZE - 1.0, text_anchor=anchor
    )


def _legend(names: Sequence[str], palette: Sequence[str], top: float) -> str:
    shown, left = [], _LABELS
    for name, colour in zip(names, palette, strict=True):
        shown.append(element("rect", x=left, y=top + 5.0, width=10.0, height=10.0, fill=colour))
        shown.append(element("text", text(name), x=left + 15.0, y=top + 14.0, font_size=_SIZE))
        left += 30.0 + text_width(name, _SIZE)
    return "".join(shown)
