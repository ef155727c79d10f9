"""What moves in the clip: cars on the streets and boats on the river."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from examples.sample_content.camera import Camera
from examples.sample_content.country import Country
from examples.sample_content.paths import Points, headings, lengths, resampled
from examples.sample_content.terrain import Extent
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Traffic"]

_CARS = 46
_PAINTS = ((225, 225, 228), (40, 42, 48), (150, 30, 30), (40, 70, 140), (190, 190, 60))


@dataclass(frozen=True)
class _Mover:
    """A car or a boat: where it begins, how fast it is, and what it looks like."""

    line: Points
    way: NDArray[np.float64]
    ahead: Points
    start: float
    speed: float
    side: float
    long: float
    paint: tuple[int, int, int]

    def corners(self, time: float) -> Points:
        """Return the corners of its shadow, its body and its roof at this time, [12, 2]."""
        at = (self.start + self.speed * time) % self.way[-1]
        index = int(np.searchsorted(self.way, at))
        ahead = self.ahead[index]
        right = np.array([ahead[1], -ahead[0]])
        back = self.line[index] - ahead * (self.way[index] - at)
        middle = back + right * self.side
        half, across = ahead * self.long / 2, right * (0.1 * self.long + 0.65)
        frame = np.array([-half - across, half - across, half + across, across - half])
        shadow = middle + 1.12 * frame + np.array([0.7, -0.7])
        return np.vstack([shadow, middle + frame, middle + 0.5 * frame])


class Traffic:
    """Cars on the streets and boats on the river."""

    def __init__(self, land: Country, extent: Extent) -> None:
        rng = np.random.default_rng([land.seed, 7])
        streets = [street.line for street in land.town.streets if extent.holds(street.line).any()]
        weights = np.array([lengths(line)[-1] for line in streets])
        self._movers: list[_Mover] = []
        for index in rng.choice(len(streets), _CARS, p=weights / weights.sum()):
            line = streets[index] if rng.random() < 0.5 else streets[index][::-1]
            long = 5.6 if rng.random() < 0.85 else 12.0
            paint = _PAINTS[int(rng.integers(len(_PAINTS)))]
            start = rng.uniform(0, lengths(line)[-1])
            self._add(line, start, rng.uniform(6, 13), 3.0, long, paint)
        river = land.terrain.river
        seen = np.flatnonzero(extent.holds(river))
        reach = river[max(0, seen[0] - 5) : seen[-1] + 5]
        for share, side in ((0.35, 8.0), (0.47, -9.0), (0.6, 3.0)):
            self._add(reach, share * float(lengths(reach)[-1]), 5.0, side, 9.0, (236, 120, 30))

    def _add(
        self,
        line: Points,
        start: float,
        speed: float,
        side: float,
        long: float,
        paint: tuple[int, int, int],
    ) -> None:
        line = resampled(line, 5)
        mover = _Mover(line, lengths(line), headings(line), start, speed, side, long, paint)
        self._movers.append(mover)

    def draw(self, frame: Image, camera: Camera, time: float) -> None:
        """Draw everything that moves into a frame."""
        from PIL.ImageDraw import Draw

        draw = Draw(frame)
        corners = camera.seen(np.vstack([mover.corners(time) for mover in self._movers]))
        for mover, parts in zip(self._movers, corners.reshape(-1, 3, 4, 2).tolist(), strict=True):
            red, green, blue = mover.paint
            colours = ((44, 44, 42), mover.paint, (red // 2, green // 2, blue // 2))
            for part, colour in zip(parts, colours, strict=True):
                draw.polygon([(x, y) for x, y in part], fill=colour)
