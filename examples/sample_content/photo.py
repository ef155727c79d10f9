"""A photograph from a hill over the valley: the same country, seen from the side.

Every column of pixels is a line of sight. Along it the ground is looked up at growing
distances, and each pixel shows the first of them that rises above all before it.
"""

from __future__ import annotations

import math
from io import BytesIO

import numpy as np
from examples.sample_content.country import Country, country
from examples.sample_content.flight import Scene, scene
from examples.sample_content.noise import Raster, fractal_noise, ramp
from examples.sample_content.terrain import EAST_M, NORTH_M, Extent
from numpy.typing import NDArray

from distributary.errors import BadInput

__all__ = ["photo_jpeg"]

_WIDTHS = (64, 8192)
_NEAR_M, _FAR_M = 50.0, 8000.0
_DEPTHS = 850
_VIEW_RADIANS = math.radians(58)
_ABOVE_GROUND_M = 55.0
_HAZE = np.array([196, 206, 216], np.float32)


def photo_jpeg(width: int = 2560, seed: int = 0, *, quality: int = 90) -> bytes:
    """Return a picture of the valley as JPEG, two thirds as high as it is wide.

    Parameters
    ----------
    width
        In pixels, from 64 to 8192. A picture of 2560 pixels has about 1.5 MB.
    seed
        Which country.
    quality
        As JPEG counts it.
    """
    if not _WIDTHS[0] <= width <= _WIDTHS[1]:
        raise BadInput("width", f"must be from {_WIDTHS[0]} to {_WIDTHS[1]}, not {width}")
    from PIL import Image

    height = round(width * 2 / 3)
    pixels = _exposed(country(seed), width, height)
    output = BytesIO()
    Image.fromarray(pixels).save(output, "JPEG", quality=quality, subsampling=0)
    return output.getvalue()


def _exposed(land: Country, width: int, height: int) -> NDArray[np.uint8]:
    x, y, heading = _standpoint(land)
    # What is near fills more of the picture, and is looked up in a finer scene.
    share = min(1.0, max(0.2, width / 2560))
    town_x, town_y = land.town.placed(np.array([[0.0, 200.0]]))[0].tolist()
    scenes = [
        _square(land, EAST_M / 2, NORTH_M / 2, half=6500, pixels=round(1500 * share)),
        _square(land, town_x, town_y, half=1000, pixels=round(1200 * share)),
        _square(land, x, y, half=600, pixels=round(1200 * share)),
    ]
    angles = heading + np.linspace(_VIEW_RADIANS / 2, -_VIEW_RADIANS / 2, width)
    depths = np.geomspace(_NEAR_M, _FAR_M, _DEPTHS)
    east = x + np.outer(depths, np.cos(angles))
    north = y + np.outer(depths, np.sin(angles))
    eye = float(land.terrain.height_at(np.array([[x, y]]))[0]) + _ABOVE_GROUND_M
    heights, colours = _looked_up(scenes, east, north)
    # Rows of the picture: the horizon is a third from the top, and a radian as long as it
    # is wide at this angle of view.
    length = width / (2 * math.tan(_VIEW_RADIANS / 2))
    rows = 0.36 * height + (eye - heights) / depths[:, None].astype(np.float32) * np.float32(length)
    # A line of sight in one piece of memory, from far to near: searching wants rows to rise.
    highest = np.ascontiguousarray(np.minimum.accumulate(rows, axis=0)[::-1].T)
    haze = ramp(np.log(depths[::-1]).astype(np.float32), math.log(700), math.log(13000))[:, None]
    colours = np.ascontiguousarray(colours[::-1].transpose(1, 0, 2))
    picture = _sky(land.seed, width, height)
    lines = np.arange(height)
    for column, (line, shown) in enumerate(zip(highest, colours, strict=True)):
        reached = np.searchsorted(line, lines, side="right") - 1
        top = int(np.searchsorted(reached, 0))
        at = reached[top:]
        nearer = np.minimum(at + 1, _DEPTHS - 1)
        part = (lines[top:] - line[at]) / np.maximum(line[nearer] - line[at], 1e-3)
        part = np.clip(part, 0, 1).astype(np.float32)[:, None]
        seen = shown[at] * (1 - part) + shown[nearer] * part
        picture[top:, column] = seen + (_HAZE - seen) * haze[at]
    rng = np.random.default_rng([land.seed, 10])
    grain = rng.standard_normal((height, width), dtype=np.float32)
    picture += np.float32(3.2) * grain[..., None]
    return np.clip(picture, 0, 255).astype(np.uint8)


def _standpoint(land: Country) -> tuple[float, float, float]:
    """Return a high place that looks over the town, and the direction of the town from it."""
    town = land.town.placed(np.array([[0.0, 150.0]]))[0]
    angles = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    spots = np.vstack(
        [town + reach * np.column_stack([np.cos(angles), np.sin(angles)]) for reach in (1050, 1350)]
    )
    inside = Extent(0, 0, EAST_M, NORTH_M).holds(spots, margin=400)
    best = spots[int(np.argmax(np.where(inside, land.terrain.height_at(spots), -np.inf)))]
    away = town - best
    return float(best[0]), float(best[1]), math.atan2(float(away[1]), float(away[0]))


def _square(land: Country, x: float, y: float, *, half: float, pixels: int) -> Scene:
    extent = Extent(x - half, y - half, x + half, y + half)
    return scene(land, extent, width=pixels, height=pixels)


def _looked_up(
    scenes: list[Scene], east: NDArray[np.float64], north: NDArray[np.float64]
) -> tuple[Raster, NDArray[np.uint8]]:
    """Return heights and colours along every line of sight, from the last scene that shows it."""
    heights = np.empty(east.shape, np.float32)
    colours = np.empty((*east.shape, 3), np.uint8)
    for ground in scenes:
        rows, columns = ground.heights.shape
        extent = ground.extent
        column = ((east - extent.west) / extent.width * columns).astype(np.int64)
        row = ((extent.north - north) / extent.height * rows).astype(np.int64)
        shown = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
        if ground is scenes[0]:
            # Beyond the edge of the widest scene its last rows go on, in the haze.
            column, row, shown = column.clip(0, columns - 1), row.clip(0, rows - 1), shown | True
        heights[shown] = ground.heights[row[shown], column[shown]]
        colours[shown] = ground.colours[row[shown], column[shown]]
    return heights, colours


def _sky(seed: int, width: int, height: int) -> Raster:
    """Return a sky with clouds that get flatter towards the horizon."""
    # Land covers the rest, and what little it does not is haze.
    rows = round(0.45 * height)
    down = np.linspace(0, 1, height, dtype=np.float32)[:rows]
    zenith, low = np.array([92, 132, 184], np.float32), np.array([206, 216, 224], np.float32)
    blue = zenith + (low - zenith) * ramp(down, 0.0, 0.42)[:, None]
    ceiling = 1 / (0.5 - np.minimum(down, 0.44).astype(np.float64))
    clouds = fractal_noise(
        np.linspace(0, 7, width),
        ceiling * 2.2,
        seed=seed + 61,
        wavelength=1.6,
        octaves=8,
        gain=0.55,
    )
    cover = ramp(clouds, -0.1, 0.9)[..., None] * np.float32(0.85)
    lit = 214 + 34 * ramp(-clouds, -1.2, 0.4)[..., None]
    sky = np.empty((height, width, 3), np.float32)
    sky[:rows] = blue[:, None, :] * (1 - cover) + lit * cover
    sky[rows:] = _HAZE
    return sky
