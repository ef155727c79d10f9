"""Simulated annealing as Zhou, Ooi and Tan run it (section 3.3.2, Algorithm 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from distributary.arrays import IntArray
from distributary.errors import BadInput
from distributary.fidelity._anneal_kernels import anneal_trees
from distributary.fidelity.forest import Forest
from distributary.fidelity.model import servers_of, state_of
from distributary.fidelity.problem import FidelityProblem
from distributary.kernels import clock
from distributary.xorshift import seed_state

__all__ = ["AnnealingSchedule", "anneal", "batches"]

# Moves between two looks at the clock: a few tenths of a second at most.
_BATCH_MOVES = 50_000


@dataclass(frozen=True)
class AnnealingSchedule:
    """How the temperature falls; the defaults are the paper's.

    Attributes
    ----------
    start_factor
        The first temperature as a multiple of the cost of the start.
    cooling
        By what the temperature is multiplied each time.
    moves_per_server
        Moves per server at each temperature.
    frozen_below, patience
        It ends when the temperature is under `frozen_below` and the best tree has not
        changed for `patience` temperatures.
    evaluations_max
        It ends after this many moves in any case.
    """

    start_factor: float = 2.0
    cooling: float = 0.95
    moves_per_server: float = 64.0
    frozen_below: float = 0.001
    patience: int = 10
    evaluations_max: int = 2**62

    def __post_init__(self) -> None:
        if not 0.0 < self.cooling < 1.0:
            raise BadInput("cooling", f"{self.cooling:g} is not between 0 and 1")
        for name in ("start_factor", "moves_per_server", "frozen_below", "evaluations_max"):
            if not getattr(self, name) > 0.0:
                raise BadInput(name, f"{getattr(self, name):g} is not more than 0")


def anneal(
    problem: FidelityProblem,
    start: Forest,
    *,
    seed: int = 0,
    schedule: AnnealingSchedule | None = None,
    time_limit: float | None = None,
) -> tuple[Forest, int]:
    """Return the best forest met while annealing, and how many moves were weighed.

    The cost of a move is computed from what it changes, never from scratch. It ends when it
    is frozen, after the evaluations that the schedule allows, or when the time is up.
    """
    began = clock()
    plan = schedule or AnnealingSchedule()
    state = state_of(problem, start.approach, start.parents)
    server_start, servers = servers_of(problem, start.approach)
    numbers = seed_state(seed)
    best = start.parents.copy()
    best_cost = state.total.copy()
    changed = np.zeros(len(best), dtype=np.bool_)
    temperature = plan.start_factor * best_cost[0]
    evaluations = stale = 0
    while evaluations < plan.evaluations_max:
        cost_before = best_cost[0]
        for first, last in batches(server_start, _BATCH_MOVES / plan.moves_per_server):
            evaluations += anneal_trees(
                numbers,
                state,
                server_start,
                servers,
                first,
                last,
                temperature,
                plan.moves_per_server,
                plan.evaluations_max - evaluations,
                best,
                best_cost,
                changed,
            )
            if time_limit is not None and clock() - began >= time_limit:
                return Forest(start.approach, best), evaluations
        temperature *= plan.cooling
        stale = stale + 1 if best_cost[0] == cost_before else 0
        if temperature < plan.frozen_below and stale >= plan.patience:
            break
    return Forest(start.approach, best), evaluations


def batches(server_start: IntArray, servers: float) -> Iterator[tuple[int, int]]:
    """Split the trees into runs (first, last + 1) of about so many servers, at least a tree."""
    trees = len(server_start) - 1
    first = 0
    for last in range(1, trees + 1):
        if last == trees or server_start[last] - server_start[first] >= servers:
            yield first, last
            first = last
