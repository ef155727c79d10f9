"""What every page of the map has: its size, the title block, and the strip around a map."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from examples.sample_content.country import Country
from examples.sample_content.sheet import Sheet
from examples.sample_content.symbols import INK, RED
from examples.sample_content.terrain import NORTH_M

__all__ = [
    "BORDER",
    "MARGIN",
    "OFFICE",
    "PAGE_HEIGHT",
    "PAGE_WIDTH",
    "draw_border",
    "draw_header",
]

# A3, landscape.
PAGE_WIDTH, PAGE_HEIGHT = 420 / 25.4 * 72, 297 / 25.4 * 72
MARGIN = 24.0
BORDER = 14.0
OFFICE = "County Emergency Office, Situation Desk"


def _issued(seed: int) -> str:
    day = date(2026, 1, 12) + timedelta(days=seed * 37 % 365)
    return f"{day.day} {day:%B %Y}, 08:30"


def draw_header(
    canvas: Any, land: Country, title: str, subtitle: str, number: int, pages: int
) -> None:
    """Draw the title block along the top of a page."""
    bottom, height = 744.0, 74.0
    canvas.setFillColorRGB(0.10, 0.17, 0.29)
    canvas.rect(MARGIN, bottom, PAGE_WIDTH - 2 * MARGIN, height, stroke=0, fill=1)
    canvas.setFillColorRGB(*RED)
    canvas.rect(MARGIN, bottom, 9, height, stroke=0, fill=1)
    canvas.setFillColorRGB(1, 1, 1)
    canvas.setFont("Helvetica-Bold", 27)
    canvas.drawString(MARGIN + 26, bottom + 38, title)
    canvas.setFont("Helvetica", 12.5)
    canvas.drawString(MARGIN + 26, bottom + 15, subtitle)
    right = PAGE_WIDTH - MARGIN - 18
    canvas.setFont("Helvetica-Bold", 13)
    canvas.drawRightString(right, bottom + 50, f"Issued {_issued(land.seed)}")
    canvas.setFont("Helvetica", 10.5)
    canvas.drawRightString(right, bottom + 33, OFFICE)
    canvas.drawRightString(
        right, bottom + 16, f"Sheet {number} of {pages}. Exercise: imaginary country."
    )


def draw_border(sheet: Sheet) -> None:
    """Draw the strip around a map that says which square is where."""
    canvas, extent = sheet.canvas, sheet.extent
    canvas.setStrokeColorRGB(*INK)
    canvas.setLineWidth(0.6)
    canvas.rect(
        sheet.left - BORDER,
        sheet.bottom - BORDER,
        sheet.right - sheet.left + 2 * BORDER,
        sheet.top - sheet.bottom + 2 * BORDER,
    )
    canvas.setFillColorRGB(*INK)
    canvas.setFont("Helvetica-Bold", 8)
    for column in range(7):
        begin, end = max(column * 1000.0, extent.west), min(column * 1000.0 + 1000, extent.east)
        if end - begin > 150:
            x = sheet.left + ((begin + end) / 2 - extent.west) * sheet.per_metre
            for y in (sheet.top + 4, sheet.bottom - 10):
                canvas.drawCentredString(x, y, "ABCDEFG"[column])
        if extent.west < column * 1000 < extent.east:
            x = sheet.left + (column * 1000 - extent.west) * sheet.per_metre
            canvas.line(x, sheet.top, x, sheet.top + BORDER)
            canvas.line(x, sheet.bottom - BORDER, x, sheet.bottom)
    for row in range(6):
        top = min(NORTH_M - row * 1000.0, extent.north)
        bottom = max(NORTH_M - row * 1000.0 - 1000, extent.south)
        if top - bottom > 150:
            y = sheet.bottom + ((top + bottom) / 2 - extent.south) * sheet.per_metre - 3
            for x in (sheet.left - BORDER / 2, sheet.right + BORDER / 2):
                canvas.drawCentredString(x, y, str(row + 1))
        edge = NORTH_M - row * 1000.0
        if extent.south < edge < extent.north:
            y = sheet.bottom + (edge - extent.south) * sheet.per_metre
            canvas.line(sheet.left - BORDER, y, sheet.left, y)
            canvas.line(sheet.right, y, sheet.right + BORDER, y)
