"""Wirings to start a search from."""

from __future__ import annotations

import numpy as np

from distributary.arrays import IntArray
from distributary.wiring._packing_kernels import pack
from distributary.wiring.capacity import room_limits
from distributary.wiring.problem import WiringProblem

__all__ = ["attach_rest", "central_wiring", "nearest_brokers", "nearest_users"]

# Users whose prices are looked at together: the order of a hundred million prices at once
# would take another gigabyte.
_BLOCK = 4_096


def central_wiring(problem: WiringProblem, share: float) -> IntArray | None:
    """Return the wiring that packs users onto few central brokers, or None if they do not fit.

    `share` is the capacity of the brokers that are used, as a multiple of all demand; when
    capacities are not limited, the share of the brokers that are used instead.
    """
    closeness = problem.core_prices.sum(axis=1)
    order = np.argsort(closeness, kind="stable")
    capacities = problem.capacities[order]
    if np.isfinite(capacities).all():
        needed = share * float(problem.demands.sum())
        count = int(np.searchsorted(np.cumsum(capacities), needed)) + 1
    else:
        count = int(np.ceil(min(share, 1.0) * problem.broker_count))
    # Brokers that are not chosen have no room at all.
    limits = np.full(problem.broker_count, -1.0)
    limits[order[:count]] = room_limits(problem)[order[:count]]
    broker_of = np.full(problem.user_count, -1, dtype=np.int64)
    users = np.argsort(-problem.demands, kind="stable")
    carried = np.zeros(problem.broker_count)
    pack(users, problem.access_prices, problem.demands, limits, carried, broker_of)
    return None if (broker_of < 0).any() else broker_of


def attach_rest(problem: WiringProblem, broker_of: IntArray) -> IntArray:
    """Return the wiring with users without a broker (-1) at the cheapest one with room.

    Where there is no room at all, they go to the broker with most of it left.
    """
    wiring = np.array(broker_of, dtype=np.int64)
    limits = room_limits(problem)
    settled = wiring >= 0
    carried = np.bincount(
        wiring[settled], weights=problem.demands[settled], minlength=problem.broker_count
    ).astype(np.float64)
    rest = np.flatnonzero(~settled)
    rest = rest[np.argsort(-problem.demands[rest], kind="stable")]
    pack(rest, problem.access_prices, problem.demands, limits, carried, wiring)
    for u in np.flatnonzero(wiring < 0):
        wiring[u] = int(np.argmax(limits - carried))
        carried[wiring[u]] += problem.demands[u]
    return wiring


def nearest_brokers(problem: WiringProblem, count: int) -> IntArray:
    """Return the brokers with the cheapest access for each user, shape (users, count)."""
    count = min(count, problem.broker_count)
    near = np.empty((problem.user_count, count), dtype=np.int64)
    for first in range(0, problem.user_count, _BLOCK):
        block = problem.access_prices[first : first + _BLOCK]
        near[first : first + _BLOCK] = np.argpartition(block, count - 1, axis=1)[:, :count]
    return near


def nearest_users(problem: WiringProblem, count: int) -> IntArray:
    """Return the users that lose least by being at each broker, shape (brokers, count).

    That is their traffic times how much dearer the broker is than their cheapest one.
    """
    count = min(count, problem.user_count)
    cheapest = problem.access_prices.min(axis=1)
    users = np.empty((problem.broker_count, count), dtype=np.int64)
    for b in range(problem.broker_count):
        losses = problem.demands * (problem.access_prices[:, b] - cheapest)
        least = np.argpartition(losses, count - 1)[:count] if count else users[b]
        users[b] = least[np.argsort(losses[least], kind="stable")]
    return users
