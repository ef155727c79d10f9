"""Random surfaces over the plane: the same at every point, however much of it is looked at."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Raster", "chances", "fractal_noise", "noise", "ramp"]

Raster: TypeAlias = NDArray[np.float32]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ROW = np.uint64(0xC2B2AE3D27D4EB4F)
_MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)
_TOP = np.uint64(40)
_STRIP_ROWS = 64


def chances(columns: NDArray[np.int64], rows: NDArray[np.int64], *, seed: int) -> Raster:
    """Return a number in [0, 1) for each cell of the plane, of any shape the two make together.

    A hash rather than a stream of draws: a detail of the map then shows the same hills as
    the whole of it.
    """
    bits = np.asarray(columns).astype(np.uint64) * _GOLDEN
    bits = bits ^ (np.asarray(rows).astype(np.uint64) * _ROW)
    bits = bits + np.asarray([seed + 1]).astype(np.uint64) * _MIX_1
    bits = (bits ^ (bits >> _SHIFT)) * _MIX_1
    bits = (bits ^ (bits >> _SHIFT)) * _MIX_2
    bits = bits ^ (bits >> _SHIFT)
    return (bits >> _TOP).astype(np.float32) / np.float32(1 << 24)


def noise(
    xs: NDArray[np.float64], ys: NDArray[np.float64], *, seed: int, wavelength: float
) -> Raster:
    """Return a smooth random surface, about -1 to 1, at every crossing of `xs` and `ys`.

    Cubic splines through random values on a lattice. Done along one axis after the other,
    as the splines are separable: four products a pixel instead of sixteen.

    Parameters
    ----------
    xs, ys
        Columns and rows, in metres.
    seed
        Which surface.
    wavelength
        Distance between the points of the lattice, in metres.
    """
    column, across = _spline(xs / wavelength)
    row, down = _spline(ys / wavelength)
    columns = np.arange(column.min(), column.max() + 4)
    rows = np.arange(row.min(), row.max() + 4)
    values = chances(columns[None, :], rows[:, None], seed=seed) * 2 - 1
    column -= column.min()
    row -= row.min()
    wide = sum(values[:, column + k] * across[k] for k in range(4))
    assert isinstance(wide, np.ndarray)
    surface = np.zeros((len(ys), len(xs)), np.float32)
    # The spline averages the values of the lattice; this restores their spread.
    down *= np.float32(1.8)
    # A few rows at a time, which the processor keeps at hand: twice as fast as all at once.
    for begin in range(0, len(ys), _STRIP_ROWS):
        strip = slice(begin, begin + _STRIP_ROWS)
        for k in range(4):
            surface[strip] += wide[row[strip] + k] * down[k, strip, None]
    return surface


def _spline(position: NDArray[np.float64]) -> tuple[NDArray[np.int64], Raster]:
    """Return the first of four lattice points around each position, and their weights."""
    cell = np.floor(position)
    t = (position - cell).astype(np.float32)
    weights = np.stack(
        [
            (1 - t) ** 3 / 6,
            (3 * t**3 - 6 * t**2 + 4) / 6,
            (-3 * t**3 + 3 * t**2 + 3 * t + 1) / 6,
            t**3 / 6,
        ]
    )
    return cell.astype(np.int64) - 1, weights.astype(np.float32)


def fractal_noise(
    xs: NDArray[np.float64],
    ys: NDArray[np.float64],
    *,
    seed: int,
    wavelength: float,
    octaves: int,
    gain: float = 0.5,
) -> Raster:
    """Return a rough random surface: one smooth one, and finer ones of less height on top.

    Octaves finer than two steps between columns are left out: they would not show as
    detail but as a pattern that is not there.
    """
    step = abs(float(xs[1] - xs[0])) if len(xs) > 1 else wavelength
    surface = np.zeros((len(ys), len(xs)), np.float32)
    height = 1.0
    for octave in range(octaves):
        length = wavelength / 2**octave
        if octave and length < 2 * step:
            break
        surface += np.float32(height) * noise(
            xs + 31.7 * octave, ys - 17.3 * octave, seed=seed * 64 + octave, wavelength=length
        )
        height *= gain
    return surface


def ramp(values: Raster, low: float, high: float) -> Raster:
    """Return 0 below `low`, 1 above `high`, and a smooth rise between."""
    t = np.clip((values - np.float32(low)) / np.float32(high - low), 0, 1)
    rise: Raster = t * t * (3 - 2 * t)
    return rise
