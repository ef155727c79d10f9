"""The yardstick: every user at a random broker."""

from __future__ import annotations

import numpy as np

from distributary.arrays import IntArray
from distributary.wiring._packing_kernels import scatter
from distributary.wiring.capacity import check_feasible, make_room, room_limits
from distributary.wiring.problem import WiringProblem

__all__ = ["random_wiring"]


def random_wiring(problem: WiringProblem, *, seed: int = 0) -> IntArray:
    """Return the wiring in which each user in turn takes any broker with room.

    What Zhao and Wu compare with: the cost reduction ratio of a method is the cost of this
    divided by its own.

    Raises `InfeasiblePlan` when no wiring that respects the capacities is found.
    """
    check_feasible(problem)
    broker_of = np.full(problem.user_count, -1, dtype=np.int64)
    scatter(
        np.random.default_rng(seed).random(problem.user_count),
        problem.demands,
        room_limits(problem),
        np.zeros(problem.broker_count),
        broker_of,
    )
    return make_room(problem, broker_of, seed=seed)
