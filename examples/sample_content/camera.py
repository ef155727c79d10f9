"""The camera of the clip, moment by moment."""

from __future__ import annotations

import math

import numpy as np
from examples.sample_content.terrain import Extent
from numpy.typing import NDArray

__all__ = ["VIEW_M", "Camera", "centre"]

VIEW_M = 520.0
"""How much of the land a frame shows at most, from left to right."""
_SWEEP_M = (230.0, 150.0)


def centre(time: float, x: float, y: float) -> tuple[float, float]:
    """Return what the camera looks at: it sweeps to and fro around a point of the land."""
    east = _SWEEP_M[0] * math.sin(2 * math.pi * time / 34 - 0.9)
    north = _SWEEP_M[1] * math.sin(2 * math.pi * time / 23 - 0.6)
    return x + east, y + north


class Camera:
    """Where the camera looks at one moment: it sweeps over the town, turning and rising."""

    def __init__(
        self,
        time: float,
        x: float,
        y: float,
        width: int,
        height: int,
        extent: Extent,
        per_metre: float,
    ) -> None:
        self.size = (width, height)
        self._x, self._y = centre(time, x, y)
        turn = 0.22 * math.sin(2 * math.pi * time / 19)
        metres = VIEW_M / width * (0.92 - 0.08 * math.cos(2 * math.pi * time / 15))
        self._cos, self._sin = math.cos(turn), math.sin(turn)
        self._metres = metres
        self._extent, self._per_metre = extent, per_metre

    def to_ground(self, east: float = 0.0, north: float = 0.0) -> tuple[float, ...]:
        """Return the affine map from pixels of the frame to those of the picture of the ground."""
        scale = self._metres * self._per_metre
        a, b = scale * self._cos, scale * self._sin
        width, height = self.size
        column = (self._x + east - self._extent.west) * self._per_metre
        row = (self._extent.north - self._y - north) * self._per_metre
        return (
            a, -b, column - a * width / 2 + b * height / 2,
            b, a, row - b * width / 2 - a * height / 2,
        )  # fmt: skip

    def seen(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where points of the land are in the frame."""
        east, south = points[:, 0] - self._x, self._y - points[:, 1]
        across = (east * self._cos + south * self._sin) / self._metres
        down = (south * self._cos - east * self._sin) / self._metres
        return np.column_stack([across + self.size[0] / 2, down + self.size[1] / 2])
