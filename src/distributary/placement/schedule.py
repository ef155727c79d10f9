"""When every broker has what a plan gives it.

The formats on one link go one after another, and so do the conversions at one broker;
different links, and a broker's links and its processor, work at the same time. A format
takes its size divided by the link's bandwidth, a conversion its cost times the node's
factor, and either starts when its input is completely there. Alpha and beta say what
resources are worth and do not matter for time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.placement._schedule_kernels import timetable_of
from distributary.placement._timetable_kernels import ABSENT, HELD, Network
from distributary.placement.plan import NOT_MADE, Plan, check
from distributary.placement.problem import PlacementProblem
from distributary.placement.useful import useful_formats

__all__ = ["Schedule", "entered_by", "latest_delivery", "network_of", "plan_of", "schedule"]


@dataclass(frozen=True, eq=False)
class Schedule:
    """When a plan's transmissions and conversions run, in seconds from publication.

    Attributes
    ----------
    starts
        When the transmission or conversion that brings format `k` to broker `v` starts,
        infinite where `v` never has `k`, 0 for what the root holds, shape
        (nodes, formats).
    arrivals
        When it ends, and `v` has `k`; same shape.
    latest_delivery
        When the last wish is served; 0 when nothing is wanted or all of it is held.
    finish
        When the last transmission or conversion ends, wanted or not.
    """

    starts: FloatArray = field(repr=False)
    arrivals: FloatArray = field(repr=False)
    latest_delivery: float
    finish: float


def schedule(problem: PlacementProblem, plan: Plan) -> Schedule:
    """Return when everything in `plan` happens.

    A link or processor that is free takes, of the jobs that can start, the one after
    which the longest chain of jobs is still to come until a wish is served; of equals the
    first format. It pauses for a job that is about to become ready when, of these two,
    the last wish is served earlier that way. The best order is a hard problem of its own;
    this one is always the same. Work that serves no wish is done last. What a plan both
    receives and makes counts as received.

    Raises
    ------
    InvalidPlan
        When the plan uses something where it is not available.
    """
    check(problem, plan)
    table = timetable_of(network_of(problem), entered_by(problem, plan))
    return Schedule(
        table.start,
        table.arrival,
        latest_delivery=float(table.late.max()),
        finish=float(table.arrival.max(initial=0.0, where=table.before != ABSENT)),
    )


def latest_delivery(problem: PlacementProblem, plan: Plan) -> float:
    """Return when the last wish is served under `schedule`."""
    return schedule(problem, plan).latest_delivery


def network_of(problem: PlacementProblem) -> Network:
    """Return how long everything takes in `problem`, for the kernels."""
    graph, tree = problem.graph, problem.tree
    origin, to = np.nonzero(np.isfinite(graph.costs))
    out_start = np.zeros(graph.format_count + 1, dtype=np.int64)
    np.cumsum(np.bincount(origin, minlength=graph.format_count), out=out_start[1:])
    child_start, child = tree.child_lists
    allowed = useful_formats(problem)
    allowed[0] |= problem.held
    # Copies, because arrays that may not be written to are another type to the compiler.
    return Network(
        tree.parents.copy(),
        child_start.copy(),
        child.copy(),
        out_start,
        to.astype(np.int64),
        graph.costs.copy(),
        graph.sizes.copy(),
        graph.sizes[None, :] / tree.bandwidths[:, None],
        tree.node_costs.copy(),
        problem.link_weights.copy(),
        problem.node_weights.copy(),
        problem.wants.copy(),
        allowed,
    )


def entered_by(problem: PlacementProblem, plan: Plan) -> IntArray:
    """Return the vertex before each vertex of a plan, as `_schedule_kernels` has it."""
    n, m = problem.node_count, problem.format_count
    own = np.arange(n)[:, None] * m
    up = problem.tree.parents[:, None] * m + np.arange(m)[None, :]
    made = np.where(plan.made_from == NOT_MADE, ABSENT, own + plan.made_from)
    before = np.where(plan.receives, up, made).astype(np.int64)
    before[0, problem.held] = HELD
    return before


def plan_of(before: IntArray) -> Plan:
    """Return the plan in which each vertex comes from the vertex `before` it."""
    n, m = before.shape
    here = before // m == np.arange(n)[:, None]
    there = before >= 0
    return Plan(there & ~here, np.where(there & here, before % m, NOT_MADE).astype(np.int64))
