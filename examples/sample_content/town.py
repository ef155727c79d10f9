"""A town by the river: streets and blocks on a bent grid, buildings, parks and a square."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from examples.sample_content.names import Names
from examples.sample_content.paths import Points, headings, lengths, point_at
from examples.sample_content.terrain import Terrain
from numpy.typing import NDArray

__all__ = ["Block", "Street", "Town"]

Use = Literal["houses", "park", "square", "school", "hospital", "works"]

_STREET_M = 13.0


@dataclass(frozen=True)
class Block:
    """The ground between four streets.

    Attributes
    ----------
    use
        What stands on it.
    outline
        Its corners.
    buildings
        The corners of each building.
    """

    use: Use
    outline: Points
    buildings: tuple[Points, ...]

    @property
    def centre(self) -> Points:
        """Its middle."""
        middle: Points = self.outline.mean(axis=0)
        return middle


@dataclass(frozen=True)
class Street:
    """A street in town.

    Attributes
    ----------
    name
        What it is called.
    line
        Where it runs.
    main
        Whether it is one of the two that lead out of town.
    """

    name: str
    line: Points
    main: bool


class Town:
    """The town, laid out along the river and across it.

    Positions inside it are (along, off): metres downstream of its middle, and metres away
    from the river. A bend is applied to them, as no town is a perfect grid.

    Parameters
    ----------
    terrain
        The land it stands on.
    names
        Where its names come from.
    """

    def __init__(self, terrain: Terrain, names: Names) -> None:
        rng = np.random.default_rng([terrain.seed, 2])
        self.name = names.place()
        self.bridge_name = f"{names.place()} Bridge"
        river = terrain.river
        along = lengths(river)
        # The straightest reach near the middle of the map: a bridge wants to be short.
        turning = np.abs(np.gradient(np.unwrap(np.arctan2(*headings(river).T[::-1]))))
        near = np.abs(river[:, 0] - 3300) < 700
        here = int(np.argmin(np.where(near, turning, np.inf)))
        self.bridge_way = float(along[here])
        self.bridge = point_at(river, self.bridge_way)
        self._ahead = headings(river)[here]
        self._side = np.array([-self._ahead[1], self._ahead[0]])
        self._bends = rng.uniform(0, 6.28, 4)
        self._build(terrain, names, rng)

    def placed(self, local: NDArray[np.float64]) -> Points:
        """Return where positions of the town, shaped [count, 2], are on the map."""
        along, off = local[:, 0], local[:, 1]
        first, second, third, fourth = self._bends
        # No bend at the bridge, so that its street meets it.
        calm = 1 - np.exp(-(along**2 + off**2) / 300**2)
        sway = 26 * np.sin(off / 310 + first) + 16 * np.sin(along / 240 + second)
        lift = 26 * np.sin(along / 420 + third) + 12 * np.sin(off / 200 + fourth)
        bent_along, bent_off = along + calm * sway, off + calm * lift
        bent: Points = (
            self.bridge + np.outer(bent_along, self._ahead) + np.outer(bent_off, self._side)
        )
        return bent

    def _build(self, terrain: Terrain, names: Names, rng: np.random.Generator) -> None:
        right = np.cumsum([0, *rng.uniform(88, 138, 8)])
        left = -np.cumsum(rng.uniform(88, 138, 8))[::-1]
        columns = np.concatenate([left, right])
        rows = np.concatenate(
            [
                -75 - np.cumsum([0, *rng.uniform(78, 100, 4)])[::-1],
                75 + np.cumsum([0, *rng.uniform(74, 112, 9)]),
            ]
        )
        middle = len(left)
        kept = np.zeros((len(rows) - 1, len(columns) - 1), bool)
        across = int(np.searchsorted(rows, 0)) - 1
        for row in range(len(rows) - 1):
            for column in range(len(columns) - 1):
                if row != across:
                    kept[row, column] = self._stands(
                        terrain, columns[column : column + 2], rows[row : row + 2], rng
                    )
        self.main_row = across + 4
        self.blocks: list[Block] = []
        uses = self._uses(kept, across, middle, rng)
        for row, column in zip(*np.nonzero(kept), strict=True):
            use = uses.get((int(row), int(column)), "houses")
            self.blocks.append(
                self._block(use, columns[column : column + 2], rows[row : row + 2], rng)
            )
        self.streets: list[Street] = []
        self._lay_streets(kept, columns, rows, middle, names)
        top = int(max(np.nonzero(kept[:, middle - 1] | kept[:, middle])[0])) + 1
        bottom = int(min(np.nonzero(kept[:, middle - 1] | kept[:, middle])[0]))
        wide = np.nonzero(kept[self.main_row - 1] | kept[self.main_row])[0]
        self.gates = {
            "top": self.placed(np.array([[0.0, rows[top]]]))[0],
            "bottom": self.placed(np.array([[0.0, rows[bottom]]]))[0],
            "upstream": self.placed(np.array([[columns[wide.min()], rows[self.main_row]]]))[0],
            "downstream": self.placed(np.array([[columns[wide.max() + 1], rows[self.main_row]]]))[
                0
            ],
        }
        self.reach = (float(columns[wide.min()]), float(columns[wide.max() + 1]))

    def _stands(
        self,
        terrain: Terrain,
        columns: NDArray[np.float64],
        rows: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> bool:
        """Whether there is room for a block here, and the town reaches this far."""
        corners = np.array([[x, y] for x in columns for y in rows])
        along, off = np.abs(corners.mean(axis=0))
        main_bank = corners[:, 1].mean() > 0
        reach = (820.0, 960.0) if main_bank else (480.0, 420.0)
        size = (along / reach[0]) ** 2 + (off / reach[1]) ** 2
        dry = terrain.river_distance_at(self.placed(corners)).min() > 62
        return bool(dry and size < rng.uniform(0.72, 1.12))

    def _uses(
        self, kept: NDArray[np.bool_], across: int, middle: int, rng: np.random.Generator
    ) -> dict[tuple[int, int], Use]:
        """Return what stands on the blocks that are not all houses."""
        chosen: dict[tuple[int, int], Use] = {(self.main_row, middle): "square"}
        wanted: list[tuple[Use, int, int]] = [
            ("park", across + 2, middle + 2),
            ("hospital", across + 6, middle - 3),
            ("school", across + 7, middle + 3),
            ("park", across + 6, middle + 1),
            ("works", across + 3, middle + 5),
            ("works", across - 2, middle + 1),
            ("park", across - 1, middle - 2),
            ("park", across + 8, middle - 1),
            ("school", across + 3, middle - 4),
        ]
        free = {(int(row), int(column)) for row, column in zip(*np.nonzero(kept), strict=True)}
        for use, row, column in wanted:
            rest = sorted(
                free - chosen.keys(), key=lambda at: (abs(at[0] - row) + abs(at[1] - column), at)
            )
            chosen[rest[0]] = use
        return chosen

    def _block(
        self,
        use: Use,
        columns: NDArray[np.float64],
        rows: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> Block:
        west, east = columns + np.array([1, -1]) * _STREET_M / 2
        south, north = rows + np.array([1, -1]) * _STREET_M / 2
        wide, deep = east - west, north - south
        plots: list[tuple[float, float, float, float]] = []
        if use == "houses":
            for front, back in ((0.0, 0.34), (1.0, 0.66)):
                at = 3.0
                while at < wide - 12:
                    width = min(rng.uniform(9, 22), wide - 3 - at)
                    depth = rng.uniform(0.75, 1.0) * (back - front) * deep
                    begin = front * deep + (4 if front == 0 else -4)
                    plots.append((at, begin, at + width, begin + depth))
                    at += width + (0.0 if rng.random() < 0.55 else rng.uniform(3, 9))
            if rng.random() < 0.35:
                plots.append((wide * 0.3, deep * 0.44, wide * 0.6, deep * 0.56))
        elif use == "school":
            plots = [(8, 8, wide - 10, 26), (8, 26, 26, deep - 14)]
        elif use == "hospital":
            plots = [(8, deep * 0.35, wide - 8, deep * 0.6), (wide * 0.4, 6, wide * 0.62, deep - 6)]
        elif use == "works":
            plots = [(6, 6, wide * 0.46, deep - 6), (wide * 0.54, 6, wide - 6, deep * 0.62)]
        elif use == "square":
            plots = [
                (wide * 0.55, deep * 0.3, wide * 0.9, deep * 0.52),
                (wide * 0.78, deep * 0.24, wide * 0.9, deep * 0.58),
            ]
        buildings = tuple(
            self.placed(
                np.array(
                    [
                        [west + a, south + b],
                        [west + c, south + b],
                        [west + c, south + d],
                        [west + a, south + d],
                    ]
                )
            )
            for a, b, c, d in plots
        )
        outline = self.placed(
            np.array([[west, south], [east, south], [east, north], [west, north]])
        )
        return Block(use, outline, buildings)

    def _lay_streets(
        self,
        kept: NDArray[np.bool_],
        columns: NDArray[np.float64],
        rows: NDArray[np.float64],
        middle: int,
        names: Names,
    ) -> None:
        """Put a street along every side of every block, in one piece where they meet."""
        around = np.pad(kept, 1)
        sides = around[:-1] | around[1:]
        for row, y in enumerate(rows):
            for begin, end in _runs(sides[row, 1:-1]):
                line = self._line(columns[begin], columns[end], y, turned=False)
                main = row == self.main_row
                self.streets.append(Street("High Street" if main else names.street(), line, main))
        sides = around[:, :-1] | around[:, 1:]
        for column, x in enumerate(columns):
            if column == middle:
                used = np.nonzero(sides[1:-1, column])[0]
                line = self._line(rows[used.min()], rows[used.max() + 1], x, turned=True)
                self.streets.append(Street("Bridge Street", line, True))
                continue
            for begin, end in _runs(sides[1:-1, column]):
                line = self._line(rows[begin], rows[end], x, turned=True)
                self.streets.append(Street(names.street(), line, False))

    def _line(self, begin: float, end: float, at: float, *, turned: bool) -> Points:
        way = np.linspace(begin, end, max(2, int(abs(end - begin) / 25) + 1))
        local = np.column_stack([way, np.full_like(way, at)])
        return self.placed(local[:, ::-1] if turned else local)


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return where the flag is set: first index and the one after the last, for each run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]
