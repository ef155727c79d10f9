"""Compiled: what users choose in the lower bound, and how its multipliers follow them."""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["cheapest_access", "choose", "follow", "near_brokers"]


@kernel
def cheapest_access(
    demands: FloatArray, access: FloatArray, surcharges: FloatArray, loads: FloatArray
) -> float:
    """Return what access costs when everybody takes the broker cheapest with its surcharge.

    `access` (users, brokers) are prices, `surcharges` (brokers,) what is added to them. Fills
    `loads` (brokers,) with the demand at each.
    """
    total = 0.0
    loads[:] = 0.0
    for u in range(len(demands)):
        best, least = 0, np.inf
        for b in range(len(surcharges)):
            price = access[u, b] + surcharges[b]
            if price < least:
                best, least = b, price
        total += demands[u] * least
        loads[best] += demands[u]
    return total


@kernel
def near_brokers(
    access: FloatArray, surcharges: FloatArray, near: IntArray, far: FloatArray
) -> None:
    """Fill the brokers cheapest with their surcharges, and the least price of all others.

    `access` and `surcharges` as in `cheapest_access`. `near` (users, width) is in no order; `far`
    (users,) is infinite when all are near.
    """
    users, width = near.shape
    prices = np.empty(width)
    for u in range(users):
        far[u] = np.inf
        count, dearest = 0, 0
        for b in range(len(surcharges)):
            price = access[u, b] + surcharges[b]
            if count < width:
                near[u, count], prices[count] = b, price
                if price > prices[dearest]:
                    dearest = count
                count += 1
            elif price < prices[dearest]:
                far[u] = min(far[u], prices[dearest])
                near[u, dearest], prices[dearest] = b, price
                for j in range(width):
                    if prices[j] > prices[dearest]:
                        dearest = j
            else:
                far[u] = min(far[u], price)


@kernel
def choose(
    demands: FloatArray,
    near: IntArray,
    near_prices: FloatArray,
    far: FloatArray,
    surcharges: FloatArray,
    far_rise: float,
    starts: IntArray,
    channels: IntArray,
    shares: FloatArray,
    opened: BoolArray,
    chosen: IntArray,
    loads: FloatArray,
) -> tuple[float, float]:
    """Let every user choose the broker where access and shares together cost least.

    Parameters
    ----------
    demands, near, far, surcharges
        As in `near_brokers`; surcharges may have changed since `far` was filled.
    near_prices
        The access prices of the near brokers, side by side: read from the table of all
        prices, they would be nearly all of the time that this takes.
    far_rise
        By how much every surcharge has risen since at least (it may be negative).
    starts, channels
        The wishes of user `u` are `starts[u]` up to `starts[u + 1]`, for these channels.
    shares
        `shares[k, j]`: what the user of wish `k` pays for the opening of its channel at its
        j-th near broker.
    opened
        `opened[c, b]`: whether channel `c` opens broker `b`.
    chosen
        Filled: which of its near brokers each user chooses, -1 for one of the others.
    loads
        Filled: the demand at each broker, of users with a near one.

    Returns
    -------
    total
        What all users pay.
    disagreement
        How many shares should change, because user and channel do not agree.
    """
    width = near.shape[1]
    row = np.empty(width)
    loads[:] = 0.0
    total, disagreement = 0.0, 0.0
    for u in range(len(demands)):
        for j in range(width):
            row[j] = demands[u] * (near_prices[u, j] + surcharges[near[u, j]])
        for k in range(starts[u], starts[u + 1]):
            for j in range(width):
                row[j] += shares[k, j]
        best, least = -1, demands[u] * (far[u] + far_rise) if demands[u] > 0.0 else np.inf
        for j in range(width):
            if row[j] < least:
                best, least = j, row[j]
        chosen[u] = best
        total += least
        if best >= 0:
            loads[near[u, best]] += demands[u]
        for k in range(starts[u], starts[u + 1]):
            for j in range(width):
                is_open = opened[channels[k], near[u, j]]
                if (j == best and not is_open) or (j != best and is_open and shares[k, j] > 0.0):
                    disagreement += 1.0
    return total, disagreement


@kernel
def follow(
    step: float,
    near: IntArray,
    starts: IntArray,
    channels: IntArray,
    chosen: IntArray,
    opened: BoolArray,
    shares: FloatArray,
    gains: FloatArray,
) -> None:
    """Raise shares where users are and their channel is not, lower them where it is opposite.

    `step` is by how much; the sum of the shares by channel and broker is written to `gains`. The
    others are those of `choose`.
    """
    gains[:] = 0.0
    for u in range(len(near)):
        for k in range(starts[u], starts[u + 1]):
            c = channels[k]
            for j in range(near.shape[1]):
                b = near[u, j]
                if j == chosen[u]:
                    if not opened[c, b]:
                        shares[k, j] += step
                elif opened[c, b]:
                    shares[k, j] = max(0.0, shares[k, j] - step)
                gains[c, b] += shares[k, j]
