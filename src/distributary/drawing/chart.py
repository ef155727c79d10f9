"""Charts with labelled axes: bars by name, and lines over time, as SVG and as HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import ClassVar, Protocol

from distributary.arguments import checked_fields
from distributary.drawing.embedded import embedded
from distributary.drawing.palette import SAFE_COLOUR_COUNT, colours
from distributary.drawing.picture import (
    MARGIN,
    is_svg,
    svg_file,
    svg_rules,
    titled_svg,
    write_picture,
)
from distributary.drawing.svg import element, number, shortened, text, text_width

__all__ = [
    "BARS_MAX",
    "CHART_WIDTH",
    "LINES_MAX",
    "Bars",
    "Charts",
    "Lines",
    "Panel",
    "Window",
    "panels_page",
]

BARS_MAX = 30
"""The most bars that are drawn in one panel: more cannot be read."""
LINES_MAX = SAFE_COLOUR_COUNT
"""The most lines, so that colour-blind eyes tell them apart."""

CHART_WIDTH = 480.0
"""How wide a panel is."""

_HEAD = 30.0
_SIZE = 12.0
_ROW = 20.0
_LABELS = 150.0
_FOOT = 62.0
_PLOT = 220.0
_RIGHT = 18.0
_TICKS = 4
_FIGURES = 64.0
_WINDOW_LINES = 4
_TITLE = 76.0
_GAP = 28.0


@checked_fields
@dataclass(frozen=True)
class Bars:
    """A panel of horizontal bars.

    Attributes
    ----------
    title
        What is shown.
    axis
        What the length of a bar is, with its unit.
    parts
        What bars are made of, each in a colour of its own.
    rows
        (name, the length of each part), the most important first.
    figures
        What is written beside each bar, if anything.
    """

    width: ClassVar[float] = CHART_WIDTH

    title: str
    axis: str
    parts: tuple[str, ...]
    rows: Sequence[tuple[str, tuple[float, ...]]]
    figures: Sequence[str] = ()

    @property
    def height(self) -> float:
        """How high the panel is."""
        return _HEAD + _ROW * len(self.rows) + _FOOT

    def markup(self) -> str:
        """Return the panel, its upper left corner at (0, 0)."""
        shown = [_title(self.title)]
        bottom = _HEAD + _ROW * len(self.rows)
        ticks = _ticks(max((sum(sizes) for _, sizes in self.rows), default=0.0))
        room = CHART_WIDTH - _LABELS - (_FIGURES if self.figures else _RIGHT)
        for tick, figure in zip(ticks, _figures(ticks), strict=True):
            x = _LABELS + room * tick / ticks[-1]
            shown.append(_rule(x, x, _HEAD, bottom))
            shown.append(_words(figure, x, bottom + 16.0, "middle"))
        palette = colours(len(self.parts))
        for at, (name, sizes) in enumerate(self.rows):
            top = _HEAD + at * _ROW
            shown.append(_words(shortened(name, 22), _LABELS - 8.0, top + 14.0, "end", dark=True))
            left = _LABELS
            for size, colour in zip(sizes, palette, strict=True):
                width = room * size / ticks[-1]
                shown.append(
                    element(
                        "rect", x=left, y=top + 3.0, width=width, height=_ROW - 6.0, fill=colour
                    )
                )
                left += width
            if self.figures:
                shown.append(_words(self.figures[at], left + 6.0, top + 14.0, "start"))
        shown.append(_words(self.axis, _LABELS + room / 2.0, bottom + 34.0, "middle"))
        if len(self.parts) > 1:
            shown.append(_legend(self.parts, palette, bottom + 52.0))
        return "".join(shown)


@dataclass(frozen=True)
class Window:
    """From when to when something was so, and what."""

    begin: float
    end: float
    name: str


@checked_fields
@dataclass(frozen=True)
class Lines:
    """A panel of lines over time.

    Attributes
    ----------
    title
        What is shown.
    axis
        What the height of a line is, with its unit.
    time_axis
        What time is counted from, and in which unit.
    lines
        (name, points of time and value, in the order of time).
    windows
        What is marked on the axis of time.
    """

    width: ClassVar[float] = CHART_WIDTH

    title: str
    axis: str
    time_axis: str
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]
    windows: Sequence[Window] = ()

    @property
    def height(self) -> float:
        """How high the panel is."""
        return _HEAD + _PLOT + _FOOT + 18.0 * ((len(self.lines) - 1) // 4)

    def markup(self) -> str:
        """Return the panel, its upper left corner at (0, 0)."""
        left, right, bottom = 62.0, CHART_WIDTH - _RIGHT, _HEAD + _PLOT
        times = [time for _, points in self.lines for time, _ in points]
        values = [value for _, points in self.lines for _, value in points]
        across = _ticks(max(times, default=0.0))
        up = _ticks(max(values, default=0.0), min(values, default=0.0))

        def x_of(time: float) -> float:
            return left + (right - left) * time / across[-1]

        def y_of(value: float) -> float:
            return bottom - _PLOT * (value - up[0]) / (up[-1] - up[0])

        shown = [_title(self.title), _marked(self.windows, x_of, left, right)]
        for value, figure in zip(up, _figures(up), strict=True):
            shown.append(_rule(left, right, y_of(value), y_of(value)))
            shown.append(_words(figure, left - 6.0, y_of(value) + 4.0, "end"))
        for time, figure in zip(across, _figures(across), strict=True):
            shown.append(_words(figure, x_of(time), bottom + 16.0, "middle"))
        middle = _HEAD + _PLOT / 2.0
        turned = f"rotate(-90 12 {number(middle)})"
        shown.append(_words(self.axis, 12.0, middle, "middle", transform=turned))
        shown.append(_words(self.time_axis, (left + right) / 2.0, bottom + 34.0, "middle"))
        palette = colours(len(self.lines))
        for (_, points), colour in zip(self.lines, palette, strict=True):
            steps = "L".join(
                f"{number(x_of(time))} {number(y_of(value))}" for time, value in points
            )
            shown.append(
                element("path", d=f"M{steps}", fill="none", stroke=colour, stroke_width=1.6)
            )
        if len(self.lines) > 1:
            shown.append(_legend([name for name, _ in self.lines], palette, bottom + 52.0))
        return "".join(shown)


@checked_fields
@dataclass(frozen=True)
class Charts:
    """Panels below a title, the first ones first."""

    title: str
    subtitle: str
    panels: tuple[Bars | Lines, ...]

    def svg(self) -> str:
        """Return a standalone SVG document, panels in two columns if there are several."""
        columns = min(2, len(self.panels))
        tops, inside = [_TITLE] * columns, []
        for at, panel in enumerate(self.panels):
            x = MARGIN + (at % columns) * (CHART_WIDTH + _GAP)
            y = tops[at % columns]
            placed = f"translate({number(x)} {number(y)})"
            inside.append(element("g", panel.markup(), transform=placed))
            tops[at % columns] += panel.height + _GAP
        head = max(text_width(self.title, 20.0, bold=True), text_width(self.subtitle, 13.0))
        width = max(columns * (CHART_WIDTH + _GAP) - _GAP, head) + 2.0 * MARGIN
        return svg_file(
            titled_svg(self.title, self.subtitle, inside, width=width, height=max(tops))
        )

    def html(self) -> str:
        """Return a page that needs nothing but a browser: panels beside each other as they fit."""
        return panels_page(self.title, self.subtitle, self.panels)

    def write(self, path: Path | str, *, option: str) -> None:
        """Write the charts to a file, as its suffix says, whole or not at all.

        `option` is what the caller calls `path`, for the error message.
        """
        svg = is_svg(path, option=option, stem="rates")
        write_picture(self.svg() if svg else self.html(), path, option=option)

    def _repr_html_(self) -> str:
        return embedded(self.svg(), f"{self.title}. {self.subtitle}")


class Panel(Protocol):
    """One part of a view, its upper left corner at (0, 0)."""

    @property
    def title(self) -> str:
        """What is shown."""

    @property
    def width(self) -> float:
        """How wide it is."""

    @property
    def height(self) -> float:
        """How high it is."""

    def markup(self) -> str:
        """Return what it shows."""


def panels_page(title: str, subtitle: str, panels: Iterable[Panel]) -> str:
    """Return an HTML page that needs nothing but a browser: panels side by side as they fit.

    One that is wider than a chart has a row of its own.
    """
    charts = files("distributary.drawing").joinpath("charts.css").read_text("utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    framed = "".join(
        element(
            "section",
            element(
                "svg",
                element("title", text(panel.title)) + panel.markup(),
                viewBox=f"0 0 {number(panel.width)} {number(panel.height)}",
                width=panel.width,
                role="img",
            ),
            class_="wide" if panel.width > CHART_WIDTH else "panel",
        )
        for panel in panels
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{element('title', text(title))}{element('style', svg_rules() + charts)}</head>\n<body>"
        f"{element('h1', text(title))}{element('p', text(subtitle))}"
        f"{element('main', framed)}</body></html>\n"
    )


def _ticks(largest: float, least: float = 0.0) -> list[float]:
    """Return round numbers that span from zero, or from `least` if the values are far from it."""
    low = least if least < 0.0 or largest - least < least else 0.0
    span = largest - low
    if not span > 0.0:
        span = abs(largest) or 1.0
        largest = low + span
    step = span / _TICKS
    magnitude = 10.0 ** math.floor(math.log10(step))
    step = magnitude * next(factor for factor in (1, 2, 5, 10) if factor * magnitude >= step)
    first, last = math.floor(low / step), math.ceil(largest / step - 1e-9)
    return [place * step for place in range(first, last + 1)]


def _figures(ticks: Sequence[float]) -> list[str]:
    """Return the figures along an axis, all in one unit: 0, 0.5 M, 1 M."""
    largest = max(map(abs, ticks))
    for unit, size in ((" G", 1e9), (" M", 1e6), (" k", 1e3)):
        if largest >= 10.0 * size or (largest >= size and unit != " k"):
            return [f"{tick / size:,.4g}{unit if tick else ''}" for tick in ticks]
    return [f"{tick:,.6g}" if largest >= 1e-3 or not tick else f"{tick:.2g}" for tick in ticks]


def _marked(
    windows: Sequence[Window], x_of: Callable[[float], float], left: float, right: float
) -> str:
    """Return a band for each window, its name on the first line that has room for it."""
    bands, words = [], []
    ends = [left] * _WINDOW_LINES
    for window in sorted(windows, key=lambda window: (window.begin, window.end)):
        x0, x1 = (min(max(x_of(at), left), right) for at in (window.begin, window.end))
        told = f"{window.name}, {window.begin:g} to {window.end:g} s"
        bands.append(
            element(
                "rect",
                element("title", text(told)),
                class_="window",
                x=x0,
                y=_HEAD,
                width=max(x1 - x0, 1.5),
                height=_PLOT,
            )
        )
        line = next((k for k, end in enumerate(ends) if end <= x0), None)
        width = text_width(window.name, _SIZE - 2.0)
        if line is not None and x0 + width <= right:
            ends[line] = x0 + width + 6.0
            y = _HEAD + 10.0 + 12.0 * line
            words.append(element("text", text(window.name), x=x0 + 3.0, y=y, font_size=_SIZE - 2.0))
    return "".join(bands) + element("g", "".join(words), class_="quiet")


def _title(words: str) -> str:
    return element("text", text(words), class_="title", y=14.0, font_size=14.0)


def _rule(x1: float, x2: float, y1: float, y2: float) -> str:
    return element("line", class_="rule", x1=x1, x2=x2, y1=y1, y2=y2, stroke_width=1.0)


def _words(
    words: str, x: float, y: float, anchor: str, *, dark: bool = False, transform: str | None = None
) -> str:
    more = {"class_": "" if dark else "quiet"} | ({"transform": transform} if transform else {})
    return element("text", text(words), x=x, y=y, font_size=_SIZE, text_anchor=anchor, **more)


def _legend(names: Sequence[str], palette: Sequence[str], top: float) -> str:
    """Return colours and what they stand for, as many in a row as fit."""
    shown, left = [], 0.0
    for name, colour in zip(names, palette, strict=True):
        label = shortened(name, 18)
        width = 30.0 + text_width(label, _SIZE)
        if left + width > CHART_WIDTH and left > 0.0:
            left, top = 0.0, top + 18.0
        shown.append(element("rect", x=left, y=top - 9.0, width=10.0, height=10.0, fill=colour))
        shown.append(element("text", text(label), x=left + 15.0, y=top, font_size=_SIZE))
        left += width
    return "".join(shown)
