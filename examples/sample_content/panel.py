"""The column beside a map: paragraphs, lists of items, the legend and the scale."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from examples.sample_content.map_layers import FLOOD, LEAVE, WATER
from examples.sample_content.road_styles import ROADS
from examples.sample_content.sheet import Sheet
from examples.sample_content.symbols import (
    INK,
    RED,
    SIGNS,
    draw_marker,
    draw_north_arrow,
    draw_sign,
)
from examples.sample_content.terrain import EAST_M, NORTH_M, Extent

__all__ = ["Panel"]

# Words, and what stays on one line: numbers of roads and telephones, amounts and units.
_UNBROKEN = re.compile(r"[AB] \d+\S*|0555 \d+ \d+\S*|[\d,.]+ (?:m|cm|km|kV|metres)\b\S*|\S+")
_LEADING = 1.28
_GREY = (0.36, 0.39, 0.44)


class Panel:
    """Text from the top down, in a column of the page.

    Parameters
    ----------
    canvas
        A canvas of ReportLab.
    left, right, top, bottom
        The edges of the column, in points.
    """

    def __init__(
        self, canvas: Any, *, left: float, right: float, top: float, bottom: float
    ) -> None:
        self._canvas = canvas
        self._left = left
        self._right = right
        self._bottom = bottom
        self._at = top

    def heading(self, text: str) -> None:
        """Write a heading with a line under it."""
        canvas = self._canvas
        self._at -= 20
        canvas.setFillColorRGB(*INK)
        canvas.setFont("Helvetica-Bold", 12.5)
        canvas.drawString(self._left, self._at, text)
        canvas.setStrokeColorRGB(*RED)
        canvas.setLineWidth(1.2)
        canvas.line(self._left, self._at - 4.5, self._right, self._at - 4.5)
        self._at -= 9

    def paragraph(self, text: str, *, size: float = 10.0) -> None:
        """Write a paragraph."""
        self._write(text, "Helvetica", size)
        self._at -= 5

    def space(self) -> None:
        """Leave a little room."""
        self._at -= 6

    def descriptions(self, paragraphs: list[tuple[str, str]]) -> None:
        """Write paragraphs with a title each, as large as they fit into the column."""
        for size in (12.5, 12.0, 11.5, 11.0, 10.0, 9.0):
            lines = sum(
                len(self._lines(title, "Helvetica-Bold", size))
                + len(self._lines(text, "Helvetica", size))
                for title, text in paragraphs
            )
            if self._at - lines * size * _LEADING - len(paragraphs) * size > self._bottom:
                break
        for title, text in paragraphs:
            self._write(title, "Helvetica-Bold", size)
            self._write(text, "Helvetica", size)
            self._at -= size

    def item(self, number: int, title: str, where: str) -> None:
        """Write a line of the list of items, with the marker that the map has."""
        from reportlab.pdfbase.pdfmetrics import stringWidth

        canvas = self._canvas
        self._at -= 16.5
        draw_marker(canvas, number, self._left + 8, self._at + 3.4, radius=7)
        canvas.setFillColorRGB(*INK)
        canvas.setFont("Helvetica-Bold", 9.5)
        canvas.drawString(self._left + 21, self._at, title)
        canvas.setFillColorRGB(*_GREY)
        size = 9.0
        while size > 6 and stringWidth(where, "Helvetica", size) > self._right - self._left - 120:
            size -= 0.25
        canvas.setFont("Helvetica", size)
        canvas.drawString(self._left + 120, self._at, where)

    def legend(self) -> None:
        """Draw what lines, areas and signs mean, in two columns."""
        top = self._at
        middle = (self._left + self._right) / 2 + 6
        for index, (name, (width, edge, inside)) in enumerate(reversed(ROADS.items())):
            words = {"trunk": "Trunk road", "main": "Main road", "minor": "Lane"}[name]
            y = self._entry(self._left, top, index, words)
            self._line(self._left, y, edge, width + 0.6)
            self._line(self._left, y, inside, width - 0.6)
        y = self._entry(self._left, top, 3, "Railway")
        self._line(self._left, y, INK, 2.4)
        self._line(self._left, y, (1.0, 1.0, 1.0), 1.5)
        self._canvas.setDash([4, 4])
        self._line(self._left, y, INK, 1.5)
        self._canvas.setDash([])
        areas = (("River", WATER, 1.0), ("Under water", FLOOD, 0.3), ("Area to leave", LEAVE, 0.3))
        for index, (words, colour, opacity) in enumerate(areas, start=4):
            y = self._entry(self._left, top, index, words)
            self._canvas.setFillColorRGB(*colour)
            self._canvas.setFillAlpha(opacity)
            self._canvas.setStrokeColorRGB(*colour)
            self._canvas.setLineWidth(1)
            self._canvas.rect(self._left, y - 5, 26, 10, stroke=1, fill=1)
            self._canvas.setFillAlpha(1)
        for index, (sign, (words, _)) in enumerate(SIGNS.items()):
            y = self._entry(middle, top, index, words)
            draw_sign(self._canvas, sign, middle + 13, y, size=11)
        y = self._entry(middle, top, 6, "Number of an item")
        draw_marker(self._canvas, 1, middle + 13, y, radius=6)
        self._at = top - 7 * 16 - 4

    def _entry(self, left: float, top: float, index: int, words: str) -> float:
        """Write one line of the legend and return the height of its middle."""
        y = top - 12 - index * 16
        self._canvas.setFillColorRGB(*INK)
        self._canvas.setFont("Helvetica", 9.5)
        self._canvas.drawString(left + 34, y - 3.3, words)
        return y

    def _line(
        self, left: float, y: float, colour: tuple[float, float, float], width: float
    ) -> None:
        self._canvas.setStrokeColorRGB(*colour)
        self._canvas.setLineWidth(width)
        self._canvas.setLineCap(0)
        self._canvas.line(left, y, left + 26, y)

    def chart(self, levels: list[float], *, limit: float, now: int) -> None:
        """Draw the height of the river over a day: measured until `now`, then foreseen."""
        canvas = self._canvas
        left, width, height = self._left + 20, self._right - self._left - 24, 74.0
        bottom = self._at - height - 4
        top = 6.0
        spots = [
            (left + hour / (len(levels) - 1) * width, bottom + level / top * height)
            for hour, level in enumerate(levels)
        ]
        canvas.setFont("Helvetica", 7.5)
        canvas.setLineWidth(0.4)
        for metres in range(0, 7, 2):
            y = bottom + metres / top * height
            canvas.setStrokeColorRGB(0.80, 0.82, 0.85)
            canvas.line(left, y, left + width, y)
            canvas.setFillColorRGB(*_GREY)
            canvas.drawRightString(left - 4, y - 2.5, f"{metres} m")
        for hour in range(0, 25, 6):
            x = left + hour / 24 * width
            canvas.drawCentredString(x, bottom - 10, f"{(17 + hour) % 24:02d}:00")
        area = canvas.beginPath()
        area.moveTo(left, bottom)
        for spot in spots[: now + 1]:
            area.lineTo(*spot)
        area.lineTo(spots[now][0], bottom)
        area.close()
        canvas.setFillColorRGB(*FLOOD)
        canvas.setFillAlpha(0.25)
        canvas.drawPath(area, stroke=0, fill=1)
        canvas.setFillAlpha(1)
        for colour, width_points, dash, part in (
            (FLOOD, 1.5, [], spots[: now + 1]),
            (FLOOD, 1.3, [2.5, 2.5], spots[now:]),
            (
                RED,
                1.0,
                [5, 2],
                [
                    (left, bottom + limit / top * height),
                    (left + width, bottom + limit / top * height),
                ],
            ),
        ):
            line = canvas.beginPath()
            line.moveTo(*part[0])
            for spot in part[1:]:
                line.lineTo(*spot)
            canvas.setStrokeColorRGB(*colour)
            canvas.setLineWidth(width_points)
            canvas.setDash(dash)
            canvas.drawPath(line, stroke=1, fill=0)
        canvas.setDash([])
        canvas.setFillColorRGB(*RED)
        canvas.drawString(left + 4, bottom + limit / top * height + 3, "Banks overflow")
        canvas.setFillColorRGB(*INK)
        canvas.circle(*spots[now], 2.4, stroke=0, fill=1)
        canvas.drawString(
            spots[now][0] + 6, bottom + 0.42 * height, f"{levels[now]:.1f} m at 08:00,"
        )
        canvas.drawString(spots[now][0] + 6, bottom + 0.42 * height - 10, "then the forecast")
        self._at = bottom - 14

    def locator(self, extent: Extent) -> None:
        """Draw where on the whole map a detail is."""
        self.heading("Where this is")
        canvas = self._canvas
        width = 150.0
        per_metre = width / EAST_M
        height = NORTH_M * per_metre
        bottom = self._at - height - 5
        canvas.setFillColorRGB(0.93, 0.95, 0.90)
        canvas.setStrokeColorRGB(*INK)
        canvas.setLineWidth(0.8)
        canvas.rect(self._left, bottom, width, height, stroke=1, fill=1)
        canvas.setStrokeColorRGB(0.70, 0.74, 0.70)
        canvas.setLineWidth(0.4)
        for column in range(1, 7):
            x = self._left + column * 1000 * per_metre
            canvas.line(x, bottom, x, bottom + height)
        for row in range(1, 6):
            y = bottom + row * 1000 * per_metre
            canvas.line(self._left, y, self._left + width, y)
        canvas.setStrokeColorRGB(*RED)
        canvas.setLineWidth(1.6)
        canvas.rect(
            self._left + extent.west * per_metre,
            bottom + extent.south * per_metre,
            extent.width * per_metre,
            extent.height * per_metre,
        )
        self._at = bottom - 6

    def scale_bar(self, sheet: Sheet, marks: tuple[int, ...]) -> None:
        """Draw the scale and the north arrow at the bottom of the column."""
        canvas = self._canvas
        y = self._bottom + 26
        for index, (begin, end) in enumerate(pairwise(marks)):
            canvas.setFillColorRGB(*(INK if index % 2 == 0 else (1.0, 1.0, 1.0)))
            canvas.setStrokeColorRGB(*INK)
            canvas.setLineWidth(0.8)
            left = self._left + begin * sheet.per_metre
            canvas.rect(left, y, (end - begin) * sheet.per_metre, 5, stroke=1, fill=1)
        canvas.setFillColorRGB(*INK)
        canvas.setFont("Helvetica", 8.5)
        for mark in marks:
            words = str(mark) if mark != marks[-1] else f"{mark} m"
            canvas.drawCentredString(
                self._left + mark * sheet.per_metre + (0 if mark else 3), y + 9, words
            )
        canvas.setFont("Helvetica", 8)
        canvas.setFillColorRGB(*_GREY)
        canvas.drawString(
            self._left,
            y - 12,
            f"1:{sheet.scale:,.0f}".replace(",", " ")
            + " on A3. Contours every 10 m. Grid squares of 1 km.",
        )
        draw_north_arrow(canvas, self._right - 16, y + 14, size=40)

    def _write(self, text: str, font: str, size: float) -> None:
        canvas = self._canvas
        canvas.setFillColorRGB(*INK)
        canvas.setFont(font, size)
        for line in self._lines(text, font, size):
            self._at -= size * _LEADING
            canvas.drawString(self._left, self._at, line)

    def _lines(self, text: str, font: str, size: float) -> list[str]:
        from reportlab.pdfbase.pdfmetrics import stringWidth

        lines = [""]
        for word in _UNBROKEN.findall(text):
            longer = f"{lines[-1]} {word}".strip()
            if stringWidth(longer, font, size) <= self._right - self._left:
                lines[-1] = longer
            else:
                lines.append(word)
        return lines
