"""Greedy packing: everybody goes to the cheapest broker with room."""

from __future__ import annotations

import numpy as np

from distributary.arrays import IntArray
from distributary.wiring._packing_kernels import pack
from distributary.wiring.capacity import check_feasible, make_room, room_limits
from distributary.wiring.problem import WiringProblem

__all__ = ["packing_wiring"]


def packing_wiring(problem: WiringProblem, *, seed: int = 0) -> IntArray:
    """Return the wiring in which each user in turn takes the cheapest broker with room.

    This is the first stage of two-stage greedy packing (Zhao and Wu, Algorithm 1); the
    second, trees between brokers, is what any wiring costs. It sees access prices alone: when
    no capacity binds, no wiring has a smaller access cost, but what brokers then send each
    other may cost any multiple of it. Users come in the order of their names, and of equally
    cheap brokers the first is taken. Time is proportional to users times brokers.

    `seed` is used only when users are left without a broker and others must move. Raises
    `InfeasiblePlan` when no wiring that respects the capacities is found.
    """
    check_feasible(problem)
    broker_of = np.full(problem.user_count, -1, dtype=np.int64)
    pack(
        np.arange(problem.user_count),
        problem.access_prices,
        problem.demands,
        room_limits(problem),
        np.zeros(problem.broker_count),
        broker_of,
    )
    return make_room(problem, broker_of, seed=seed)
