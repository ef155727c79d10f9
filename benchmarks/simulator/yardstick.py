"""The yardstick of adaptation: the best tree that annealing finds for a state."""

from __future__ import annotations

from distributary.fidelity import FidelityProblem, Forest, build_trees, loss

__all__ = ["ANNEALED", "best_annealed"]

ANNEALED = 3
"""How often annealing is tried. It freezes in a bad tree at times, which is no yardstick."""


def best_annealed(problem: FidelityProblem, *, seed: int) -> Forest:
    """Return the best of the trees that annealing finds with some seeds."""
    found = [build_trees(problem, method="anneal", seed=seed + k).forest for k in range(ANNEALED)]
    return min(found, key=lambda forest: loss(problem, forest).average)
