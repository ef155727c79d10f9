"""The land under the samples: a river in its valley, hills beside it, and where it floods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from examples.sample_content.contours import contours
from examples.sample_content.noise import Raster, fractal_noise, ramp
from examples.sample_content.paths import Points, distances, left_of, resampled
from numpy.typing import NDArray

__all__ = ["EAST_M", "NORTH_M", "Extent", "Terrain"]

EAST_M = 7000.0
NORTH_M = 6000.0
"""The land reaches from 0 to these, to the east and to the north."""

_GRID_M = 20.0
_MARGIN_M = 400.0
_RIVER_LEVEL_M = 92.0
_RIVER_FALL = 0.0012
_FLOOD_RISE_M = 3.6


@dataclass(frozen=True)
class Extent:
    """A rectangle of land.

    Attributes
    ----------
    west, south, east, north
        Its edges, in metres.
    """

    west: float
    south: float
    east: float
    north: float

    @classmethod
    def around(cls, x: float, y: float, *, width: float, height: float) -> Extent:
        """Return an extent of this size around a point, moved so that it is all land."""
        west = min(max(x - width / 2, 0.0), EAST_M - width)
        south = min(max(y - height / 2, 0.0), NORTH_M - height)
        return cls(west, south, west + width, south + height)

    @property
    def width(self) -> float:
        """From west to east, in metres."""
        return self.east - self.west

    @property
    def height(self) -> float:
        """From south to north, in metres."""
        return self.north - self.south

    def columns(self, count: int) -> NDArray[np.float64]:
        """Return the middles of `count` columns, from west to east."""
        return self.west + (np.arange(count) + 0.5) * self.width / count

    def rows(self, count: int) -> NDArray[np.float64]:
        """Return the middles of `count` rows, from north to south, as pictures have them."""
        return self.north - (np.arange(count) + 0.5) * self.height / count

    def holds(self, points: Points, margin: float = 0.0) -> NDArray[np.bool_]:
        """Return which points are in it, at least `margin` from its edges."""
        x, y = points[:, 0], points[:, 1]
        return (
            (x >= self.west + margin)
            & (x <= self.east - margin)
            & (y >= self.south + margin)
            & (y <= self.north - margin)
        )


class Terrain:
    """Heights, the river and what follows from them.

    Parameters
    ----------
    seed
        Which land.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        rng = np.random.default_rng([seed, 1])
        self.river = _meander(rng)
        wander = np.sin(np.linspace(0, 9, len(self.river)) + rng.uniform(0, 6))
        self.river_half_width = 26.0 + 9.0 * np.linspace(0, 1, len(self.river)) + 4.0 * wander
        self.grid_x = np.arange(-_MARGIN_M, EAST_M + _MARGIN_M + 1, _GRID_M)
        self.grid_y = np.arange(-_MARGIN_M, NORTH_M + _MARGIN_M + 1, _GRID_M)
        x, y = np.meshgrid(self.grid_x, self.grid_y)
        away = distances(np.column_stack([x.ravel(), y.ravel()]), self.river)
        self._away = away.reshape(x.shape).astype(np.float32)
        # Distances have creases half-way between bends of the river, and a valley that
        # followed them would show these as cliffs.
        self._valley = _blurred(self._away, round(420 / _GRID_M))

    @cached_property
    def grid_heights(self) -> Raster:
        """Heights on the grid `grid_y` by `grid_x`, rows from south to north."""
        return self.heights(self.grid_x, self.grid_y)

    def river_distance(self, xs: NDArray[np.float64], ys: NDArray[np.float64]) -> Raster:
        """Return the distance to the middle of the river at every crossing of `xs` and `ys`."""
        return self._spread(self._away, xs, ys)

    def heights(self, xs: NDArray[np.float64], ys: NDArray[np.float64]) -> Raster:
        """Return the height of the ground in metres at every crossing of `xs` and `ys`."""
        away = self.river_distance(xs, ys)
        wide = self._spread(self._valley, xs, ys)
        rough = fractal_noise(xs, ys, seed=self.seed + 11, wavelength=2100, octaves=11, gain=0.47)
        ridges = 1 - np.abs(fractal_noise(xs, ys, seed=self.seed + 12, wavelength=1500, octaves=4))
        plain = 4.0 * (np.minimum(away, 450) / 450) ** np.float32(1.6)
        swells = fractal_noise(xs, ys, seed=self.seed + 13, wavelength=640, octaves=5)
        plain += 2.4 * swells * ramp(away, 60, 260)
        beyond = np.maximum(wide - 430, 0)
        valley = 150 * (1 - np.exp(-((beyond / 1500) ** np.float32(1.5))))
        hilly = ramp(wide, 330, 1700)
        hills = 85 * rough * (0.012 + hilly) + 60 * np.maximum(ridges, 0) * hilly
        level = _RIVER_LEVEL_M - _RIVER_FALL * xs.astype(np.float32)
        bed = -2.5 * (1 - ramp(away, 15, 60))
        ground: Raster = level[None, :] + plain + valley + hills + bed
        return ground

    def height_at(self, points: Points) -> NDArray[np.float64]:
        """Return the heights of single points, from the grid."""
        return self._at(self.grid_heights, points)

    def river_distance_at(self, points: Points) -> NDArray[np.float64]:
        """Return the distances of single points to the middle of the river."""
        return self._at(self._away, points)

    def steepness_at(self, points: Points) -> NDArray[np.float64]:
        """Return the slope at single points: metres up for each metre on."""
        north, east = np.gradient(self.grid_heights, _GRID_M)
        return self._at(np.hypot(north, east).astype(np.float32), points)

    @property
    def river_banks(self) -> Points:
        """The river as a polygon, down one bank and up the other."""
        half = self.river_half_width
        return np.vstack([left_of(self.river, half), left_of(self.river, -half)[::-1]])

    @cached_property
    def flood_outlines(self) -> list[Points]:
        """Polygons around what is under water, and around what stays dry within; even-odd."""
        level = _RIVER_LEVEL_M - _RIVER_FALL * self.grid_x.astype(np.float32)
        depth = level + _FLOOD_RISE_M - self.grid_heights - 3 * ramp(self._away, 450, 800)
        # Dry all around, so that every outline closes.
        depth[[0, -1]] = -1
        depth[:, [0, -1]] = -1
        found = contours(self.grid_x, self.grid_y, depth, 0.0)
        return [line for line in found if len(line) > 24]

    def flooded_at(self, points: Points) -> NDArray[np.bool_]:
        """Return which points are under water."""
        level = _RIVER_LEVEL_M - _RIVER_FALL * points[:, 0] + _FLOOD_RISE_M
        depth = level - self.height_at(points)
        wet: NDArray[np.bool_] = (depth > 0) & (self.river_distance_at(points) < 700)
        return wet

    def _spread(self, grid: Raster, xs: NDArray[np.float64], ys: NDArray[np.float64]) -> Raster:
        column, right = _place(xs, self.grid_x)
        row, up = _place(ys, self.grid_y)
        wide = grid[:, column] * (1 - right) + grid[:, column + 1] * right
        spread = wide[row] * (1 - up)[:, None] + wide[row + 1] * up[:, None]
        return spread.astype(np.float32)

    def _at(self, grid: Raster, points: Points) -> NDArray[np.float64]:
        column, right = _place(points[:, 0], self.grid_x)
        row, up = _place(points[:, 1], self.grid_y)
        below = grid[row, column] * (1 - right) + grid[row, column + 1] * right
        above = grid[row + 1, column] * (1 - right) + grid[row + 1, column + 1] * right
        return (below * (1 - up) + above * up).astype(np.float64)


