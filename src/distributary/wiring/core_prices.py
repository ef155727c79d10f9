"""Prices between brokers as they are given: the same both ways, and nothing to oneself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from distributary.arrays import FloatArray
from distributary.errors import BadInput

__all__ = ["symmetric_prices"]

# Two ways of working out one distance may differ by rounding.
_ROUNDING = 1e-9


def symmetric_prices(prices: FloatArray, place: Callable[[int, int], str]) -> FloatArray:
    """Return prices that are exactly symmetric, or raise `BadInput` if they are not at all.

    `prices` are finite and not negative; `place` tells where the price from one broker to another
    is, for the message.
    """
    back = prices.T
    own = np.flatnonzero(prices.diagonal())
    if not own.size and (prices == back).all():
        return prices
    if own.size:
        at = int(own[0])
        raise BadInput(
            place(at, at),
            f"must be 0, not {prices[at, at]:g}: a broker is at no distance to itself",
        )
    apart = np.abs(prices - back) > _ROUNDING * np.maximum(prices, back)
    if apart.any():
        i, j = (int(index) for index in np.argwhere(apart)[0])
        raise BadInput(
            place(i, j),
            f"is {prices[i, j]:.12g}, but the way back, {place(j, i)}, is {prices[j, i]:.12g}",
            hint="prices between brokers are the same both ways",
        )
    return np.asarray(0.5 * (prices + back))
