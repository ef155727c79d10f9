"""The contour lines of a country, drawn once for all sheets."""

from __future__ import annotations

from functools import lru_cache

from examples.sample_content.contours import contours
from examples.sample_content.country import country
from examples.sample_content.paths import Points

__all__ = ["height_lines"]


@lru_cache(maxsize=4)
def height_lines(seed: int) -> dict[int, list[Points]]:
    """Return the lines of every ten metres of height."""
    terrain = country(seed).terrain
    low, high = int(terrain.grid_heights.min()), int(terrain.grid_heights.max())
    return {
        level: [
            line
            for line in contours(terrain.grid_x, terrain.grid_y, terrain.grid_heights, level)
            if len(line) > 12
        ]
        for level in range(low // 10 * 10 + 20, high, 10)
    }
