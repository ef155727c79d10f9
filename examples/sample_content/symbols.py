"""The signs of the map: markers, closures, shelters, and the rest of the legend."""

from __future__ import annotations

import math
from typing import Any

from examples.sample_content.sheet import Colour
from examples.sample_content.wording import Kind

__all__ = ["INK", "RED", "SIGNS", "draw_marker", "draw_north_arrow", "draw_sign"]

INK: Colour = (0.13, 0.15, 0.19)
RED: Colour = (0.80, 0.09, 0.11)
_WHITE: Colour = (1.0, 1.0, 1.0)
_GREEN: Colour = (0.07, 0.48, 0.25)
_BLUE: Colour = (0.10, 0.35, 0.68)
_AMBER: Colour = (0.93, 0.60, 0.06)

SIGNS: dict[str, tuple[str, tuple[Kind, ...]]] = {
    "closure": ("Road or bridge closed", ("bridge", "flooded", "flooded_lane", "railway")),
    "danger": ("Danger, keep away", ("landslip", "power", "trees", "evacuation")),
    "shelter": ("Reception centre", ("reception",)),
    "medical": ("Medical post", ("hospital",)),
    "supply": ("Water or sandbags", ("water", "sandbags")),
    "landing": ("Helicopter landing", ("landing",)),
}
"""What each sign means, and the incidents that it stands for."""


def draw_marker(canvas: Any, number: int, x: float, y: float, *, radius: float) -> None:
    """Draw the red disc with the number of an item."""
    canvas.setFillColorRGB(*RED)
    canvas.setStrokeColorRGB(*_WHITE)
    canvas.setLineWidth(radius * 0.2)
    canvas.circle(x, y, radius, stroke=1, fill=1)
    canvas.setFillColorRGB(*_WHITE)
    size = radius * 1.25
    canvas.setFont("Helvetica-Bold", size)
    canvas.drawCentredString(x, y - 0.36 * size, str(number))


def draw_sign(canvas: Any, sign: str, x: float, y: float, *, size: float) -> None:
    """Draw one of `SIGNS` around a point, `size` points wide."""
    canvas.saveState()
    canvas.translate(x, y)
    canvas.scale(size / 10, size / 10)
    canvas.setLineWidth(0.8)
    canvas.setStrokeColorRGB(*_WHITE)
    if sign == "closure":
        canvas.setFillColorRGB(*RED)
        canvas.circle(0, 0, 5, stroke=1, fill=1)
        canvas.setFillColorRGB(*_WHITE)
        canvas.rect(-3.2, -1, 6.4, 2, stroke=0, fill=1)
    elif sign == "danger":
        _polygon(canvas, [(0, 5.4), (5.4, -4), (-5.4, -4)], _AMBER)
        canvas.setFillColorRGB(*INK)
        canvas.rect(-0.6, -0.7, 1.2, 3.6, stroke=0, fill=1)
        canvas.circle(0, -2.2, 0.75, stroke=0, fill=1)
    elif sign == "shelter":
        _square(canvas, _GREEN)
        _polygon(
            canvas,
            [(0, 3.4), (3.6, 0.2), (2.4, 0.2), (2.4, -3), (-2.4, -3), (-2.4, 0.2), (-3.6, 0.2)],
            _WHITE,
        )
    elif sign == "medical":
        _square(canvas, _GREEN)
        canvas.setFillColorRGB(*_WHITE)
        canvas.rect(-1.1, -3.4, 2.2, 6.8, stroke=0, fill=1)
        canvas.rect(-3.4, -1.1, 6.8, 2.2, stroke=0, fill=1)
    elif sign == "supply":
        _square(canvas, _BLUE)
        path = canvas.beginPath()
        path.moveTo(0, 3.8)
        path.curveTo(0.8, 1.6, 2.8, 0.4, 2.8, -1.2)
        path.curveTo(2.8, -4.2, -2.8, -4.2, -2.8, -1.2)
        path.curveTo(-2.8, 0.4, -0.8, 1.6, 0, 3.8)
        canvas.setFillColorRGB(*_WHITE)
        canvas.drawPath(path, stroke=0, fill=1)
    else:
        canvas.setFillColorRGB(*_BLUE)
        canvas.circle(0, 0, 5, stroke=1, fill=1)
        canvas.setFillColorRGB(*_WHITE)
        canvas.rect(-2.6, -3, 1.4, 6, stroke=0, fill=1)
        canvas.rect(1.2, -3, 1.4, 6, stroke=0, fill=1)
        canvas.rect(-1.4, -0.7, 2.8, 1.4, stroke=0, fill=1)
    canvas.restoreState()


def _square(canvas: Any, colour: Colour) -> None:
    canvas.setFillColorRGB(*colour)
    canvas.roundRect(-5, -5, 10, 10, 1.2, stroke=1, fill=1)


def _polygon(canvas: Any, corners: list[tuple[float, float]], colour: Colour) -> None:
    path = canvas.beginPath()
    path.moveTo(*corners[0])
    for corner in corners[1:]:
        path.lineTo(*corner)
    path.close()
    canvas.setFillColorRGB(*colour)
    canvas.drawPath(path, stroke=1, fill=1)


def draw_north_arrow(canvas: Any, x: float, y: float, *, size: float) -> None:
    """Draw an arrow to the north around a point, with its letter above."""
    canvas.saveState()
    canvas.translate(x, y)
    for side, colour in ((-1, INK), (1, _WHITE)):
        path = canvas.beginPath()
        path.moveTo(0, size / 2)
        path.lineTo(side * size * 0.2, -size / 2)
        path.lineTo(0, -size * 0.3)
        path.close()
        canvas.setFillColorRGB(*colour)
        canvas.setStrokeColorRGB(*INK)
        canvas.setLineWidth(0.7)
        canvas.drawPath(path, stroke=1, fill=1)
    canvas.setFillColorRGB(*INK)
    canvas.setFont("Helvetica-Bold", size * 0.3)
    canvas.drawCentredString(0, size / 2 + math.ceil(size * 0.06), "N")
    canvas.restoreState()
