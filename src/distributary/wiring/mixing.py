"""Steiner-tree mixing: many trees say where users belong, and a draw decides."""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.wiring import _mixing_kernels as kernels
from distributary.wiring.capacity import check_feasible, make_room, room_limits
from distributary.wiring.problem import WiringProblem, row_starts

__all__ = ["edge_weights", "mixing_wiring"]


def mixing_wiring(problem: WiringProblem, *, seed: int = 0) -> IntArray:
    """Return the wiring of Steiner-tree mixing (Zhao and Wu, section IV).

    For every channel and publisher a tree is grown that reaches the subscribers, and every
    edge between a user and a broker collects the traffic that passes it: `edge_weights` has
    the details. Then each user, in the order of names, draws a broker with a probability
    proportional to that traffic, among the brokers with room; when none of those carried any,
    it goes to the nearest with room. The third phase, trees between brokers, is what any
    wiring costs.

    Nothing is promised about the result: it is a draw. Where access prices keep the triangle
    inequality together with those between brokers, no way to a user is shorter than the direct
    one, so that each tree is a star around the broker of its publisher.

    Raises `InfeasiblePlan` when no wiring that respects the capacities is found.
    """
    check_feasible(problem)
    broker_of = np.full(problem.user_count, -1, dtype=np.int64)
    kernels.draw_brokers(
        np.random.default_rng(seed).random(problem.user_count),
        edge_weights(problem),
        problem.access_prices,
        problem.demands,
        room_limits(problem),
        np.zeros(problem.broker_count),
        broker_of,
    )
    return make_room(problem, broker_of, seed=seed)


def edge_weights(problem: WiringProblem) -> FloatArray:
    """Return what passes each edge between user and broker in the trees of all publishers.

    The tree of a channel and one of its publishers (Algorithm 3) joins the publisher with
    all other subscribers of the channel by shortest ways. A way leads through brokers only:
    from broker to user it costs the core price to some last broker plus the user's access
    price there. The publisher takes the first broker of the shortest way to any subscriber.
    Then again and again the subscriber nearest to the brokers of the tree joins, and the last
    broker of its way is in the tree from then on: a user that has joined is represented by
    its broker, and has no other. So the distance of a user is the least over the brokers of
    the tree, and the first to reach it keeps it until another is strictly nearer.

    The edge of the publisher carries what it publishes, and so does that of each subscriber
    reached. A publisher whose channel nobody else wants has no tree.

    Such a tree is determined by the broker where it starts: the subscriber to which the
    publisher's way leads is also the nearest to that broker. So publishers of a channel with
    the same first broker share one tree: a channel has at most as many trees as there are
    brokers rather than publishers, and one takes time of at most about subscribers times
    brokers.

    The result has a row per user and a column per broker.
    """
    access, core = problem.access_prices, problem.core_prices
    ways, last = kernels.shortest_ways(access, core, np.argsort(core, axis=1, kind="stable"))
    weights = np.zeros(access.shape)
    by_publishing = np.argsort(problem.publish_channel, kind="stable")
    by_interest = np.argsort(problem.interest_channel, kind="stable")
    kernels.edge_traffic(
        access,
        ways,
        last,
        row_starts(problem.publish_channel, problem.channel_count),
        problem.publisher[by_publishing],
        problem.publish_rate[by_publishing],
        row_starts(problem.interest_channel, problem.channel_count),
        problem.reader[by_interest],
        weights,
    )
    return weights
