"""Fidelity: which tree a stream of updates follows.

A `FidelityProblem` goes in, `build_trees` returns `StreamTrees`, and `loss` says what any
forest loses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributary.exports import on_demand
from distributary.fidelity.anneal import AnnealingSchedule
from distributary.fidelity.forest import APPROACHES, OUTSIDE, ROOT, Forest, check
from distributary.fidelity.loss import Loss, loss
from distributary.fidelity.names import TreePlace
from distributary.fidelity.planner import METHODS, StreamTrees, build_trees
from distributary.fidelity.problem import Adaptation, FidelityProblem
from distributary.fidelity.tree_file import read_trees

if TYPE_CHECKING:
    from distributary.fidelity.draw import draw_trees
    from distributary.fidelity.generate import generate_problem
    from distributary.fidelity.problem_file import ProblemFile, read_problem

__all__ = [
    "APPROACHES",
    "METHODS",
    "OUTSIDE",
    "ROOT",
    "Adaptation",
    "AnnealingSchedule",
    "FidelityProblem",
    "Forest",
    "Loss",
    "ProblemFile",
    "StreamTrees",
    "TreePlace",
    "build_trees",
    "check",
    "draw_trees",
    "generate_problem",
    "loss",
    "read_problem",
    "read_trees",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "draw": ("draw_trees",),
        "generate": ("generate_problem",),
        "problem_file": ("ProblemFile", "read_problem"),
    },
)
