"""Clustering: users with much traffic between them share a broker."""

from __future__ import annotations

import numpy as np

from distributary.arrays import IntArray
from distributary.wiring import _clustering_kernels as kernels
from distributary.wiring.capacity import check_feasible, make_room, room_limits
from distributary.wiring.problem import WiringProblem

__all__ = ["clustering_wiring"]


def clustering_wiring(problem: WiringProblem, *, seed: int = 0) -> IntArray:
    """Return the wiring that clusters users by traffic over access price.

    This is the first stage of two-stage clustering (Zhao and Wu, Algorithm 2, read as their
    text has it: the best ratio is the largest). The traffic of two users is what either
    publishes on channels of the other. Brokers, in the order of their names, are each seeded
    with the pair of users without a broker that fits and has the largest traffic over the
    sum of their prices to that broker; pairs without traffic seed nothing. Then all other
    users join, the heaviest first: each takes the broker with room whose users have the
    largest traffic with it over its price there. No price is the best ratio, the larger
    traffic first. Of equal pairs and users the first is taken; of equal brokers the
    cheapest, so that a user without traffic anywhere goes to the nearest, and then the first.

    The result is that of looking at every pair for every broker, but bounds leave few pairs
    to look at: time is about users times brokers times the channels of a user. It may be
    any factor from the best wiring: trees between brokers play no part.

    `seed` is used, and `InfeasiblePlan` raised, as by `packing_wiring`.
    """
    check_feasible(problem)
    limits = room_limits(problem)
    rows = (
        problem.publish_start,
        problem.publish_channel,
        problem.publish_rate,
        problem.interest_start,
        problem.interest_channel,
    )
    broker_of = np.full(problem.user_count, -1, dtype=np.int64)
    kernels.seed_pairs(
        problem.access_prices, problem.demands, limits, *rows, problem.channel_count, broker_of
    )
    seeded = np.flatnonzero(broker_of >= 0)
    loads = np.bincount(
        broker_of[seeded], weights=problem.demands[seeded], minlength=problem.broker_count
    ).astype(np.float64)
    shape = (problem.channel_count, problem.broker_count)
    entering, readers = np.zeros(shape), np.zeros(shape)
    published = broker_of[problem.publisher] >= 0
    np.add.at(
        entering,
        (problem.publish_channel[published], broker_of[problem.publisher[published]]),
        problem.publish_rate[published],
    )
    wanted = broker_of[problem.reader] >= 0
    np.add.at(readers, (problem.interest_channel[wanted], broker_of[problem.reader[wanted]]), 1.0)
    heaviest = np.argsort(-problem.demands, kind="stable")
    kernels.join(
        heaviest[broker_of[heaviest] < 0],
        problem.access_prices,
        problem.demands,
        limits,
        *rows,
        entering,
        readers,
        loads,
        broker_of,
    )
    return make_room(problem, broker_of, seed=seed)
