"""The planner: one problem in, one placement out, by any method."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from distributary.errors import BadInput, quoted
from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.placement.bounds import paper_bound
from distributary.placement.cost import cost
from distributary.placement.exact import estimate, exact_plan, require_within
from distributary.placement.generate import generate_problem
from distributary.placement.iterative import iterative
from distributary.placement.optimal import optimal
from distributary.placement.plan import Placement, Plan
from distributary.placement.problem import PlacementProblem
from distributary.placement.search import dual_bound, search
from distributary.placement.useful import useful_formats

__all__ = ["METHODS", "OBJECTIVES", "load_compiled", "lower_bound", "place"]

METHODS = (
    "all-in-root",
    "all-in-leaves",
    "single-format",
    "iterative",
    "optimal",
    "exact",
    "auto",
)
OBJECTIVES = ("cost", "time")

# What `exact` may use when nothing else is said. Its estimate is about right, not exact.
_EXACT_SECONDS_MAX = 120.0
_EXACT_BYTES_MAX = 4 * 2**30
# `auto` plans for this long at most, and leaves it to `exact` if that fits well within.
_AUTO_SECONDS_MAX = 30.0
_AUTO_EXACT_SHARE = 0.5
# A bound is the optimum itself when that takes no longer than this.
_BOUND_SECONDS_MAX = 1.0
# Costs that differ by less than this share are equal up to rounding, of which the search
# allows for half in its bound.
_ROUNDING = 2e-9

Observer = Callable[[str, int, int], None]


def place(
    problem: PlacementProblem,
    *,
    method: str = "auto",
    objective: str = "cost",
    iterations: int = 1000,
    select: str = "slack",
    steiner: str = "charikar",
    depth: int = 1,
    time_limit: float | None = None,
    seed: int = 0,
    observe: Observer | None = None,
) -> Placement:
    """Decide where each conversion runs.

    Parameters
    ----------
    method
        One of `METHODS`. "auto" is exact while that fits the time and memory allowed,
        and otherwise a search that ends with a lower bound.
    objective
        "cost", or "time" for the latest delivery, which "auto" then minimises; the other
        methods plan by cost all the same, and their plan's latest delivery is reported.
    iterations, select, steiner, depth
        Of the iterative method: how many refinements, how the next broker is chosen
        ("slack" or "random"), how a stump is planned ("charikar" or "exact"), and how
        many levels below its broker it spans.
    time_limit
        Seconds the planning may take. Without one the result depends on the seed alone.
    seed
        Seed of every random choice.
    observe
        Called with a stage, what is done of it and how much there is.

    Raises
    ------
    BadInput
        When an argument is none of those named above.
    TooLarge
        When the method would take too long or too much memory; before it starts.
    """
    for name, value, choices in (("method", method, METHODS), ("objective", objective, OBJECTIVES)):
        if value not in choices:
            raise BadInput(name, f"{quoted(value)} is none of {', '.join(choices)}")
    start = time.perf_counter()
    bound: float | None = None
    chosen: str | None = None
    if method == "auto" and objective == "time":
        from distributary.placement.makespan import fastest_plan

        plan = fastest_plan(problem, seed=seed, time_limit=time_limit, observe=observe)
    elif method == "auto":
        plan, bound, chosen = _best(problem, time_limit=time_limit, seed=seed, observe=observe)
    elif method == "exact":
        require_within(
            estimate(problem),
            seconds_max=time_limit or _EXACT_SECONDS_MAX,
            memory_bytes_max=_EXACT_BYTES_MAX,
            instead="--method auto, which finds a plan with a proven gap",
        )
        plan = exact_plan(problem, observe=observe)
        bound = cost(problem, plan).total
    elif method == "optimal":
        plan = optimal(problem)
        bound = cost(problem, plan).total
    elif method == "iterative":
        plan = iterative(
            problem,
            iterations=iterations,
            select=select,
            steiner=steiner,
            depth=depth,
            seed=seed,
            time_limit=time_limit,
            observe=None
            if observe is None
            else lambda done, _: observe("iterative", done, iterations),
        ).plan
    else:
        plan = _BASELINES[method](problem)
    seconds = time.perf_counter() - start
    placement = _result(problem, plan, method=method, bound=bound, seconds=seconds)
    if chosen is not None:
        placement = replace(placement, chosen=chosen)
    if objective == "time":
        from distributary.placement.makespan import latest_delivery, latest_delivery_bound

        placement = replace(
            placement,
            latest_delivery=latest_delivery(problem, plan),
            latest_delivery_bound=latest_delivery_bound(problem),
        )
    return placement


def load_compiled(method: str) -> None:
    """Load the compiled code that a method runs, by planning a problem of eight brokers.

    It is loaded from the disk on first use, which takes some tenths of a second that have
    nothing to do with the problem that happens to come first.
    """
    small = generate_problem("map", seed=1, brokers=8, tree="recursive")
    place(small, method=method, iterations=1)


_BASELINES: dict[str, Callable[[PlacementProblem], Plan]] = {
    "all-in-root": all_in_root,
    "all-in-leaves": all_in_leaves,
    "single-format": single_format,
}


def _best(
    problem: PlacementProblem,
    *,
    time_limit: float | None,
    seed: int,
    observe: Observer | None,
) -> tuple[Plan, float, str]:
    """Return the best plan that fits the time, its bound, and how it was found."""
    allowed = time_limit or _AUTO_SECONDS_MAX
    usable = useful_formats(problem)
    need = estimate(problem, usable=usable)
    if (
        need.seconds <= allowed * _AUTO_EXACT_SHARE
        and need.memory_bytes <= _EXACT_BYTES_MAX * _AUTO_EXACT_SHARE
    ):
        plan = exact_plan(problem, usable=usable, observe=observe)
        return plan, cost(problem, plan).total, "exact"
    found = search(problem, seed=seed, seconds_max=allowed * _AUTO_EXACT_SHARE, observe=observe)
    return found.plan, found.lower_bound, "search"


def _result(
    problem: PlacementProblem, plan: Plan, *, method: str, bound: float | None, seconds: float
) -> Placement:
    """Put the plan's cost and a lower bound beside it."""
    price = cost(problem, plan)
    if bound is None:
        bound = lower_bound(problem)
    # A bound that exceeds the cost of a valid plan does so by rounding.
    bound = min(bound, price.total)
    return Placement(
        method=method,
        plan=plan,
        transmission_cost=price.transmission,
        conversion_cost=price.conversion,
        total_cost=price.total,
        lower_bound=bound,
        optimal=price.total - bound <= _ROUNDING * price.total,
        seconds=seconds,
    )


def lower_bound(problem: PlacementProblem) -> float:
    """Return the best lower bound that takes about a second: the optimum, if that does."""
    need = estimate(problem)
    if need.seconds <= _BOUND_SECONDS_MAX and need.memory_bytes <= _EXACT_BYTES_MAX / 8:
        return cost(problem, exact_plan(problem)).total
    return max(paper_bound(problem), dual_bound(problem))
