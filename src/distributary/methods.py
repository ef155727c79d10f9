"""The methods of the three planners: what each is called, and which function runs it.

One table per planner, from which the planner, the commands and their help, the comparison, the
warm-up, the benchmarks and the check of the guides take their methods. Our own functions are named
here, not imported: a command that only explains itself loads no compiler.

A method's function takes the problem, and by name whatever it needs of the planner's options.

Others add methods in two ways. A package names them as entry points, in the group of the planner
(`ENTRY_POINTS`), and every process where it is installed has them. A program or a notebook puts a
function into the table: `PLACEMENT["mine"] = mine`. Nothing that such a method says about its
result is believed: the planner checks the plan and works out what it costs.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from distributary.errors import InfeasiblePlan, MethodFailed, TooLarge, quoted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "ENTRY_POINTS",
    "FIDELITY",
    "PLACEMENT",
    "WIRING",
    "MethodTable",
    "own_methods",
    "run_method",
]

Function: TypeAlias = "str | EntryPoint | Callable[..., Any]"
MethodTable: TypeAlias = dict[str, Function]
"""By name: one of our own functions as "module:function", an entry point, or a function."""

ENTRY_POINTS = "distributary.methods"
"""The beginning of the groups of entry points, as in `distributary.methods.placement`."""

_P = TypeVar("_P")


@cache
def _offered() -> bool:
    """Say whether anything that is installed mentions methods of ours.

    Hardly anything does, and every command would take a tenth longer to start if it loaded what
    reads entry points only to find that out.
    """
    group = f"[{ENTRY_POINTS}.".encode()
    files = (file for place in sys.path for file in Path(place).glob("*-info/entry_points.txt"))
    return any(group in file.read_bytes() for file in files)


def _entry_points(planner: str) -> list[EntryPoint]:
    """Return the methods that packages offer, in the order of their names."""
    if not _offered():
        return []
    from importlib.metadata import entry_points

    return sorted(entry_points(group=f"{ENTRY_POINTS}.{planner}"), key=lambda point: point.name)


def _package(function: Function) -> str | None:
    """Return whose method it is, as far as that is known."""
    dist = getattr(function, "dist", None)
    return dist.name if dist is not None else None


def _with_plug_ins(planner: str, own: dict[str, str]) -> MethodTable:
    """Return a table with our own methods and those that installed packages offer.

    Names only: a package is loaded when its method runs.
    """
    table: MethodTable = {**own}
    for point in _entry_points(planner):
        if point.name in table:
            warnings.warn(
                f"method {quoted(point.name)} of {_package(point)} is left out: "
                "there is one of that name already",
                stacklevel=2,
            )
        else:
            table[point.name] = point
    return table


PLACEMENT = _with_plug_ins(
    "placement",
    {
        "all-in-root": "placement.baselines:all_in_root",
        "all-in-leaves": "placement.baselines:all_in_leaves",
        "single-format": "placement.baselines:single_format",
        "iterative": "placement.iterative:iterative",
        "optimal": "placement.planner:enumerated_plan",
        "exact": "placement.planner:proven_plan",
        "auto": "placement.planner:best_plan",
    },
)
"""From a `PlacementProblem` to a `Plan`; ours may add what they know about it or its making."""

FIDELITY = _with_plug_ins(
    "fidelity",
    {
        "source": "fidelity.baselines:source_tree",
        "random": "fidelity.baselines:random_tree",
        "dita": "fidelity.baselines:dita_tree",
        "greedy": "fidelity.planner:grown_trees",
        "anneal": "fidelity.planner:annealed_trees",
        "adapt": "fidelity.planner:adapted_trees",
        "exact": "fidelity.exact:exact_tree",
        "auto": "fidelity.search:search",
    },
)
"""From a `FidelityProblem` to a `Forest`; ours may add how many moves were weighed."""

WIRING = _with_plug_ins(
    "wiring",
    {
        "random": "wiring.random_wiring:random_wiring",
        "packing": "wiring.packing:packing_wiring",
        "clustering": "wiring.clustering:clustering_wiring",
        "mixing": "wiring.mixing:mixing_wiring",
        "search": "wiring.planner:best_wiring",
        "exact": "wiring.planner:proven_wiring",
        "auto": "wiring.planner:best_wiring",
    },
)
"""From a `WiringProblem` to the broker of every user; ours may add a lower bound."""


def own_methods(table: MethodTable) -> list[str]:
    """Return the methods in a table that are not somebody else's."""
    return [name for name, function in table.items() if isinstance(function, str)]


def run_method(
    table: MethodTable,
    name: str,
    problem: _P,
    *,
    verified: Callable[[_P, Any], Any],
    **options: object,
) -> Any:
    """Return what a method makes of a problem, given the options it takes.

    What somebody else's method returns is handed to `verified`, which returns a plan that holds or
    raises whatever it likes.

    Raises
    ------
    MethodFailed
        When somebody else's method cannot be loaded, fails, or returns what is not a valid plan.
    """
    function = table[name]
    if isinstance(function, str):
        return _run(*_loaded(function), problem, options)
    try:
        run = function if callable(function) else function.load()
        return verified(problem, _run(run, _parameters(run), problem, options))
    except (TooLarge, InfeasiblePlan):
        raise
    except (Exception, SystemExit) as error:
        raise MethodFailed(name, _package(function), error) from error


def _run(
    run: Callable[..., Any], taken: frozenset[str], problem: object, options: dict[str, object]
) -> Any:
    return run(problem, **{name: value for name, value in options.items() if name in taken})


def _parameters(run: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(run).parameters)


@cache
def _loaded(function: str) -> tuple[Callable[..., Any], frozenset[str]]:
    """Return the function of that name, and the names of its parameters."""
    module, _, name = function.partition(":")
    run = getattr(import_module(f"distributary.{module}"), name)
    return run, _parameters(run)
