"""The greedy method of Zhou, Ooi and Tan (section 3.3.1, Algorithm 2)."""

from __future__ import annotations

import numpy as np

from distributary.fidelity._descent_kernels import grow
from distributary.fidelity._state_kernels import PackedForest
from distributary.fidelity.forest import members
from distributary.fidelity.model import bare_parents, state_of
from distributary.fidelity.problem import FidelityProblem

__all__ = ["grown_state"]


def grown_state(problem: FidelityProblem, approach: str) -> tuple[PackedForest, int]:
    """Return the trees that grow server by server, and how many places were weighed.

    Servers come in the order of their delay from the source plus the time to filter and
    send there, and each goes where the average loss grows least. Takes about n**2 / 2
    evaluations per tree, each as long as the way to the source.
    """
    state = state_of(problem, approach, bare_parents(problem, approach))
    far = problem.delays[0] + problem.filter_times + problem.send_times
    order = np.argsort(far, kind="stable")
    order = order[(order > 0) & problem.served[order]]
    return state, grow(state, order, members(problem, approach))
