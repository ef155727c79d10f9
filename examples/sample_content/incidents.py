"""What has happened: a dozen incidents, each where such a thing would happen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from examples.sample_content.paths import Points, distances
from examples.sample_content.roads import Network, Road
from examples.sample_content.terrain import EAST_M, NORTH_M, Terrain
from examples.sample_content.town import Town, Use
from examples.sample_content.wording import TITLES, Kind, describe
from numpy.typing import NDArray

__all__ = ["Incident", "place_incidents"]

# Markers closer than this would touch on the printed map.
_APART_M = 330.0


@dataclass(frozen=True)
class Incident:
    """One numbered item of the map.

    Attributes
    ----------
    number
        From 1.
    kind
        What sort of thing it is.
    title
        What it is, in two or three words.
    where
        The road, bridge or building.
    place
        Where that is.
    text
        What people should know, in a few sentences.
    """

    number: int
    kind: Kind
    title: str
    where: str
    place: Points
    text: str


def place_incidents(
    terrain: Terrain, town: Town, network: Network, *, river_name: str
) -> list[Incident]:
    """Return the incidents of this country, the most pressing first."""
    rng = np.random.default_rng([terrain.seed, 4])
    spots = _Spots(terrain, town, network, rng)
    # Fixed places first: what may be anywhere along a road then keeps clear of them.
    water = spots.take(network.villages[2].place)
    found: list[tuple[Kind, str, Points]] = [
        ("bridge", network.bridges[1].name, spots.take(network.bridges[1].place)),
        ("flooded", *spots.on_road(("trunk",), "flooded")),
        ("evacuation", f"the quarter below {_cross_street(town)}", spots.in_town(-330, 150)),
        ("reception", f"{town.name} School", spots.block("school")),
        ("hospital", f"{town.name} Hospital", spots.block("hospital")),
        ("landslip", *spots.on_road(("minor", "main"), "steep")),
        ("flooded_lane", *spots.on_road(("main", "minor"), "flooded")),
        ("railway", "the railway", spots.railway()),
        ("power", *spots.on_road(("minor",), "high")),
        ("water", network.villages[2].name, water),
        (
            "landing",
            f"the playing field at {network.villages[1].name}",
            spots.beside(network.villages[1].place),
        ),
        ("sandbags", "the works depot", spots.block("works")),
        ("trees", *spots.on_road(("main", "minor"), "high")),
    ]
    words = {
        "town": town.name,
        "river": river_name,
        "bridge": network.bridges[1].name,
        "way_round": network.bridges[2].name,
        "school": f"{town.name} School",
        "village": network.villages[0].name,
        "far_village": network.villages[3].name,
        "trunk": network.roads[0].name,
        "street": _cross_street(town),
    }
    return [
        Incident(number, kind, TITLES[kind], where, place, describe(kind, where, words, rng))
        for number, (kind, where, place) in enumerate(found, start=1)
    ]


def _cross_street(town: Town) -> str:
    """Return the name of a street along the river, two blocks from it."""
    wanted = town.placed(np.array([[-250.0, 260.0]]))
    side = [street for street in town.streets if not street.main]
    return min(side, key=lambda street: float(distances(wanted, street.line)[0])).name


class _Spots:
    """Finds places that are far enough from those already taken."""

    def __init__(
        self, terrain: Terrain, town: Town, network: Network, rng: np.random.Generator
    ) -> None:
        self._terrain, self._town, self._network, self._rng = terrain, town, network, rng
        self._taken: list[Points] = []

    def take(self, place: Points) -> Points:
        self._taken.append(place)
        return place

    def on_road(self, kinds: tuple[str, ...], wish: str) -> tuple[str, Points]:
        """Return a road of one of the kinds and the point of it that has most of the wish."""
        best: tuple[float, Road, Points] | None = None
        for road in self._network.roads:
            if road.kind not in kinds or len(road.line) < 8:
                continue
            line = road.line[2:-2]
            score = self._score(line, wish) + self._rng.uniform(0, 0.02, len(line))
            score -= 100 * (self._crowding(line) | ~_well_inside(line))
            index = int(np.argmax(score))
            if best is None or score[index] > best[0]:
                best = float(score[index]), road, line[index]
        assert best is not None
        name = best[1].name
        return name if best[1].kind == "minor" else f"the {name}", self.take(best[2])

    def railway(self) -> Points:
        line = self._network.railway.line
        score = self._score(line, "flooded") - 100 * (self._crowding(line) | ~_well_inside(line))
        return self.take(line[int(np.argmax(score))])

    def in_town(self, along: float, off: float) -> Points:
        return self.take(self._town.placed(np.array([[along, off]]))[0])

    def block(self, use: Use) -> Points:
        """Return the middle of a block of this use that is free, and dry if there is one."""
        centres = np.array([block.centre for block in self._town.blocks if block.use == use])
        worse = self._terrain.flooded_at(centres) * 1.0 + 2.0 * self._crowding(centres)
        return self.take(centres[int(np.argmin(worse))])

    def beside(self, place: Points) -> Points:
        """Return a flat spot a little way off, away from the edges of the map."""
        angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
        ring = place + 380 * np.column_stack([np.cos(angles), np.sin(angles)])
        score = self._terrain.steepness_at(ring) + 9 * (self._crowding(ring) | ~_well_inside(ring))
        return self.take(ring[int(np.argmin(score))])

    def _score(self, line: Points, wish: str) -> NDArray[np.float64]:
        if wish == "flooded":
            off_bridge = self._terrain.river_distance_at(line) > 110
            return (self._terrain.flooded_at(line) & off_bridge).astype(float)
        if wish == "steep":
            return self._terrain.steepness_at(line)
        return self._terrain.height_at(line) / 400

    def _crowding(self, points: Points) -> NDArray[np.bool_]:
        if not self._taken:
            return np.zeros(len(points), bool)
        near: NDArray[np.bool_] = distances(points, np.array(self._taken)) < _APART_M
        return near


def _well_inside(points: Points) -> NDArray[np.bool_]:
    """Return which points are far enough from the edges for a label to fit."""
    x, y = points[:, 0], points[:, 1]
    fits: NDArray[np.bool_] = (x > 500) & (x < EAST_M - 500) & (y > 350) & (y < NORTH_M - 350)
    return fits
