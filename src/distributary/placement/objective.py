"""What a plan is worth when it is carried out: its cost, and the delay of what it delivers.

    J = cost + delay_weight * sum over deliveries of the predicted delay

A cheap plan gathers conversions where they are cheapest, and everybody waits for one
processor; a quick one makes the same format at many places. One sum for both says what is
bought for what: `delay_weight` is what a second of one delivery's delay may cost.

Delays are predicted as brokers work. A broker passes on to a child when everything that is
for the child is there, in one portion, and serves its own clients when all of their formats
are. Its processor takes conversions in the order in which they can begin, after those that it
has left to do. `makespan.schedule` is another model: there each format travels by itself, and
in the order that is best for the last delivery.

How long a message travels is left out. Every plan for one tree sends to a broker over the same
links, so that this adds the same to all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from distributary.arrays import FloatArray
from distributary.placement._portion_kernels import portion_times
from distributary.placement.cost import Cost, cost
from distributary.placement.plan import Plan
from distributary.placement.problem import PlacementProblem

__all__ = ["Conditions", "Objective", "least", "objective", "serving_times"]


@dataclass(frozen=True, eq=False)
class Conditions:
    """What a plan meets when it is carried out.

    Attributes
    ----------
    waits_s
        How long each broker is busy with other conversions, shape (nodes,).
    deliveries
        How many deliveries each broker makes when it has all that it wants, shape (nodes,).
    link_s
        How long a unit of size takes on a link whose factor is 1, in seconds.
    delay_weight
        What a second of one delivery's delay is worth, in units of cost.
    """

    waits_s: FloatArray
    deliveries: FloatArray
    link_s: float
    delay_weight: float


@dataclass(frozen=True)
class Objective:
    """What a plan costs and how late it delivers.

    `delay_s` are the predicted delays of its deliveries together, `latest_s` that of the last
    broker to have all that it wants, and `total` is the sum J.
    """

    cost: Cost
    delay_s: float
    latest_s: float
    total: float


def serving_times(problem: PlacementProblem, plan: Plan, conditions: Conditions) -> FloatArray:
    """Return when each broker has all that it wants, 0 where that is nothing, shape (nodes,).

    In seconds from now, conversion costs taken for seconds. The plan must be valid.
    """
    graph, tree = problem.graph, problem.tree
    # Copies, because arrays that may not be written to are another type to the compiler.
    there = portion_times(
        tree.parents.copy(),
        plan.receives.copy(),
        plan.made_from.copy(),
        problem.held.copy(),
        graph.sizes.copy(),
        graph.costs.copy(),
        conditions.link_s * tree.link_costs,
        tree.node_costs.copy(),
        conditions.waits_s.copy(),
    )
    return np.asarray(np.where(problem.wants, there, 0.0).max(axis=1))


def objective(problem: PlacementProblem, plan: Plan, conditions: Conditions) -> Objective:
    """Return what a plan is worth under some conditions."""
    price = cost(problem, plan)
    times = serving_times(problem, plan, conditions)
    delay_s = float(np.dot(conditions.deliveries, times))
    return Objective(
        price,
        delay_s,
        latest_s=float(times.max()),
        total=price.total + conditions.delay_weight * delay_s,
    )


def least(worth: Mapping[str, Objective]) -> str:
    """Return the name of the plan with the least sum; of equals the first."""
    return min(worth, key=lambda name: worth[name].total)
