"""The compiled loop of quoted values."""

from __future__ import annotations

from distributary.arrays import BoolArray, FloatArray
from distributary.kernels import kernel

__all__ = ["reverting_jumps"]


@kernel
def reverting_jumps(
    jumps: BoolArray, shocks: FloatArray, mean: float, reversion: float, values: FloatArray
) -> None:
    """Fill `values` (N,) with a process that stays, or jumps and reverts to its mean.

    At a jump the value moves by `reversion` of its distance from the mean, and by the
    shock of that time. It begins at the mean.
    """
    value = mean
    for time in range(values.size):
        if jumps[time]:
            value += reversion * (mean - value) + shocks[time]
        values[time] = value
