"""Fidelity: which tree a stream of updates follows.

A `FidelityProblem` goes in, `build_trees` returns `StreamTrees`, and `loss` says what any
forest loses.
"""

from distributary.fidelity.forest import APPROACHES, OUTSIDE, ROOT, Forest, check
from distributary.fidelity.loss import Loss, loss
from distributary.fidelity.planner import METHODS, StreamTrees, build_trees
from distributary.fidelity.problem import Adaptation, FidelityProblem

__all__ = [
    "APPROACHES",
    "METHODS",
    "OUTSIDE",
    "ROOT",
    "Adaptation",
    "FidelityProblem",
    "Forest",
    "Loss",
    "StreamTrees",
    "build_trees",
    "check",
    "loss",
]
