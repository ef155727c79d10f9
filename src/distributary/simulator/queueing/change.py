"""What changes while a stream runs: how fast nodes and links are, rates, and trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from distributary.errors import BadInput
from distributary.fidelity import ROOT, FidelityProblem, Forest, check

__all__ = ["Change", "check_changes", "first_servers", "slowed"]


@dataclass(frozen=True, eq=False)
class Change:
    """Something that is different from a time on.

    Attributes
    ----------
    problem
        How fast nodes and links are from then on, and what rates there are. Nodes, objects
        and who wants what stay as they were. None: as before.
    forest
        The trees that updates published from then on take. None: as before.
    """

    at_s: float
    problem: FidelityProblem | None = None
    forest: Forest | None = None


def check_changes(
    problem: FidelityProblem, forest: Forest, changes: Sequence[Change], *, seconds: float
) -> None:
    """Raise `BadInput` for changes that are out of order or change who wants what.

    Raises
    ------
    InvalidPlan
        When the trees, those at the start or later ones, do not fit the problem.
    """
    check(problem, forest)
    before = 0.0
    for change in changes:
        if not before < change.at_s < seconds:
            raise BadInput(
                "changes",
                f"one is at {change.at_s:g} s, and they must be in order, after 0 s and "
                f"before {seconds:g} s",
            )
        before = change.at_s
        if change.problem is not None:
            other = change.problem
            same = (other.names, other.objects) == (problem.names, problem.objects)
            if not same or not np.array_equal(other.wanted, problem.wanted):
                raise BadInput("changes", f"the one at {before:g} s changes who wants what")
        if change.forest is not None:
            if change.forest.approach != forest.approach:
                raise BadInput("changes", f"the one at {before:g} s has trees of another approach")
            check(problem, change.forest)


def slowed(problem: FidelityProblem, servers: Sequence[int], factor: float) -> FidelityProblem:
    """Return the problem with some nodes' times to filter and send multiplied by `factor`."""
    if not (math.isfinite(factor) and factor > 0.0):
        raise BadInput("factor", f"is {factor:g}, and must be above 0 and finite")
    times = np.ones(problem.node_count)
    times[list(servers)] = factor
    return replace(
        problem,
        filter_times=problem.filter_times * times,
        send_times=problem.send_times * times,
    )


def first_servers(forest: Forest, count: int) -> tuple[int, ...]:
    """Return the first servers of the first tree, level by level and by name within a level."""
    parents = forest.parents[0]
    found: list[int] = []
    level = np.flatnonzero(parents == ROOT)
    while len(level) and len(found) < count:
        level = np.flatnonzero(np.isin(parents, level))
        found += level.tolist()
    return tuple(found[:count])
