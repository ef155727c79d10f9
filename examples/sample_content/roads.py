"""Roads and a railway between the town, the villages and the edges of the map."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from examples.sample_content.easiest_way import Ground
from examples.sample_content.names import Names
from examples.sample_content.paths import (
    Points,
    distances,
    headings,
    lengths,
    point_at,
    resampled,
)
from examples.sample_content.terrain import EAST_M, NORTH_M, Terrain
from examples.sample_content.town import Town
from numpy.typing import NDArray

__all__ = ["Bridge", "Network", "Road", "Village"]

RoadKind = Literal["trunk", "main", "minor", "rail"]

_POINT_M = 25.0
_MERGE_M = 50.0


@dataclass(frozen=True)
class Road:
    """A road outside town, or the railway.

    Attributes
    ----------
    kind
        How important it is.
    name
        What signs call it: a number, or a name for lanes.
    line
        Where it runs, with a point about every 25 m.
    """

    kind: RoadKind
    name: str
    line: Points


@dataclass(frozen=True)
class Bridge:
    """A bridge over the river.

    Attributes
    ----------
    name
        What it is called.
    place
        Its middle.
    ends
        On the bank of the town, and on the other.
    """

    name: str
    place: Points
    ends: tuple[Points, Points]


@dataclass(frozen=True)
class Village:
    """A village.

    Attributes
    ----------
    name
        What it is called.
    place
        Its middle.
    buildings
        The corners of each.
    """

    name: str
    place: Points
    buildings: tuple[Points, ...]


class Network:
    """All roads of the map.

    Each is the easiest way over the ground: around hills rather than over them, along
    roads that are there already, and over the river at bridges alone.

    Parameters
    ----------
    terrain, town
        What they lead through and to.
    names
        Where their names come from.
    """

    def __init__(self, terrain: Terrain, town: Town, names: Names) -> None:
        rng = np.random.default_rng([terrain.seed, 3])
        self._ground = Ground(terrain, town)
        self.bridges = self._bridges(terrain, town, names)
        west, _, east = self.bridges
        self.roads: list[Road] = []
        trunk, main, other = (
            f"{letter} {rng.integers(low, low * 9)}"
            for letter, low in (("A", 40), ("B", 800), ("B", 900))
        )
        x = float(town.bridge[0])
        # Where the river enters the land and leaves it: what is north of it there has to
        # cross a bridge to get south.
        enters, leaves = np.interp([0.0, EAST_M], *_rising(terrain.river)).tolist()
        self._lay(
            "trunk",
            trunk,
            [
                (0.0, enters + 350),
                *west.ends,
                (EAST_M, leaves - 500),
            ],
        )
        self._lay("main", main, [town.gates["top"], (x + float(rng.uniform(-500, 500)), NORTH_M)])
        self._lay("main", main, [town.gates["bottom"], (x + float(rng.uniform(-600, 600)), 0.0)])
        self._lay("main", other, [west.ends[0], town.gates["upstream"]])
        self._lay(
            "main", other, [town.gates["downstream"], *east.ends, self._near(trunk, east.ends[1])]
        )
        spots = self._village_spots(terrain, town, rng)
        homes = {
            (False, True): (west.ends[0], (0.0, 4900.0)),
            (True, True): (east.ends[0], (EAST_M, 4600.0)),
            (False, False): (west.ends[1], (1200.0, 0.0)),
            (True, False): (east.ends[1], (5800.0, 0.0)),
        }
        for corner, spot in spots.items():
            for home in homes[corner]:
                self._lay("minor", names.lane(), [spot, home])
        self._lay("minor", names.lane(), [spots[False, True], town.gates["top"]])
        self._lay("minor", names.lane(), [spots[True, True], town.gates["top"]])
        self._lay(
            "minor", names.lane(), [spots[False, False], town.gates["bottom"], spots[True, False]]
        )
        self.railway = self._rail(town, (0.0, enters - 700), (EAST_M, leaves - 600))
        self.villages = [
            Village(names.place(), np.array(spot), self._houses(np.array(spot), rng))
            for spot in spots.values()
        ]

    def _bridges(self, terrain: Terrain, town: Town, names: Names) -> tuple[Bridge, Bridge, Bridge]:
        bridges = []
        along = lengths(terrain.river)
        for name, way in (
            (f"{names.place()} Bridge", town.bridge_way - 1750),
            (town.bridge_name, town.bridge_way),
            (f"{names.place()} Bridge", town.bridge_way + 1750),
        ):
            place = point_at(terrain.river, way)
            index = int(np.searchsorted(along, way))
            ahead = headings(terrain.river)[index]
            side = np.array([-ahead[1], ahead[0]]) * (float(terrain.river_half_width[index]) + 42)
            bridges.append(Bridge(name, place, (place + side, place - side)))
        return bridges[0], bridges[1], bridges[2]

    def _near(self, name: str, point: Points) -> Points:
        line = np.vstack([road.line for road in self.roads if road.name == name])
        candidates = line[line[:, 0] > point[0]]
        return _nearest(candidates, point)

    def _lay(self, kind: RoadKind, name: str, stops: list[Points | tuple[float, float]]) -> None:
        """Build a road by way of all stops; between the ends of a bridge it is straight.

        Where it would run beside a road that is there already, it is that road: only the
        rest is built, from junction to junction.
        """
        parts: list[Points] = []
        for start, goal in pairwise(stops):
            begin, end = np.asarray(start, float), np.asarray(goal, float)
            if any(
                begin is near and end is far
                for bridge in self.bridges
                for near, far in [bridge.ends]
            ):
                parts.append(resampled(np.vstack([begin, end]), _POINT_M))
            else:
                way = _eased(self._ground.way(begin, end, rail=False), rounds=4)
                parts.append(way if not parts else way[1:])
        line = np.vstack(parts)
        for piece in self._unbuilt(line):
            self.roads.append(Road(kind, name, piece))
        self._ground.pave(line)

    def _unbuilt(self, line: Points) -> list[Points]:
        """Return the parts of a line that no road is near to, with their junctions."""
        if not self.roads:
            return [line]
        built = np.vstack([road.line for road in self.roads])
        free = distances(line, built) > _MERGE_M
        pieces = []
        edges = np.flatnonzero(np.diff(np.concatenate([[0], free.astype(np.int8), [0]])))
        for begin, end in edges.reshape(-1, 2):
            # A short stretch in the middle is two roads side by side; at an end it leads there.
            inner = begin > 0 and end < len(line)
            if end - begin < (_MERGE_M / _POINT_M * 3 if inner else 2):
                continue
            piece = line[begin:end]
            if begin > 0:
                piece = np.vstack([_nearest(built, piece[0]), piece])
            if end < len(line):
                piece = np.vstack([piece, _nearest(built, piece[-1])])
            pieces.append(piece)
        return pieces

    def _rail(self, town: Town, start: tuple[float, float], end: tuple[float, float]) -> Road:
        station = town.gates["bottom"] - np.array([40.0, 60.0])
        parts = [
            self._ground.way(np.array(start), station, rail=True),
            self._ground.way(station, np.array(end), rail=True)[1:],
        ]
        self.station: Points = station
        return Road("rail", "Railway", _eased(np.vstack(parts), rounds=30))

    def _village_spots(
        self, terrain: Terrain, town: Town, rng: np.random.Generator
    ) -> dict[tuple[bool, bool], tuple[float, float]]:
        """Return a flat spot in each corner of the land, as (in the east, on the north bank)."""
        spots = {}
        tries = np.column_stack(
            [rng.uniform(600, EAST_M - 600, 900), rng.uniform(600, NORTH_M - 600, 900)]
        )
        far = terrain.river_distance_at(tries)
        flat = terrain.steepness_at(tries)
        from_town = np.hypot(*(tries - town.bridge).T)
        bank = np.interp(tries[:, 0], *_rising(terrain.river))
        for east in (False, True):
            for north in (False, True):
                fits = ((tries[:, 0] > town.bridge[0]) == east) & ((tries[:, 1] > bank) == north)
                score = (
                    flat + (far < 650) * 5.0 + np.maximum(0, 1600 - from_town) / 400 + ~fits * 99.0
                )
                best = tries[int(np.argmin(score))]
                spots[east, north] = (float(best[0]), float(best[1]))
        return spots

    def _houses(self, place: Points, rng: np.random.Generator) -> tuple[Points, ...]:
        """Return houses on both sides of the roads near the middle of a village."""
        built = np.vstack([road.line for road in self.roads])
        built = built[np.hypot(*(built - place).T) < 400]
        houses: list[Points] = []
        middles: list[Points] = []
        for road in self.roads:
            near = np.hypot(*(road.line - place).T) < 260
            ahead = headings(road.line)
            for point, way in zip(road.line[near], ahead[near], strict=True):
                for side in (-1, 1):
                    if rng.random() < 0.25:
                        continue
                    across = np.array([-way[1], way[0]]) * side
                    middle = point + across * rng.uniform(17, 26) + way * rng.uniform(-6, 6)
                    if any(np.hypot(*(middle - other)) < 21 for other in middles):
                        continue
                    if np.hypot(*(built - middle).T).min() < 14:
                        continue
                    middles.append(middle)
                    half, deep = way * rng.uniform(5, 9), across * rng.uniform(4, 6)
                    houses.append(
                        np.array(
                            [
                                middle - half - deep,
                                middle + half - deep,
                                middle + half + deep,
                                middle - half + deep,
                            ]
                        )
                    )
        return tuple(houses)


def _nearest(points: Points, point: Points) -> Points:
    nearest: Points = points[int(np.argmin(np.hypot(*(points - point).T)))]
    return nearest


def _eased(way: Points, *, rounds: int) -> Points:
    """Return a way from cell to cell as a line with gentle bends; its ends stay."""
    line = resampled(way, _POINT_M)
    for _ in range(rounds):
        line[1:-1] = (line[:-2] + line[1:-1] + line[2:]) / 3
    return resampled(line, _POINT_M)


def _rising(line: Points) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    order = np.argsort(line[:, 0], kind="stable")
    return line[order, 0], line[order, 1]
