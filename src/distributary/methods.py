"""The methods of the three planners: what each is called, and which function runs it.

One table per planner, from which the planner, the commands and their help, the comparison, the
warm-up and the check of the guides take their methods. Functions are named here, not imported: a
command that only explains itself loads no compiler.

A method's function takes the problem, and by name whatever it needs of the planner's options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["FIDELITY", "PLACEMENT", "WIRING", "run_method"]

PLACEMENT = {
    "all-in-root": "placement.baselines:all_in_root",
    "all-in-leaves": "placement.baselines:all_in_leaves",
    "single-format": "placement.baselines:single_format",
    "iterative": "placement.iterative:iterative",
    "optimal": "placement.planner:enumerated_plan",
    "exact": "placement.planner:proven_plan",
    "auto": "placement.planner:best_plan",
}
"""From a `PlacementProblem` to a `Plan`, or to one with what is known about it or its making."""

FIDELITY = {
    "source": "fidelity.baselines:source_tree",
    "random": "fidelity.baselines:random_tree",
    "dita": "fidelity.baselines:dita_tree",
    "greedy": "fidelity.planner:grown_trees",
    "anneal": "fidelity.planner:annealed_trees",
    "adapt": "fidelity.planner:adapted_trees",
    "exact": "fidelity.exact:exact_tree",
    "auto": "fidelity.search:search",
}
"""From a `FidelityProblem` to a `Forest`, or to one and how many moves were weighed."""

WIRING = {
    "random": "wiring.random_wiring:random_wiring",
    "packing": "wiring.packing:packing_wiring",
    "clustering": "wiring.clustering:clustering_wiring",
    "mixing": "wiring.mixing:mixing_wiring",
    "search": "wiring.planner:best_wiring",
    "exact": "wiring.planner:proven_wiring",
    "auto": "wiring.planner:best_wiring",
}
"""From a `WiringProblem` to the broker of every user, or to that and a lower bound."""


def run_method(function: str, problem: object, **options: object) -> Any:
    """Return what the function of a method makes of a problem, given the options it takes."""
    run, taken = _loaded(function)
    return run(problem, **{name: value for name, value in options.items() if name in taken})


@cache
def _loaded(function: str) -> tuple[Callable[..., Any], frozenset[str]]:
    """Return the function of that name, and the names of its parameters."""
    module, _, name = function.partition(":")
    run = getattr(import_module(f"distributary.{module}"), name)
    return run, frozenset(inspect.signature(run).parameters)
