"""Lines on the map: how long they are, where they lead, and what is beside them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Points",
    "distances",
    "headings",
    "left_of",
    "lengths",
    "point_at",
    "resampled",
]

Points: TypeAlias = NDArray[np.float64]
"""Points in metres, x to the east and y to the north, shaped [count, 2]."""


def lengths(line: Points) -> NDArray[np.float64]:
    """Return how far each point is along the line."""
    steps = np.hypot(*np.diff(line, axis=0).T)
    return np.concatenate([[0.0], np.cumsum(steps)])


def point_at(line: Points, distance: float) -> Points:
    """Return the point at this distance from the beginning."""
    along = lengths(line)
    return np.array([np.interp(distance, along, line[:, axis]) for axis in (0, 1)])


def resampled(line: Points, step: float) -> Points:
    """Return the line with points at equal distances of about `step`."""
    along = lengths(line)
    count = max(2, round(along[-1] / step) + 1)
    at = np.linspace(0, along[-1], count)
    return np.column_stack([np.interp(at, along, line[:, axis]) for axis in (0, 1)])


def headings(line: Points) -> Points:
    """Return the direction of the line at each point, of length 1."""
    ahead = np.gradient(line, axis=0)
    unit: Points = ahead / np.maximum(np.hypot(ahead[:, :1], ahead[:, 1:]), 1e-9)
    return unit


def left_of(line: Points, distance: NDArray[np.float64] | float) -> Points:
    """Return the line moved to its left by a distance, one for all or one for each point."""
    ahead = headings(line)
    moved: Points = line + np.column_stack([-ahead[:, 1], ahead[:, 0]]) * np.reshape(
        distance, (-1, 1)
    )
    return moved


def distances(points: Points, line: Points) -> NDArray[np.float64]:
    """Return the distance of each point to the nearest point of a finely sampled line."""
    nearest = np.empty(len(points))
    for begin in range(0, len(points), 4096):
        part = points[begin : begin + 4096]
        squares = (part[:, :1] - line[:, 0]) ** 2 + (part[:, 1:] - line[:, 1]) ** 2
        nearest[begin : begin + 4096] = np.sqrt(squares.min(axis=1))
    return nearest
