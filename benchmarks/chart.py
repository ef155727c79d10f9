"""A chart of lines as SVG, for those who would rather look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from distributary.drawing.palette import colours
from distributary.drawing.svg import element, text, text_width

__all__ = ["chart_svg"]

_WIDTH, _HEIGHT = 720.0, 380.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 160.0, 44.0, 52.0
_INK, _GRID, _PAPER = "#222222", "#dddddd", "#ffffff"
_TICKS = 6
_FONT_SIZE = 12.0
_LEGEND_STEP = 20.0


def chart_svg(chart: dict[str, Any]) -> str:
    """Return a stored chart as an SVG document.

    The y axis begins at zero. The x axis begins there too, unless the chart says that its
    x values double: then it is logarithmic with one tick for each of them.
    """
    lines = chart["lines"]
    xs = sorted({x for line in lines for x, _ in line["points"]})
    y_ticks = _round_ticks(max(y for line in lines for _, y in line["points"]))
    x_ticks = xs if chart["x_doubling"] else _round_ticks(xs[-1])

    def across(x: float) -> float:
        if chart["x_doubling"]:
            share = math.log(x / x_ticks[0]) / math.log(x_ticks[-1] / x_ticks[0])
        else:
            share = x / x_ticks[-1]
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def down(y: float) -> float:
        return _HEIGHT - _BOTTOM - y / y_ticks[-1] * (_HEIGHT - _TOP - _BOTTOM)

    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [element("rect", x=0, y=0, width=_WIDTH, height=_HEIGHT, fill=_PAPER)]
    parts.append(_label(chart["title"], _LEFT, 24, weight="bold"))
    for y in y_ticks:
        parts.append(_line([(_LEFT, down(y)), (right, down(y))], _GRID, 1))
        parts.append(_label(f"{y:,g}", _LEFT - 8, down(y) + 4, anchor="end"))
    for x in x_ticks:
        parts.append(_line([(across(x), bottom), (across(x), bottom + 5)], _INK, 1))
        parts.append(_label(f"{x:,g}", across(x), bottom + 20, anchor="middle"))
    parts.append(_line([(_LEFT, bottom), (right, bottom)], _INK, 1))
    parts.append(_label(chart["x_label"], (_LEFT + right) / 2, bottom + 40, anchor="middle"))
    turned = f"rotate(-90 16 {(_TOP + bottom) / 2:g})"
    middle = (_TOP + bottom) / 2
    parts.append(_label(chart["y_label"], 16, middle, anchor="middle", transform=turned))
    palette = colours(1 + max(line["colour"] for line in lines))
    for place, line in enumerate(lines):
        colour = palette[line["colour"]]
        points = [(across(x), down(y)) for x, y in line["points"]]
        parts.append(_line(points, colour, 2, dashed=line["dashed"]))
        y = _TOP + 10 + place * _LEGEND_STEP
        parts.append(_line([(right + 12, y), (right + 40, y)], colour, 2, dashed=line["dashed"]))
        parts.append(_label(line["name"], right + 46, y + 4))
        assert right + 46 + text_width(line["name"], _FONT_SIZE) <= _WIDTH, line["name"]
    return (
        element(
            "svg",
            "\n" + "\n".join(parts) + "\n",
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
            role="img",
            aria_label=chart["title"],
        )
        + "\n"
    )


def _round_ticks(largest: float) -> list[float]:
    """Return round numbers from zero to `largest` or just above it."""
    step = max(largest, 1e-9) / _TICKS
    magnitude = 10.0 ** math.floor(math.log10(step))
    step = magnitude * next(factor for factor in (1, 2, 5, 10) if factor * magnitude >= step)
    return [place * step for place in range(math.ceil(largest / step - 1e-9) + 1)]


def _line(
    points: Sequence[tuple[float, float]], colour: str, width: float, *, dashed: bool = False
) -> str:
    written = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = {"stroke_dasharray": "6 4"} if dashed else {}
    return element(
        "polyline", points=written, fill="none", stroke=colour, stroke_width=width, **dashes
    )


def _label(
    content: str,
    x: float,
    y: float,
    *,
    anchor: str = "start",
    weight: str = "normal",
    transform: str | None = None,
) -> str:
    turned = {} if transform is None else {"transform": transform}
    return element(
        "text",
        text(content),
        x=x,
        y=y,
        fill=_INK,
        font_family="sans-serif",
        font_size=_FONT_SIZE,
        font_weight=weight,
        text_anchor=anchor,
        **turned,
    )