def _place(at: NDArray[np.float64], grid: NDArray[np.float64]) -> tuple[NDArray[np.int64], Raster]:
    """Return the grid line before each position, and the share of the way to the next."""
    position = np.clip((at - grid[0]) / _GRID_M, 0, len(grid) - 1.001)
    before = position.astype(np.int64)
    return before, (position - before).astype(np.float32)


def _blurred(grid: Raster, radius: int) -> Raster:
    """Return the grid averaged over squares, twice, which is smooth enough for land."""
    for _ in range(2):
        for axis in (0, 1):
            ends = [(radius + 1, radius) if each == axis else (0, 0) for each in (0, 1)]
            sums = np.cumsum(np.pad(grid, ends, mode="edge"), axis=axis, dtype=np.float64)
            size, width = grid.shape[axis], 2 * radius + 1
            later = np.take(sums, np.arange(width, width + size), axis=axis)
            grid = ((later - np.take(sums, np.arange(size), axis=axis)) / width).astype(np.float32)
    return grid


def _meander(rng: np.random.Generator) -> Points:
    """Return a river from the west edge to the east, with a point about every 20 m.

    Its direction swings as a sine of the way travelled, as that of real rivers does.
    """
    step = 20.0
    way = np.arange(0, 16000, step)
    swing = 0.85 * np.sin(2 * np.pi * way / rng.uniform(3000, 3600) + rng.uniform(0, 6.28))
    swing += 0.35 * np.sin(2 * np.pi * way / rng.uniform(1500, 1900) + rng.uniform(0, 6.28))
    x = np.cumsum(np.cos(swing)) * step - _MARGIN_M - 100
    y = np.cumsum(np.sin(swing)) * step
    kept = x < EAST_M + _MARGIN_M + 100
    x, y = x[kept], y[kept]
    # Straightened so that it begins and ends at the same height of the map, near the middle.
    y -= np.linspace(y[0], y[-1], len(y))
    y += 0.46 * NORTH_M - (y.max() + y.min()) / 2
    return resampled(np.column_stack([x, y]), step)
