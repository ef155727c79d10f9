"""Compiled: users one after another, each to a broker that still has room.

Shapes: `users` is the order in which they come; `prices` (users, brokers), `demands`
(users,), `limits` and `loads` (brokers,). Both functions write `broker_of` (users,) at the
users that find a broker, and count them into `loads`.
"""

from __future__ import annotations

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["pack", "scatter"]


@kernel
def pack(
    users: IntArray,
    prices: FloatArray,
    demands: FloatArray,
    limits: FloatArray,
    loads: FloatArray,
    broker_of: IntArray,
) -> None:
    """Attach each user to the cheapest broker with room; of equal ones to the first."""
    for u in users:
        best = -1
        for b in range(len(limits)):
            if loads[b] + demands[u] <= limits[b] and (best < 0 or prices[u, b] < prices[u, best]):
                best = b
        if best >= 0:
            broker_of[u] = best
            loads[best] += demands[u]


@kernel
def scatter(
    numbers: FloatArray,
    demands: FloatArray,
    limits: FloatArray,
    loads: FloatArray,
    broker_of: IntArray,
) -> None:
    """Attach each user to any broker with room, chosen by its number in [0, 1)."""
    for u in range(len(demands)):
        count = 0
        for b in range(len(limits)):
            if loads[b] + demands[u] <= limits[b]:
                count += 1
        left = int(numbers[u] * count)
        for b in range(len(limits)):
            if loads[b] + demands[u] <= limits[b]:
                if left == 0:
                    broker_of[u] = b
                    loads[b] += demands[u]
                    break
                left -= 1
