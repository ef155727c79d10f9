"""What trees lose, once they are known to be trees."""

from __future__ import annotations

from distributary.fidelity.forest import check
from distributary.fidelity.loss import loss
from distributary.fidelity.planner import StreamTrees
from distributary.fidelity.problem import FidelityProblem

__all__ = ["checked_loss"]


def checked_loss(problem: FidelityProblem, trees: StreamTrees) -> float:
    """Return the average loss, having made sure that the trees are valid.

    It is computed here from the trees alone; what a method believed about them counts for
    nothing.
    """
    check(problem, trees.forest)
    return loss(problem, trees.forest).average
