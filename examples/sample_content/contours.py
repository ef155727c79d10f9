"""Lines of equal height through a grid of heights (marching squares)."""

from __future__ import annotations

import numpy as np
from examples.sample_content.noise import Raster
from examples.sample_content.paths import Points
from numpy.typing import NDArray

__all__ = ["contours"]

# The edges of a cell that a line enters and leaves by: 0 below, 1 right, 2 above, 3 left.
# The case has a bit for each corner that is higher than the line: 1 lower left,
# 2 lower right, 4 upper right, 8 upper left.
_CROSSED: dict[int, tuple[tuple[int, int], ...]] = {
    1: ((3, 0),),
    2: ((0, 1),),
    3: ((3, 1),),
    4: ((1, 2),),
    5: ((3, 2), (1, 0)),
    6: ((0, 2),),
    7: ((3, 2),),
    8: ((2, 3),),
    9: ((2, 0),),
    10: ((0, 3), (2, 1)),
    11: ((2, 1),),
    12: ((1, 3),),
    13: ((1, 0),),
    14: ((0, 3),),
}


def contours(
    xs: NDArray[np.float64], ys: NDArray[np.float64], heights: Raster, level: float
) -> list[Points]:
    """Return the lines at `level`, each from end to end; a closed one ends where it begins.

    Parameters
    ----------
    xs, ys
        Positions of columns and rows, rising.
    heights
        Shaped [rows, columns].
    level
        The height of the lines.
    """
    # A corner exactly at the level would have a line through it that ends nowhere.
    heights = np.where(
        heights == level, np.nextafter(np.float32(level), np.float32(np.inf)), heights
    )
    higher = heights > level
    case = (
        higher[:-1, :-1] * 1 + higher[:-1, 1:] * 2 + higher[1:, 1:] * 4 + higher[1:, :-1] * 8
    ).astype(np.int64)
    columns = len(xs)
    beside: dict[int, list[int]] = {}
    for number, pairs in _CROSSED.items():
        row, column = np.nonzero(case == number)
        corner = row * columns + column
        # Edges are named by the corner they begin at: twice it to the right, one more upwards.
        names = (2 * corner, 2 * (corner + 1) + 1, 2 * (corner + columns), 2 * corner + 1)
        for enter, leave in pairs:
            for one, other in zip(names[enter].tolist(), names[leave].tolist(), strict=True):
                beside.setdefault(one, []).append(other)
                beside.setdefault(other, []).append(one)
    return [_positions(chain, xs, ys, heights, level) for chain in _chains(beside)]


def _chains(beside: dict[int, list[int]]) -> list[list[int]]:
    """Return the edges in the order in which lines cross them."""
    chains = []
    left = dict(beside)
    ends = [edge for edge, others in beside.items() if len(others) == 1]
    for start in [*ends, *beside]:
        if start not in left:
            continue
        chain = [start]
        del left[start]
        while True:
            onward = next((edge for edge in beside[chain[-1]] if edge in left), None)
            if onward is None:
                break
            chain.append(onward)
            del left[onward]
        if len(chain) > 2 and chain[0] in beside[chain[-1]]:
            chain.append(chain[0])
        chains.append(chain)
    return chains


def _positions(
    chain: list[int],
    xs: NDArray[np.float64],
    ys: NDArray[np.float64],
    heights: Raster,
    level: float,
) -> Points:
    edges = np.array(chain)
    upwards = edges % 2
    row, column = np.divmod(edges // 2, len(xs))
    far_row, far_column = row + upwards, column + 1 - upwards
    near, far = heights[row, column], heights[far_row, far_column]
    share = (level - near) / (far - near)
    x = xs[column] + share * (xs[far_column] - xs[column])
    y = ys[row] + share * (ys[far_row] - ys[row])
    return np.column_stack([x, y])
