"""A rectangle of paper that shows a rectangle of land."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from examples.sample_content.paths import Points
from examples.sample_content.terrain import Extent

__all__ = ["POINTS_PER_METRE", "Colour", "Sheet"]

Colour: TypeAlias = tuple[float, float, float]

POINTS_PER_METRE = 72 / 0.0254
"""Of paper. A point is the unit of the page, a seventy-second of an inch."""


class Sheet:
    """A map frame on a page: draws what is given in metres where it belongs on the paper.

    Parameters
    ----------
    canvas
        A canvas of ReportLab.
    extent
        The land it shows.
    left, bottom
        Its corner on the page, in points.
    scale
        Metres of land for each metre of paper.
    """

    def __init__(
        self, canvas: Any, extent: Extent, *, left: float, bottom: float, scale: float
    ) -> None:
        self.canvas = canvas
        self.extent = extent
        self.left = left
        self.bottom = bottom
        self.scale = scale
        self.per_metre = POINTS_PER_METRE / scale
        self.right = left + extent.width * self.per_metre
        self.top = bottom + extent.height * self.per_metre

    def placed(self, points: Points) -> Points:
        """Return where points of the land are on the page, to a hundredth of a point."""
        origin = np.array([self.extent.west, self.extent.south])
        corner = np.array([self.left, self.bottom])
        on_page: Points = np.round((points - origin) * self.per_metre + corner, 2)
        return on_page

    def shows(self, points: Points) -> bool:
        """Whether any of a line or polygon may be visible."""
        low, high = points.min(axis=0), points.max(axis=0)
        extent = self.extent
        return bool(
            low[0] <= extent.east
            and high[0] >= extent.west
            and low[1] <= extent.north
            and high[1] >= extent.south
        )

    def clip(self) -> None:
        """Keep what is drawn from here on inside the frame."""
        frame = self.canvas.beginPath()
        frame.rect(self.left, self.bottom, self.right - self.left, self.top - self.bottom)
        self.canvas.clipPath(frame, stroke=0, fill=0)

    def path(self, lines: Iterable[Points], *, closed: bool) -> Any:
        """Return one path of all the lines or polygons that may be visible."""
        from reportlab.pdfgen.pathobject import PDFPathObject

        # Written as PDF at once: a map has a hundred thousand points, and ReportLab takes
        # its time over each.
        code: list[str] = []
        for line in lines:
            if not self.shows(line):
                continue
            (x, y), *rest = self.placed(line).tolist()
            code.append(f"{x:.2f} {y:.2f} m")
            code += [f"{x:.2f} {y:.2f} l" for x, y in rest]
            if closed:
                code.append("h")
        return PDFPathObject(code=code)

    def stroke(
        self,
        lines: Iterable[Points],
        colour: Colour,
        width: float,
        *,
        dash: tuple[float, ...] = (),
        butt: bool = False,
    ) -> None:
        """Draw lines."""
        canvas = self.canvas
        canvas.setStrokeColorRGB(*colour)
        canvas.setLineWidth(width)
        canvas.setLineCap(0 if butt or dash else 1)
        canvas.setLineJoin(1)
        canvas.setDash(list(dash))
        canvas.drawPath(self.path(lines, closed=False), stroke=1, fill=0)
        canvas.setDash([])

    def fill(
        self,
        polygons: Iterable[Points],
        colour: Colour,
        *,
        opacity: float = 1.0,
        outline: Colour | None = None,
        width: float = 0.4,
    ) -> None:
        """Draw filled polygons; a polygon within another is a hole."""
        canvas = self.canvas
        canvas.setFillColorRGB(*colour)
        canvas.setFillAlpha(opacity)
        if outline is not None:
            canvas.setStrokeColorRGB(*outline)
            canvas.setLineWidth(width)
        path = self.path(polygons, closed=True)
        canvas.drawPath(path, stroke=int(outline is not None), fill=1, fillMode=0)
        canvas.setFillAlpha(1)

    def hatch(
        self, polygons: Iterable[Points], colour: Colour, *, gap: float, width: float
    ) -> None:
        """Draw slanting lines inside polygons."""
        canvas = self.canvas
        canvas.saveState()
        canvas.clipPath(self.path(polygons, closed=True), stroke=0, fill=0, fillMode=0)
        canvas.setStrokeColorRGB(*colour)
        canvas.setLineWidth(width)
        height = self.top - self.bottom
        lines = canvas.beginPath()
        at = self.left - height
        while at < self.right:
            lines.moveTo(round(at, 2), self.bottom)
            lines.lineTo(round(at + height, 2), self.top)
            at += gap
        canvas.drawPath(lines, stroke=1, fill=0)
        canvas.restoreState()
