"""The land as seen from above: what grows where, in the light of the morning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from examples.sample_content.noise import Raster, chances, fractal_noise, noise, ramp
from examples.sample_content.terrain import Extent, Terrain
from numpy.typing import NDArray

__all__ = ["AERIAL", "TINTED", "Style", "View", "view"]


@dataclass(frozen=True)
class Style:
    """How land is coloured.

    Attributes
    ----------
    fields
        Colours that fields take turns in, red, green and blue from 0 to 255.
    meadow, forest, rock
        Colours of the rest.
    relief
        How dark the shaded side of a hill is, from 0 to 1.
    grain
        How strongly single trees and furrows show.
    heights
        Colours of low, middle and high ground that are mixed in, and how much of them.
    """

    fields: tuple[tuple[int, int, int], ...]
    meadow: tuple[int, int, int]
    forest: tuple[int, int, int]
    rock: tuple[int, int, int]
    relief: float
    grain: float
    heights: tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
    heights_share: float


TINTED = Style(
    fields=((238, 236, 206), (232, 238, 208), (243, 238, 216), (226, 234, 200), (240, 230, 200)),
    meadow=(222, 235, 200),
    forest=(182, 212, 164),
    rock=(226, 220, 210),
    relief=0.5,
    grain=0.3,
    heights=((222, 236, 206), (244, 236, 204), (226, 204, 176)),
    heights_share=0.45,
)
"""Pale, for what is printed on top to be read."""

AERIAL = Style(
    fields=((172, 160, 104), (128, 148, 78), (150, 138, 92), (104, 134, 66), (186, 172, 116)),
    meadow=(116, 140, 76),
    forest=(50, 78, 44),
    rock=(140, 132, 116),
    relief=0.7,
    grain=1.0,
    heights=((110, 140, 80), (130, 140, 84), (150, 138, 100)),
    heights_share=0.12,
)
"""As a camera sees it."""


@dataclass(frozen=True)
class View:
    """Land from above, rows from north to south.

    Attributes
    ----------
    colours
        Red, green and blue from 0 to 255, shaped [rows, columns, 3].
    heights
        Of the ground, in metres.
    trees
        How high trees stand above the ground; 0 where there are none.
    """

    colours: Raster
    heights: Raster
    trees: Raster


def view(terrain: Terrain, extent: Extent, *, width: int, height: int, style: Style) -> View:
    """Return the land in `extent` as a picture of `width` by `height` pixels."""
    xs, ys = extent.columns(width), extent.rows(height)
    heights = terrain.heights(xs, ys)
    step = extent.width / width
    north, east = np.gradient(heights, step)
    steep = np.hypot(north, east)

    forest = _forest(terrain, xs, ys, steep, heights)
    colours = _ground(terrain, xs, ys, style, heights)
    rocky = ramp(steep, 0.55, 0.9)[..., None] * np.float32(0.7)
    colours += rocky * (_colour(style.rock) - colours)
    # Folded, noise makes rounded crowns with dark gaps between them.
    crowns = 0.6 - 2 * np.abs(noise(xs, ys, seed=terrain.seed + 31, wavelength=max(9, 3 * step)))
    crowns += 0.5 * noise(xs, ys, seed=terrain.seed + 33, wavelength=60)
    # From far away single trees are no longer told apart.
    depth = 0.28 * style.grain * min(1.0, 2 / step)
    leaves = _colour(style.forest) * (1 + np.float32(depth) * crowns[..., None])
    colours += forest[..., None] * (leaves - colours)
    speckle = fractal_noise(xs, ys, seed=terrain.seed + 32, wavelength=9, octaves=2, gain=0.8)
    colours *= 1 + np.float32(0.05 * style.grain) * speckle[..., None]

    # Light from the north-west, as on every map; slopes are exaggerated, as theirs are.
    push = 2.6
    light = (1 + push * 0.7 * (east + north)) / np.sqrt(1 + (push * steep) ** 2)
    shade = 0.95 + np.float32(style.relief) * (np.clip(light, 0.15, 1.25) - 1)
    colours *= shade[..., None]
    trees = forest * np.clip(9 + 5 * crowns, 3, 16)
    return View(np.clip(colours, 0, 255), heights, trees)


def _colour(colour: tuple[int, int, int]) -> Raster:
    return np.array(colour, np.float32)


def _forest(
    terrain: Terrain,
    xs: NDArray[np.float64],
    ys: NDArray[np.float64],
    steep: Raster,
    heights: Raster,
) -> Raster:
    """Return how wooded the land is: on slopes and hills rather than in the valley."""
    patches = fractal_noise(xs, ys, seed=terrain.seed + 21, wavelength=1100, octaves=7, gain=0.55)
    inclined = patches + 1.6 * np.minimum(steep, 0.5) + (heights - 190) / 260
    inclined -= ramp(-terrain.river_distance(xs, ys), -420, -160)
    return ramp(inclined.astype(np.float32), 0.28, 0.36)


def _ground(
    terrain: Terrain,
    xs: NDArray[np.float64],
    ys: NDArray[np.float64],
    style: Style,
    heights: Raster,
) -> Raster:
    """Return the colours of open land: fields in the valley, meadows among and above them."""
    turn = 0.4 + 0.05 * (terrain.seed % 7)
    bend = 70 * noise(xs, ys, seed=terrain.seed + 22, wavelength=800)
    x, y = xs.astype(np.float32)[None, :], ys.astype(np.float32)[:, None]
    along = (x * np.float32(np.cos(turn)) + y * np.float32(np.sin(turn)) + bend) / 230
    column = np.floor(along).astype(np.int64)
    columns = np.arange(column.min(), column.max() + 1)
    # Rows of fields are out of step with each other, or they would make a chessboard.
    shifts = chances(columns, np.zeros_like(columns), seed=terrain.seed)
    shift = shifts[column - columns[0]]
    across = (y * np.float32(np.cos(turn)) - x * np.float32(np.sin(turn)) + bend) / 150 + shift
    row = np.floor(across).astype(np.int64)
    rows = np.arange(row.min(), row.max() + 1)
    kinds = chances(columns[None, :], rows[:, None], seed=terrain.seed + 1)
    kind = kinds[row - rows[0], column - columns[0]]
    palette = np.array([*style.fields, style.meadow, style.meadow], np.float32)
    colours = palette[(kind * len(palette)).astype(np.int64)]
    edge = np.minimum(
        np.minimum(along - column, column + 1 - along) * 230,
        np.minimum(across - row, row + 1 - across) * 150,
    )
    hedge = (1 - ramp(edge, 1.5, 5))[..., None] * np.float32(0.45)
    colours += hedge * (_colour(style.forest) - colours)
    furrows = np.sin(along * 230 * np.float32(2 * np.pi / 11)) * (kind > 0.35)
    colours *= 1 + np.float32(0.035 * style.grain) * furrows[..., None]
    low, middle, high = (_colour(colour) for colour in style.heights)
    rise = np.clip((heights - 95) / 220, 0, 1)[..., None]
    tint = np.where(
        rise < 0.5, low + (middle - low) * 2 * rise, middle + (high - middle) * (2 * rise - 1)
    )
    mixed: Raster = colours + np.float32(style.heights_share) * (tint - colours)
    return mixed
