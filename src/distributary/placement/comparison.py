"""Every method on one problem: what each plan costs and saves.

The saving is the share of a baseline's cost that a plan does without. The baselines
are what one would do without planning: convert everything at the root, or send the
source everywhere and convert where the result is wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from distributary.arguments import checked
from distributary.errors import MethodFailed, TooLarge
from distributary.placement.plan import Placement
from distributary.placement.planner import METHODS, load_compiled, place
from distributary.placement.problem import PlacementProblem

__all__ = ["MethodResult", "compare_methods", "comparison_document"]

# Costs that differ by less than this share are rounding, not a better plan.
_SAME_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class MethodResult:
    """What one method made of a problem.

    Attributes
    ----------
    method
        The method.
    placement
        Its plan; None when the method cannot run on this problem.
    skipped
        Why it cannot; None when it can.
    saving_all_in_root, saving_all_in_leaves
        The share of each baseline's cost that the plan saves, negative when it costs
        more; None when there is no plan, or the baseline is free.
    best
        Whether no other method's plan is cheaper.
    """

    method: str
    placement: Placement | None
    skipped: str | None = None
    saving_all_in_root: float | None = None
    saving_all_in_leaves: float | None = None
    best: bool = False


@checked
def compare_methods(
    problem: PlacementProblem,
    *,
    iterations: int = 1000,
    seed: int = 0,
    observe: Callable[[str, int, int], None] | None = None,
) -> list[MethodResult]:
    """Return what every method makes of `problem`, baselines first.

    `observe` is told which method runs, how many have, and how many there are.
    """
    placements: dict[str, Placement] = {}
    skipped: dict[str, str] = {}
    for index, method in enumerate(METHODS):
        if observe is not None:
            observe(method, index, len(METHODS))
        try:
            # Compiled code is loaded on first use. Without this, whichever method runs
            # first would be charged for what the others share.
            with suppress(MethodFailed):
                load_compiled(method)
            placements[method] = place(problem, method=method, iterations=iterations, seed=seed)
        except (MethodFailed, TooLarge) as error:
            skipped[method] = str(error)
    cheapest = min(placement.total_cost for placement in placements.values())
    results = []
    for method in METHODS:
        placement = placements.get(method)
        if placement is None:
            results.append(MethodResult(method, None, skipped[method]))
            continue
        results.append(
            MethodResult(
                method,
                placement,
                saving_all_in_root=_saving(placement, placements.get("all-in-root")),
                saving_all_in_leaves=_saving(placement, placements.get("all-in-leaves")),
                best=placement.total_cost <= cheapest * (1.0 + _SAME_SHARE),
            )
        )
    return results


@checked
def comparison_document(results: list[MethodResult], *, seed: int) -> dict[str, object]:
    """Return the results as a JSON document."""
    methods: list[dict[str, object]] = []
    for result in results:
        placement = result.placement
        if placement is None:
            methods.append({"method": result.method, "skipped": result.skipped})
            continue
        methods.append(
            {
                "method": result.method,
                "total_cost": float(placement.total_cost),
                "saving_all_in_root": result.saving_all_in_root,
                "saving_all_in_leaves": result.saving_all_in_leaves,
                "lower_bound": float(placement.lower_bound),
                "gap": float(placement.gap),
                "optimal": bool(placement.optimal),
                "seconds": float(placement.seconds),
                "best": result.best,
            }
        )
    return {"seed": seed, "methods": methods}


def _saving(placement: Placement, baseline: Placement | None) -> float | None:
    if baseline is None or baseline.total_cost == 0.0:
        return None
    return 1.0 - float(placement.total_cost) / float(baseline.total_cost)
