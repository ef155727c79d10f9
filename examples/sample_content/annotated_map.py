"""A map of emergencies as a document: the map, what the numbers mean, and details.

Sheet 1 is the whole map with its items. Sheet 2 describes the items, one numbered
paragraph each, beside a map of the town. Every later sheet shows the surroundings of one
item, and further ones are pages of an atlas, so that a document may have any length.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np
from examples.sample_content.country import Country, country, grid_reference
from examples.sample_content.incidents import Incident
from examples.sample_content.map_layers import draw_map
from examples.sample_content.page_frame import (
    BORDER,
    MARGIN,
    OFFICE,
    PAGE_HEIGHT,
    PAGE_WIDTH,
    draw_border,
    draw_header,
)
from examples.sample_content.panel import Panel
from examples.sample_content.sheet import POINTS_PER_METRE, Sheet
from examples.sample_content.terrain import EAST_M, NORTH_M, Extent

from distributary.errors import BadInput

__all__ = ["PAGES_MAX", "map_pdf"]

PAGES_MAX = 200

_SCALE_WHOLE = 25000.0
_SCALE_DETAIL = 10000.0
_ONE_AT_A_TIME = threading.Lock()


def map_pdf(pages: int = 4, seed: int = 0) -> bytes:
    """Return an annotated map for an emergency, as a PDF; the same seed gives the same bytes.

    Parameters
    ----------
    pages
        How many, from 2 (the map and its descriptions) to `PAGES_MAX`. The file grows
        by about a quarter of a megabyte with each.
    seed
        Which country, and what has happened in it.
    """
    if not 2 <= pages <= PAGES_MAX:
        raise BadInput("pages", f"must be from 2 to {PAGES_MAX}, not {pages}")
    from reportlab.pdfgen.canvas import Canvas

    land = country(seed)
    with _binary_streams():
        document = BytesIO()
        canvas = Canvas(
            document,
            pagesize=(PAGE_WIDTH, PAGE_HEIGHT),
            invariant=1,
            pageCompression=1,
            lang="en-GB",
        )
        _draw(canvas, land, pages)
        canvas.save()
    return document.getvalue()


@contextmanager
def _binary_streams() -> Iterator[None]:
    """Keep ReportLab from writing pictures as text, which makes them a quarter larger.

    It has no setting for a single document, so that one document is drawn at a time.
    """
    from reportlab import rl_config

    with _ONE_AT_A_TIME:
        before = rl_config.useA85
        rl_config.useA85 = 0
        try:
            yield
        finally:
            rl_config.useA85 = before


def _draw(canvas: Any, land: Country, pages: int) -> None:
    """Draw all pages."""
    canvas.setTitle(f"Situation map: {land.town.name}")
    canvas.setAuthor(OFFICE)
    canvas.setSubject("Sample content; the country is imaginary")
    _overview(canvas, land, pages)
    _descriptions(canvas, land, pages)
    details = land.incidents[: pages - 2]
    for number, item in enumerate(details, start=3):
        _detail(canvas, land, item, number, pages)
    rest = pages - 2 - len(details)
    for index in range(rest):
        _atlas(canvas, land, index, rest, pages - rest + index + 1, pages)


def _full_sheet(canvas: Any, extent: Extent, scale: float) -> Sheet:
    corner = MARGIN + BORDER
    return Sheet(canvas, extent, left=corner, bottom=corner, scale=scale)


def _panel(canvas: Any, sheet: Sheet) -> Panel:
    left = sheet.right + BORDER + 16
    return Panel(
        canvas, left=left, right=PAGE_WIDTH - MARGIN, top=sheet.top + BORDER, bottom=MARGIN
    )


def _overview(canvas: Any, land: Country, pages: int) -> None:
    town = land.town.name
    draw_header(
        canvas,
        land,
        f"Flood situation in {town}",
        f"Closures, dangers and help along the {land.river_name}. Scale 1:25 000. "
        f"Numbers are explained on sheet 2.",
        1,
        pages,
    )
    sheet = _full_sheet(canvas, Extent(0, 0, EAST_M, NORTH_M), _SCALE_WHOLE)
    panel = _panel(canvas, sheet)
    panel.heading("Situation")
    panel.paragraph(
        f"The {land.river_name} has left its bed along the whole valley and is expected to "
        f"crest in {town} this afternoon. Stay away from the water, follow the closures, and "
        "keep telephone lines free for emergencies."
    )
    panel.heading("Items on this map")
    for item in land.incidents:
        panel.item(item.number, item.title, f"{_shown(item)}, {grid_reference(*item.place)}")
    panel.space()
    panel.heading(f"Water level at {land.town.bridge_name}")
    panel.chart(_levels(land.seed), limit=4.2, now=15)
    panel.heading("Legend")
    panel.legend()
    panel.scale_bar(sheet, (0, 500, 1000, 2000))
    draw_map(sheet, land, pixels_per_point=1.8, quality=80)
    draw_border(sheet)
    canvas.showPage()


def _levels(seed: int) -> list[float]:
    """Return the height of the river in metres, hour by hour for a day: a rise and a crest."""
    hours = np.arange(25)
    rng = np.random.default_rng([seed, 5])
    crest = 19 + rng.uniform(-1, 1.5)
    wave = np.exp(-(((hours - crest) / np.where(hours < crest, 8.0, 12.0)) ** 2))
    levels = 1.6 + rng.uniform(3.2, 3.9) * wave + 0.05 * rng.standard_normal(25) * (hours <= 15)
    return [float(level) for level in levels]


def _shown(item: Incident) -> str:
    """Return where an incident is, as the beginning of a line."""
    return item.where[:1].upper() + item.where[1:]


def _descriptions(canvas: Any, land: Country, pages: int) -> None:
    draw_header(
        canvas,
        land,
        "What the numbers mean",
        f"Items of the map of {land.town.name}, the most pressing first, and the town in detail.",
        2,
        pages,
    )
    scale = 12500.0
    width, height = 430.0, 680.0
    extent = Extent.around(
        *(land.town.bridge + land.town.placed(np.array([[0.0, 250.0]]))[0]) / 2,
        width=width / POINTS_PER_METRE * scale,
        height=height / POINTS_PER_METRE * scale,
    )
    sheet = Sheet(
        canvas,
        extent,
        left=PAGE_WIDTH - MARGIN - BORDER - width,
        bottom=MARGIN + BORDER,
        scale=scale,
    )
    edge = sheet.left - BORDER - 20
    gap = 22.0
    column = (edge - MARGIN - gap) / 2
    half = math.ceil(len(land.incidents) / 2)
    for left, items in (
        (MARGIN, land.incidents[:half]),
        (MARGIN + column + gap, land.incidents[half:]),
    ):
        panel = Panel(canvas, left=left, right=left + column, top=sheet.top + BORDER, bottom=MARGIN)
        panel.descriptions(
            [
                (
                    f"{item.number}. {item.title}. {_shown(item)}, {grid_reference(*item.place)}.",
                    item.text,
                )
                for item in items
            ]
        )
    draw_map(sheet, land, pixels_per_point=1.7, quality=82)
    draw_border(sheet)
    canvas.showPage()


def _detail(canvas: Any, land: Country, item: Incident, number: int, pages: int) -> None:
    where = grid_reference(*item.place)
    draw_header(
        canvas,
        land,
        f"Item {item.number}: {item.title}",
        f"{_shown(item)}, square {where}. Scale 1:10 000.",
        number,
        pages,
    )
    share = _SCALE_DETAIL / _SCALE_WHOLE
    extent = Extent.around(*item.place, width=EAST_M * share, height=NORTH_M * share)
    sheet = _full_sheet(canvas, extent, _SCALE_DETAIL)
    panel = _panel(canvas, sheet)
    panel.heading("What has happened")
    panel.paragraph(item.text, size=12.5)
    panel.heading("Position")
    height = float(land.terrain.height_at(item.place[None])[0])
    river = float(land.terrain.river_distance_at(item.place[None])[0])
    panel.paragraph(
        f"Square {where}; {item.place[0]:,.0f} m east and {item.place[1]:,.0f} m north of the "
        f"corner of the map; {height:.0f} m above the sea, {river:,.0f} m from the "
        f"{land.river_name}."
    )
    _nearby(panel, land, item)
    panel.space()
    panel.locator(extent)
    panel.heading("Legend")
    panel.legend()
    panel.scale_bar(sheet, (0, 200, 400, 800))
    draw_map(sheet, land, pixels_per_point=1.4, quality=82)
    draw_border(sheet)
    canvas.showPage()


def _nearby(panel: Panel, land: Country, item: Incident) -> None:
    panel.heading("Nearest items")
    ways = {other.number: float(np.hypot(*(other.place - item.place))) for other in land.incidents}
    nearest = sorted(land.incidents, key=lambda other: ways[other.number])[1:4]
    for other in nearest:
        panel.item(other.number, other.title, f"{ways[other.number] / 1000:.1f} km: {other.where}")


def _atlas(canvas: Any, land: Country, index: int, count: int, number: int, pages: int) -> None:
    """Draw one of `count` pages that go over the land row by row."""
    share = _SCALE_DETAIL / _SCALE_WHOLE
    across = math.ceil(math.sqrt(count))
    down = math.ceil(count / across)
    row, column = divmod(index, across)
    width, height = EAST_M * share, NORTH_M * share
    extent = Extent.around(
        width / 2 + (EAST_M - width) * (column / max(1, across - 1)),
        NORTH_M - height / 2 - (NORTH_M - height) * (row / max(1, down - 1)),
        width=width,
        height=height,
    )
    first = grid_reference(extent.west + 1, extent.north - 1)
    last = grid_reference(extent.east - 1, extent.south + 1)
    draw_header(
        canvas,
        land,
        f"Atlas: {first} to {last}",
        "Squares of the map in detail. Scale 1:10 000.",
        number,
        pages,
    )
    sheet = _full_sheet(canvas, extent, _SCALE_DETAIL)
    panel = _panel(canvas, sheet)
    panel.heading("Items in this part")
    shown = [item for item in land.incidents if extent.holds(item.place[None])[0]]
    for item in shown:
        panel.item(item.number, item.title, f"{_shown(item)}, {grid_reference(*item.place)}")
    if not shown:
        panel.paragraph("None.")
    panel.space()
    panel.locator(extent)
    panel.heading("Legend")
    panel.legend()
    panel.scale_bar(sheet, (0, 200, 400, 800))
    draw_map(sheet, land, pixels_per_point=1.4, quality=82)
    draw_border(sheet)
    canvas.showPage()
