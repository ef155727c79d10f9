"""The country as a camera in the air sees it: roofs, cars' streets, trees, and brown water."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from examples.sample_content.aerial import AERIAL, view
from examples.sample_content.country import Country
from examples.sample_content.noise import Raster, noise
from examples.sample_content.paths import Points
from examples.sample_content.terrain import Extent
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

__all__ = ["Scene", "scene"]

_ROOFS = (
    (150, 84, 62),
    (168, 102, 76),
    (124, 74, 60),
    (112, 108, 106),
    (142, 134, 126),
    (90, 82, 80),
)
_GARDEN = (104, 122, 72)
_GROUND = {
    "houses": _GARDEN,
    "park": (88, 124, 60),
    "square": (176, 166, 148),
    "works": (132, 128, 122),
}
_STREET = (118, 116, 114)
_MUD = (108, 100, 80)
_SHALLOW = (126, 116, 92)
_TALL_M = {"houses": 8.0, "school": 9.0, "hospital": 16.0, "works": 11.0, "square": 22.0}


@dataclass(frozen=True)
class Scene:
    """A piece of country from above, rows from north to south.

    Attributes
    ----------
    extent
        Which piece.
    colours
        Red, green and blue, shaped [rows, columns, 3].
    water
        Where there is water: 255, else 0.
    heights
        Of what is seen, in metres: ground, roofs, tops of trees, or water.
    """

    extent: Extent
    colours: NDArray[np.uint8]
    water: NDArray[np.uint8]
    heights: Raster


def scene(land: Country, extent: Extent, *, width: int, height: int) -> Scene:
    """Return the country in `extent` as a picture of `width` by `height` pixels."""
    from PIL import Image, ImageChops
    from PIL.ImageDraw import Draw

    land_view = view(land.terrain, extent, width=width, height=height, style=AERIAL)
    per_metre = width / extent.width
    # Drawn at twice the size and then halved: Pillow draws edges without smoothing.
    zoom = 2 * per_metre
    picture = Image.fromarray(land_view.colours.astype(np.uint8)).resize((2 * width, 2 * height))
    tall = Image.new("F", (width, height))
    water = Image.new("L", (width, height))
    draw, tall_draw, water_draw = Draw(picture), Draw(tall), Draw(water)

    def spots(points: Points, by: float = zoom) -> list[tuple[float, float]]:
        return [((x - extent.west) * by, (extent.north - y) * by) for x, y in points.tolist()]

    rng = np.random.default_rng([land.seed, 6])
    terrain, town, network = land.terrain, land.town, land.network
    blocks = town.blocks
    for road in network.roads:
        draw.line(spots(road.line), fill=_STREET, width=max(2, round(9 * zoom)), joint="curve")
    rails = spots(network.railway.line)
    draw.line(rails, fill=(120, 110, 100), width=max(2, round(7 * zoom)), joint="curve")
    # Streets first and blocks over them, so that streets have kerbs rather than corners.
    for street in town.streets:
        draw.line(spots(street.line), fill=_STREET, width=max(2, round(14 * zoom)), joint="curve")
    for block in blocks:
        draw.polygon(spots(block.outline), fill=_GROUND.get(block.use, _GARDEN))
    for image, by, colour, share in ((picture, zoom, _SHALLOW, 120), (water, per_metre, 255, 255)):
        flooded = Image.new("1", image.size)
        for outline in terrain.flood_outlines:
            inside = Image.new("1", image.size)
            Draw(inside).polygon(spots(outline, by), fill=1)
            flooded = ImageChops.logical_xor(flooded, inside)
        image.paste(colour, mask=flooded.convert("L").point([0] * 255 + [share]))
    draw.polygon(spots(terrain.river_banks), fill=_MUD)
    water_draw.polygon(spots(terrain.river_banks, per_metre), fill=255)
    for bridge in network.bridges:
        deck = np.vstack(bridge.ends)
        draw.line(spots(deck), fill=(90, 86, 82), width=round(15 * zoom))
        draw.line(spots(deck), fill=(150, 146, 140), width=round(12 * zoom))
        water_draw.line(spots(deck, per_metre), fill=0, width=max(1, round(15 * per_metre)))
    houses: list[tuple[Points, str]] = [
        (house, block.use) for block in blocks for house in block.buildings
    ]
    houses += [(house, "houses") for village in network.villages for house in village.buildings]
    for house, use in houses:
        shade = house + np.array([0.45, -0.45]) * _TALL_M[use]
        draw.polygon(spots(shade), fill=(58, 58, 52))
        water_draw.polygon(spots(shade, per_metre), fill=0)
    for house, use in houses:
        roof = np.array(_ROOFS[int(rng.integers(len(_ROOFS)))]) + rng.integers(-14, 15)
        _roof(draw, spots(house), roof, flat=use in ("works", "hospital"))
        tall_draw.polygon(spots(house, per_metre), fill=_TALL_M[use])
        water_draw.polygon(spots(house, per_metre), fill=0)
    for place, size in _trees(land, rng):
        if extent.holds(place[None])[0]:
            x, y = spots(place[None])[0]
            for shift, colour in ((0.6, (46, 54, 36)), (0.0, (62, 92, 46)), (-0.25, (86, 116, 58))):
                far = size * zoom * (1 if shift >= 0 else 0.6)
                at = shift * size * zoom
                draw.ellipse((x + at - far, y + at - far, x + at + far, y + at + far), fill=colour)

    colours = np.asarray(picture.reduce(2), np.float32)
    grit = noise(
        extent.columns(width), extent.rows(height), seed=land.seed + 41, wavelength=2.2 / per_metre
    )
    colours = np.clip(colours * (1 + 0.05 * grit[..., None]), 0, 255)
    wet = np.asarray(water)
    above = np.asarray(tall) + land_view.trees * (wet == 0)
    return Scene(extent, colours.astype(np.uint8), wet, land_view.heights + above)


def _roof(
    draw: ImageDraw, corners: list[tuple[float, float]], colour: NDArray[np.int64], *, flat: bool
) -> None:
    """Draw a roof: flat, or with a ridge and one side in the sun."""
    if flat:
        draw.polygon(corners, fill=_rgb(colour + 30))
        return
    first, second, third, fourth = (np.array(corner) for corner in corners)
    if np.hypot(*(second - first)) < np.hypot(*(third - second)):
        first, second, third, fourth = second, third, fourth, first
    left, right = (first + fourth) / 2, (second + third) / 2
    # The side whose middle lies more to the north-west is the sunny one.
    halves = sorted(
        [np.array([first, second, right, left]), np.array([left, right, third, fourth])],
        key=lambda half: float(half.sum()),
    )
    for half, light in zip(halves, (1.14, 0.82), strict=True):
        draw.polygon([(x, y) for x, y in half.tolist()], fill=_rgb(colour * light))


def _rgb(colour: NDArray[Any]) -> tuple[int, int, int]:
    red, green, blue = (int(min(max(part, 0), 255)) for part in colour)
    return red, green, blue


def _trees(land: Country, rng: np.random.Generator) -> list[tuple[Points, float]]:
    """Return trees in gardens and parks: where, and how far their branches reach."""
    trees = []
    for block in land.town.blocks:
        count = {"park": 45, "houses": 9, "square": 5}.get(block.use, 6)
        for across, along in rng.uniform(0.04, 0.96, (count, 2)):
            south = block.outline[0] * (1 - across) + block.outline[1] * across
            north = block.outline[3] * (1 - across) + block.outline[2] * across
            # Houses stand along the streets, gardens lie behind them.
            deep = along if block.use == "park" else 0.4 + 0.2 * along
            trees.append((south * (1 - deep) + north * deep, float(rng.uniform(1.8, 4.2))))
    return trees
