"""Names, signs and numbers on the map."""

from __future__ import annotations

from typing import Any

import numpy as np
from examples.sample_content.country import Country
from examples.sample_content.height_lines import height_lines
from examples.sample_content.incidents import Incident
from examples.sample_content.labels import Labels, Lettering
from examples.sample_content.paths import Points, resampled
from examples.sample_content.road_styles import ROADS
from examples.sample_content.sheet import Colour, Sheet
from examples.sample_content.symbols import INK, RED, SIGNS, draw_marker, draw_sign

__all__ = ["draw_names"]

_WHITE: Colour = (1.0, 1.0, 1.0)

_ITEM = Lettering("Helvetica-Bold", 6.8, INK, halo=0)
_TOWN = Lettering("Helvetica-Bold", 15, INK, halo=2.6)
_VILLAGE = Lettering("Helvetica-Bold", 8.5, INK, halo=2)
_RIVER = Lettering("Times-BoldItalic", 10.5, (0.10, 0.30, 0.58), halo=1.8)
_LANE = Lettering("Helvetica", 5.8, (0.25, 0.25, 0.25))
_BRIDGE = Lettering("Helvetica-Oblique", 6, INK)
_CONTOUR = Lettering("Helvetica", 4.8, (0.48, 0.32, 0.18), halo=1.2)


def draw_names(sheet: Sheet, land: Country, size: float) -> None:
    """Write names and draw signs, what matters most first: it gets the room."""
    labels = Labels(sheet)
    shown = [
        item
        for item in land.incidents
        if sheet.extent.holds(item.place[None], margin=12 / sheet.per_metre)[0]
    ]
    radius = 7.0 * size**0.5
    spots = [sheet.placed(item.place[None])[0].tolist() for item in shown]
    for x, y in spots:
        labels.cover(x - 2.7 * radius, y - radius, x + radius, y + radius)
    for item, (x, y) in zip(shown, spots, strict=True):
        _draw_item(sheet.canvas, labels, item, x, y, radius)
    network, town = land.network, land.town
    _place_name(sheet, labels, _TOWN, town.name, town.gates["top"], 14)
    for village in network.villages:
        _place_name(sheet, labels, _VILLAGE, village.name, village.place, 10)
    for part in np.array_split(land.terrain.river, 3 if sheet.scale > 15000 else 5):
        if sheet.shows(part):
            labels.along(land.river_name, _RIVER, _visible(sheet, part))
    for bridge in network.bridges:
        _place_name(sheet, labels, _BRIDGE, bridge.name, bridge.place, 9)
    _place_name(sheet, labels, _BRIDGE, f"{town.name} Station", network.station, 7)
    for road in network.roads:
        _road_name(sheet, labels, road.kind, road.name, road.line, size)
    _street_names(sheet, labels, land)
    for level, lines in height_lines(land.seed).items():
        if level % 50 == 0:
            for line in lines:
                if len(line) > 80 and sheet.shows(line):
                    labels.along(f"{level}", _CONTOUR, _visible(sheet, line))


def _draw_item(
    canvas: Any, labels: Labels, item: Incident, x: float, y: float, radius: float
) -> None:
    """Draw the sign of an incident, its number beside it, and its title on white."""
    sign = next(name for name, (_, kinds) in SIGNS.items() if item.kind in kinds)
    width, height = labels.width(item.title, _ITEM) + 6, _ITEM.size + 4
    spot = labels.room(width, height, x - 0.7 * radius, y, reach=2 * radius)
    if spot is not None:
        left, bottom = spot
        labels.cover(left - 1, bottom - 1, left + width + 1, bottom + height + 1)
        canvas.setStrokeColorRGB(*RED)
        canvas.setLineWidth(0.7)
        canvas.line(x, y, min(max(x, left), left + width), min(max(y, bottom), bottom + height))
        canvas.setFillColorRGB(*_WHITE)
        canvas.roundRect(left, bottom, width, height, 2, stroke=1, fill=1)
        labels.write(item.title, _ITEM, left + 3, bottom + 3.4)
    draw_sign(canvas, sign, x - 1.75 * radius, y, size=1.7 * radius)
    draw_marker(canvas, item.number, x, y, radius=radius)


def _place_name(
    sheet: Sheet, labels: Labels, lettering: Lettering, name: str, place: Points, reach: float
) -> None:
    if sheet.extent.holds(place[None])[0]:
        x, y = sheet.placed(place[None])[0].tolist()
        labels.beside(name, lettering, x, y, reach=reach)


def _visible(sheet: Sheet, line: Points) -> Points:
    """Return the longest stretch of a line that is inside the frame."""
    inside = sheet.extent.holds(line)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(np.int8), [0]])))
    runs = edges.reshape(-1, 2)
    if not len(runs):
        return line[:1]
    begin, end = runs[int(np.argmax(runs[:, 1] - runs[:, 0]))]
    return line[begin:end]


def _road_name(
    sheet: Sheet, labels: Labels, kind: str, name: str, line: Points, size: float
) -> None:
    """Write the number of a road on a shield, or the name of a lane along it."""
    seen = _visible(sheet, line)
    if len(seen) < 8:
        return
    if kind == "minor":
        labels.along(name, _LANE, seen, lift=4.2 * size)
        return
    canvas = sheet.canvas
    lettering = Lettering("Helvetica-Bold", 6.2, _WHITE if kind == "trunk" else INK, halo=0)
    width, height = labels.width(name, lettering) + 6, lettering.size + 4
    for share in (0.5, 0.3, 0.7, 0.2, 0.8):
        x, y = sheet.placed(seen)[int(share * (len(seen) - 1))].tolist()
        left, bottom = x - width / 2, y - height / 2
        if labels.is_free(left, bottom, left + width, bottom + height):
            labels.cover(left - 1, bottom - 1, left + width + 1, bottom + height + 1)
            canvas.setFillColorRGB(*((0.62, 0.12, 0.12) if kind == "trunk" else ROADS["main"][2]))
            canvas.setStrokeColorRGB(*_WHITE)
            canvas.setLineWidth(0.8)
            canvas.roundRect(left, bottom, width, height, 1.8, stroke=1, fill=1)
            labels.write(name, lettering, left + 3, bottom + 3.4)
            return


def _street_names(sheet: Sheet, labels: Labels, land: Country) -> None:
    large = sheet.scale < 15000
    for street in sorted(land.town.streets, key=lambda each: not each.main):
        if not (large or street.main) or not sheet.shows(street.line):
            continue
        seen = _visible(sheet, resampled(street.line, 10))
        if len(seen) > 6:
            size = 5.6 if large else 4.6
            labels.along(street.name, Lettering("Helvetica", size, INK, halo=1.0), seen)
