"""Words on the map, where they cover neither each other nor a marker."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from examples.sample_content.paths import Points, lengths
from examples.sample_content.sheet import Colour, Sheet

__all__ = ["Labels", "Lettering"]

_WHITE: Colour = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Lettering:
    """How a label is written.

    Attributes
    ----------
    font, size, colour
        As usual.
    halo
        How far it is outlined in white, to be read on any ground.
    """

    font: str
    size: float
    colour: Colour
    halo: float = 1.6


class Labels:
    """Keeps account of what is covered on one sheet.

    Parameters
    ----------
    sheet
        Where labels go; none reaches over its frame.
    """

    def __init__(self, sheet: Sheet) -> None:
        from reportlab.pdfbase.pdfmetrics import stringWidth

        self._sheet = sheet
        self._covered: list[tuple[float, float, float, float]] = []
        self._width = stringWidth

    def cover(self, left: float, bottom: float, right: float, top: float) -> None:
        """Keep labels out of a rectangle of the page."""
        self._covered.append((left, bottom, right, top))

    def is_free(self, left: float, bottom: float, right: float, top: float) -> bool:
        """Whether a rectangle is inside the frame and covers nothing."""
        sheet = self._sheet
        if left < sheet.left + 2 or right > sheet.right - 2:
            return False
        if bottom < sheet.bottom + 2 or top > sheet.top - 2:
            return False
        return not any(
            left < other[2] and right > other[0] and bottom < other[3] and top > other[1]
            for other in self._covered
        )

    def width(self, text: str, lettering: Lettering) -> float:
        """Return how wide a text is, in points."""
        return float(self._width(text, lettering.font, lettering.size))

    def beside(self, text: str, lettering: Lettering, x: float, y: float, *, reach: float) -> bool:
        """Write next to a point of the page, on whichever side is free; say whether it is."""
        spot = self.room(self.width(text, lettering), lettering.size, x, y, reach=reach)
        if spot is None:
            return False
        left, bottom = spot
        self.cover(
            left - 1, bottom - 1, left + self.width(text, lettering) + 1, bottom + lettering.size
        )
        self.write(text, lettering, left, bottom + 0.15 * lettering.size)
        return True

    def room(
        self, width: float, height: float, x: float, y: float, *, reach: float
    ) -> tuple[float, float] | None:
        """Return the lower left corner of a free rectangle next to a point, if there is one."""
        for far in (1.0, 1.8, 2.8, 4.0):
            away = reach * far
            half = height / 2
            for left, bottom in (
                (x + away, y - half),
                (x - away - width, y - half),
                (x - width / 2, y + away),
                (x - width / 2, y - away - height),
                (x + 0.7 * away, y + 0.7 * away),
                (x + 0.7 * away, y - 0.7 * away - height),
                (x - 0.7 * away - width, y + 0.7 * away),
                (x - 0.7 * away - width, y - 0.7 * away - height),
            ):
                if self.is_free(left - 1, bottom - 1, left + width + 1, bottom + height + 1):
                    return left, bottom
        return None

    def along(self, text: str, lettering: Lettering, line: Points, *, lift: float = 0.0) -> bool:
        """Write along a line of the land, on its straightest free stretch; say whether it is.

        Parameters
        ----------
        lift
            How far above the line, in points; on it unless given.
        """
        on_page = self._sheet.placed(line)
        way = lengths(on_page)
        width = self.width(text, lettering)
        if way[-1] < width * 1.15:
            return False
        best: tuple[float, Points, float] | None = None
        for middle in np.linspace(width * 0.55, way[-1] - width * 0.55, 24):
            at = middle + np.linspace(-width / 2, width / 2, 9)
            points = np.column_stack([np.interp(at, way, on_page[:, axis]) for axis in (0, 1)])
            begin, end = points[0], points[-1]
            chord = end - begin
            length = math.hypot(chord[0], chord[1])
            if length < 0.9 * width:
                continue
            across = (points - begin) @ np.array([-chord[1], chord[0]]) / length
            bent = float(np.abs(across).max())
            if bent > 0.3 * lettering.size + 1 or (best is not None and bent >= best[0]):
                continue
            angle = math.atan2(chord[1], chord[0])
            if not -math.pi / 2 < angle <= math.pi / 2:
                angle += math.pi
            up = np.array([-math.sin(angle), math.cos(angle)])
            middles = points + up * lift
            half = 0.55 * lettering.size
            if all(self.is_free(x - half, y - half, x + half, y + half) for x, y in middles):
                best = bent, middles, angle
        if best is None:
            return False
        _, middles, angle = best
        half = 0.55 * lettering.size
        for x, y in middles:
            self.cover(x - half, y - half, x + half, y + half)
        x, y = middles.mean(axis=0)
        canvas = self._sheet.canvas
        canvas.saveState()
        canvas.translate(round(float(x), 2), round(float(y), 2))
        canvas.rotate(round(math.degrees(angle), 2))
        self.write(text, lettering, -width / 2, -0.35 * lettering.size)
        canvas.restoreState()
        return True

    def write(self, text: str, lettering: Lettering, left: float, base: float) -> None:
        """Write at a position, first the white outline and then the letters."""
        canvas = self._sheet.canvas
        canvas.setFont(lettering.font, lettering.size)
        if lettering.halo:
            # How text is rendered outlasts the text, unlike what ReportLab believes.
            canvas.saveState()
            canvas.setStrokeColorRGB(*_WHITE)
            canvas.setLineWidth(lettering.halo)
            canvas.setLineJoin(1)
            canvas.drawString(round(left, 2), round(base, 2), text, mode=1)
            canvas.restoreState()
        canvas.setFillColorRGB(*lettering.colour)
        canvas.drawString(round(left, 2), round(base, 2), text)
