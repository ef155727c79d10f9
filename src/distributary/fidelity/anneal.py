"""Simulated annealing as Zhou, Ooi and Tan run it (section 3.3.2, Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.errors import BadInput
from distributary.fidelity._anneal_kernels import anneal as run
from distributary.fidelity.forest import Forest
from distributary.fidelity.model import servers_of, state_of
from distributary.fidelity.problem import FidelityProblem
from distributary.fidelity.seeds import seed_state

__all__ = ["Schedule", "anneal"]


@dataclass(frozen=True)
class Schedule:
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
    problem: FidelityProblem, start: Forest, *, seed: int = 0, schedule: Schedule | None = None
) -> tuple[Forest, int]:
    """Return the best forest met while annealing, and how many moves were weighed.

    The cost of a move is computed from what it changes, never from scratch.
    """
    plan = schedule or Schedule()
    state = state_of(problem, start.approach, start.parents)
    server_start, servers = servers_of(problem, start.approach)
    parents, _, evaluations = run(
        seed_state(seed),
        state,
        server_start,
        servers,
        plan.start_factor,
        plan.cooling,
        plan.moves_per_server,
        plan.frozen_below,
        plan.patience,
        plan.evaluations_max,
    )
    return Forest(start.approach, np.array(parents)), evaluations
