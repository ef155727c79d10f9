"""The easiest way over the land between two points, as those who build roads look for it."""

from __future__ import annotations

import heapq

import numpy as np
from examples.sample_content.paths import Points, distances
from examples.sample_content.terrain import EAST_M, NORTH_M, Terrain
from examples.sample_content.town import Town

__all__ = ["Ground"]

_CELL_M = 70.0
# How far a road may go in one step: to the neighbours, and between them as a knight does.
_STEPS = [
    (dx, dy)
    for dx in range(-2, 3)
    for dy in range(-2, 3)
    if max(abs(dx), abs(dy)) == 1 or abs(dx * dy) == 2
]


class Ground:
    """What it costs to build a road over each cell of the land.

    Parameters
    ----------
    terrain, town
        What is there already.
    """

    def __init__(self, terrain: Terrain, town: Town) -> None:
        self._columns = int(EAST_M / _CELL_M) + 1
        self._rows = int(NORTH_M / _CELL_M) + 1
        x, y = np.meshgrid(np.arange(self._columns) * _CELL_M, np.arange(self._rows) * _CELL_M)
        points = np.column_stack([x.ravel(), y.ravel()])
        self._heights: list[float] = terrain.height_at(points).tolist()
        cost = np.ones(len(points))
        # Wider than the longest step, so that none leads across unnoticed.
        cost[terrain.river_distance_at(points) < 100] = 400.0
        built = np.vstack([block.outline for block in town.blocks])
        cost[distances(points, built) < 110] += 8.0
        self._cost: list[float] = cost.tolist()

    def pave(self, line: Points) -> None:
        """Make it cheap to follow this road."""
        for point in line:
            index = self._cell(point)
            self._cost[index] = min(self._cost[index], 0.45)

    def way(self, start: Points, goal: Points, *, rail: bool) -> Points:
        """Return the easiest way between two points, as points a cell or two apart."""
        first, last = self._cell(start), self._cell(goal)
        steep, most = (0.03, 4.0) if rail else (0.08, 6.0)
        columns, rows, heights, cost = self._columns, self._rows, self._heights, self._cost
        goal_row, goal_column = divmod(last, columns)
        spent = {first: 0.0}
        came: dict[int, int] = {}
        waiting = [(0.0, first)]
        done: set[int] = set()
        while waiting:
            here = heapq.heappop(waiting)[1]
            if here == last:
                break
            if here in done:
                continue
            done.add(here)
            row, column = divmod(here, columns)
            for dx, dy in _STEPS:
                to_column, to_row = column + dx, row + dy
                if not (0 <= to_column < columns and 0 <= to_row < rows):
                    continue
                there = to_row * columns + to_column
                length = _CELL_M * (dx * dx + dy * dy) ** 0.5
                slope = (heights[there] - heights[here]) / length
                rate = cost[there] + cost[here]
                if rail:
                    rate = rate if rate > 1.9 else 6.0
                total = spent[here] + length * (rate / 2 + min((slope / steep) ** 2, most))
                if total < spent.get(there, float("inf")):
                    spent[there] = total
                    came[there] = here
                    left = ((to_column - goal_column) ** 2 + (to_row - goal_row) ** 2) ** 0.5
                    heapq.heappush(waiting, (total + 0.45 * _CELL_M * left, there))
        cells = [last]
        while cells[-1] != first:
            cells.append(came[cells[-1]])
        points = [divmod(cell, columns)[::-1] for cell in reversed(cells)]
        way = np.array(points, float) * _CELL_M
        way[0], way[-1] = start, goal
        return way

    def _cell(self, point: Points) -> int:
        column = min(max(round(float(point[0]) / _CELL_M), 0), self._columns - 1)
        row = min(max(round(float(point[1]) / _CELL_M), 0), self._rows - 1)
        return row * self._columns + column
