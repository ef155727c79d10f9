"""The map itself, layer by layer: ground, water, roads, houses, signs and names."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from examples.sample_content.aerial import TINTED, view
from examples.sample_content.country import Country
from examples.sample_content.height_lines import height_lines
from examples.sample_content.map_names import draw_names
from examples.sample_content.paths import Points
from examples.sample_content.road_styles import ROADS
from examples.sample_content.sheet import Colour, Sheet
from examples.sample_content.symbols import INK

__all__ = ["FLOOD", "LEAVE", "WATER", "draw_map"]

WATER: Colour = (0.56, 0.74, 0.89)
FLOOD: Colour = (0.20, 0.42, 0.86)
LEAVE: Colour = (0.93, 0.45, 0.06)
_BANK: Colour = (0.24, 0.47, 0.70)
_HEIGHT: Colour = (0.62, 0.44, 0.27)
_BUILT: Colour = (0.94, 0.92, 0.89)
_HOUSE: Colour = (0.72, 0.67, 0.63)
_WHITE: Colour = (1.0, 1.0, 1.0)

_USES: dict[str, Colour] = {
    "houses": _BUILT,
    "park": (0.70, 0.86, 0.60),
    "square": (0.97, 0.90, 0.78),
    "school": (0.93, 0.88, 0.72),
    "hospital": (0.95, 0.83, 0.82),
    "works": (0.86, 0.84, 0.90),
}


def draw_map(sheet: Sheet, land: Country, *, pixels_per_point: float, quality: int) -> None:
    """Draw everything inside the frame of a sheet.

    Parameters
    ----------
    pixels_per_point
        How finely the ground is drawn.
    quality
        Of the picture of the ground, as JPEG counts it.
    """
    canvas = sheet.canvas
    canvas.saveState()
    sheet.clip()
    _ground(sheet, land, pixels_per_point, quality)
    # Signs and lines grow with the scale, but less than the land does.
    size = (25000 / sheet.scale) ** 0.6
    _heights(sheet, land)
    _water(sheet, land, size)
    _town_blocks(sheet, land)
    _flood(sheet, land, size)
    _railway(sheet, land, size)
    _roads(sheet, land, size)
    _buildings(sheet, land)
    _leave(sheet, land, size)
    _grid(sheet)
    draw_names(sheet, land, size)
    canvas.restoreState()
    canvas.setStrokeColorRGB(*INK)
    canvas.setLineWidth(1.2)
    canvas.rect(sheet.left, sheet.bottom, sheet.right - sheet.left, sheet.top - sheet.bottom)


def _ground(sheet: Sheet, land: Country, pixels_per_point: float, quality: int) -> None:
    from PIL import Image
    from reportlab.lib.utils import ImageReader

    width = round((sheet.right - sheet.left) * pixels_per_point)
    height = round((sheet.top - sheet.bottom) * pixels_per_point)
    colours = view(land.terrain, sheet.extent, width=width, height=height, style=TINTED).colours
    picture = BytesIO()
    # Written as JPEG here: ReportLab puts such a file into the document as it is.
    Image.fromarray(colours.astype(np.uint8)).save(picture, "JPEG", quality=quality)
    picture.seek(0)
    sheet.canvas.drawImage(
        ImageReader(picture),
        sheet.left,
        sheet.bottom,
        width=sheet.right - sheet.left,
        height=sheet.top - sheet.bottom,
    )


def _heights(sheet: Sheet, land: Country) -> None:
    lines = height_lines(land.seed)
    sheet.canvas.setStrokeAlpha(0.55)
    thin = [line for level in lines if level % 50 for line in lines[level]]
    thick = [line for level in lines if not level % 50 for line in lines[level]]
    if sheet.scale > 15000:
        thin = [line[np.append(np.arange(0, len(line) - 1, 2), -1)] for line in thin]
    sheet.stroke(thin, _HEIGHT, 0.25)
    sheet.stroke(thick, _HEIGHT, 0.6)
    sheet.canvas.setStrokeAlpha(1)


def _water(sheet: Sheet, land: Country, size: float) -> None:
    sheet.fill([land.terrain.river_banks], WATER, outline=_BANK, width=0.5 * size)


def _town_blocks(sheet: Sheet, land: Country) -> None:
    for use, colour in _USES.items():
        sheet.fill([block.outline for block in land.town.blocks if block.use == use], colour)


def _leaving_area(land: Country) -> Points:
    """Return the outline of what has to be left: the blocks along the river."""
    upstream, downstream = (0.62 * edge for edge in land.town.reach)
    along = np.linspace(upstream, downstream, 12)
    near = np.column_stack([along, np.full(12, 52.0)])
    far = np.column_stack([along, np.full(12, 262.0)])
    return land.town.placed(np.vstack([near, far[::-1], near[:1]]))


def _flood(sheet: Sheet, land: Country, size: float) -> None:
    outlines = land.terrain.flood_outlines
    sheet.fill(outlines, FLOOD, opacity=0.2)
    sheet.canvas.setStrokeAlpha(0.55)
    sheet.hatch(outlines, FLOOD, gap=5 * size, width=0.35)
    sheet.canvas.setStrokeAlpha(1)
    sheet.stroke(outlines, FLOOD, 0.8 * size)


def _leave(sheet: Sheet, land: Country, size: float) -> None:
    area = _leaving_area(land)
    sheet.fill([area], LEAVE, opacity=0.16)
    sheet.stroke([area], LEAVE, 1.3 * size, dash=(4 * size, 2 * size))


def _railway(sheet: Sheet, land: Country, size: float) -> None:
    line = [land.network.railway.line]
    sheet.stroke(line, INK, 1.9 * size)
    sheet.stroke(line, _WHITE, 1.2 * size)
    sheet.stroke(line, INK, 1.2 * size, dash=(4 * size, 4 * size))


def _roads(sheet: Sheet, land: Country, size: float) -> None:
    roads, streets = land.network.roads, land.town.streets
    street_width = max(1.2, 11 * sheet.per_metre)
    side = [street.line for street in streets if not street.main]
    main = [street.line for street in streets if street.main]
    over = [np.vstack(bridge.ends) for bridge in land.network.bridges]
    # Bridges are drawn as wider black bars that the road then covers.
    sheet.stroke(over, INK, 6.4 * size, butt=True)
    sheet.stroke(over, _WHITE, 5.2 * size, butt=True)
    # All edges before all middles, so that roads meet without a line across.
    sheet.stroke(side, (0.62, 0.60, 0.58), street_width + 0.5)
    sheet.stroke(main, ROADS["main"][1], ROADS["main"][0] * size)
    for kind, (width, edge, _) in ROADS.items():
        sheet.stroke([road.line for road in roads if road.kind == kind], edge, width * size)
    sheet.stroke(side, _WHITE, street_width)
    for kind, (width, _, middle) in ROADS.items():
        lines = [road.line for road in roads if road.kind == kind]
        sheet.stroke(lines + (main if kind == "main" else []), middle, (width - 1) * size)


def _buildings(sheet: Sheet, land: Country) -> None:
    outline: Colour = (0.50, 0.45, 0.42)
    houses = [house for block in land.town.blocks for house in block.buildings]
    houses += [house for village in land.network.villages for house in village.buildings]
    sheet.fill(houses, _HOUSE, outline=outline, width=0.2)


def _grid(sheet: Sheet) -> None:
    extent = sheet.extent
    step = 1000
    columns = np.arange(np.ceil(extent.west / step) * step, extent.east, step)
    rows = np.arange(np.ceil(extent.south / step) * step, extent.north, step)
    lines = [np.array([[x, extent.south], [x, extent.north]]) for x in columns]
    lines += [np.array([[extent.west, y], [extent.east, y]]) for y in rows]
    sheet.canvas.setStrokeAlpha(0.35)
    sheet.stroke(lines, (0.15, 0.25, 0.45), 0.5)
    sheet.canvas.setStrokeAlpha(1)
