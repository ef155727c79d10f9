"""Prices between brokers: what a unit of traffic costs from one to another."""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray
from distributary.kernels import kernel

__all__ = ["shortest_prices"]

# A path is shorter when it is so by more than rounding.
_ROUNDING = 1e-12


def shortest_prices(prices: FloatArray) -> FloatArray:
    """Return the prices along cheapest paths, where those are cheaper than the direct way.

    Prices are symmetric, with a zero diagonal, shape (brokers, brokers), and so is the result,
    which is a metric. Prices that keep the triangle inequality (up to rounding) are as given.
    """
    shortest = np.array(prices, dtype=np.float64)
    _shorten(shortest)
    return shortest


@kernel
def _shorten(prices: FloatArray) -> None:
    """Replace every price by that of the cheapest path (Floyd and Warshall)."""
    count = len(prices)
    for by in range(count):
        for i in range(count):
            first = prices[i, by]
            for j in range(count):
                path = first + prices[by, j]
                if path < prices[i, j] * (1.0 - _ROUNDING):
                    prices[i, j] = path
