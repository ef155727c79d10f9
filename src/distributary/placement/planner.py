"""The planner: one problem in, one placement out, by any method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from distributary.arguments import check_choice, check_count, check_time_limit, check_type
from distributary.kernels import clock
from distributary.methods import PLACEMENT, run_method
from distributary.placement.bounds import paper_bound
from distributary.placement.cost import cost
from distributary.placement.exact import estimate, exact_plan, require_within
from distributary.placement.generate import generate_problem
from distributary.placement.iterative import SELECTIONS, STEINER_STEPS, IterativeRun
from distributary.placement.optimal import optimal
from distributary.placement.plan import Placement, Plan, verified
from distributary.placement.problem import PlacementProblem
from distributary.placement.search import dual_bound, search
from distributary.placement.useful import useful_formats

__all__ = ["METHODS", "OBJECTIVES", "load_compiled", "lower_bound", "place"]

METHODS = PLACEMENT
"""Every method by its name, baselines first."""
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
        When an argument is not as described above.
    TooLarge
        When the method would take too long or too much memory; before it starts.
    """
    check_type("problem", problem, PlacementProblem, hint="read_problem(path).problem is one")
    check_choice("method", method, METHODS)
    check_choice("objective", objective, OBJECTIVES)
    check_count("iterations", iterations)
    check_choice("select", select, SELECTIONS)
    check_choice("steiner", steiner, STEINER_STEPS)
    check_count("depth", depth, least=1)
    check_time_limit(time_limit)
    check_count("seed", seed)
    start = clock()
    result = run_method(
        METHODS,
        method,
        problem,
        verified=verified,
        objective=objective,
        iterations=iterations,
        select=select,
        steiner=steiner,
        depth=depth,
        time_limit=time_limit,
        seed=seed,
        observe=observe,
    )
    if isinstance(result, IterativeRun):
        result = result.plan
    found = result if isinstance(result, Found) else Found(result)
    seconds = clock() - start
    placement = _result(problem, found, method=method, seconds=seconds)
    if objective == "time":
        from distributary.placement.makespan import latest_delivery, latest_delivery_bound

        placement = replace(
            placement,
            latest_delivery=latest_delivery(problem, found.plan),
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


@dataclass(frozen=True, eq=False)
class Found:
    """A plan, and what its method knows about it.

    The bound is None if the method knows nothing; `chosen` is how a method found it that chooses
    between others.
    """

    plan: Plan
    lower_bound: float | None = None
    chosen: str | None = None


def enumerated_plan(problem: PlacementProblem) -> Found:
    """Return the plan of the method "optimal", which no other beats."""
    plan = optimal(problem)
    return Found(plan, cost(problem, plan).total)


def proven_plan(
    problem: PlacementProblem, *, time_limit: float | None, observe: Observer | None
) -> Found:
    """Return the plan of the method "exact", or raise `TooLarge` before it starts."""
    require_within(
        estimate(problem),
        seconds_max=time_limit or _EXACT_SECONDS_MAX,
        memory_bytes_max=_EXACT_BYTES_MAX,
        instead="--method auto, which finds a plan with a proven gap",
    )
    plan = exact_plan(problem, observe=observe)
    return Found(plan, cost(problem, plan).total)


def best_plan(
    problem: PlacementProblem,
    *,
    objective: str,
    time_limit: float | None,
    seed: int,
    observe: Observer | None,
) -> Found:
    """Return the best plan that fits the time: that of the method "auto"."""
    if objective == "time":
        from distributary.placement.makespan import fastest_plan

        return Found(fastest_plan(problem, seed=seed, time_limit=time_limit, observe=observe))
    allowed = time_limit or _AUTO_SECONDS_MAX
    usable = useful_formats(problem)
    need = estimate(problem, usable=usable)
    if (
        need.seconds <= allowed * _AUTO_EXACT_SHARE
        and need.memory_bytes <= _EXACT_BYTES_MAX * _AUTO_EXACT_SHARE
    ):
        plan = exact_plan(problem, usable=usable, observe=observe)
        return Found(plan, cost(problem, plan).total, "exact")
    found = search(problem, seed=seed, seconds_max=allowed * _AUTO_EXACT_SHARE, observe=observe)
    return Found(found.plan, found.lower_bound, "search")


def _result(problem: PlacementProblem, found: Found, *, method: str, seconds: float) -> Placement:
    """Put the plan's cost and a lower bound beside it."""
    price = cost(problem, found.plan)
    bound = lower_bound(problem) if found.lower_bound is None else found.lower_bound
    # A bound that exceeds the cost of a valid plan does so by rounding.
    bound = min(bound, price.total)
    return Placement(
        method=method,
        plan=found.plan,
        transmission_cost=price.transmission,
        conversion_cost=price.conversion,
        total_cost=price.total,
        lower_bound=bound,
        optimal=price.total - bound <= _ROUNDING * price.total,
        seconds=seconds,
        chosen=found.chosen,
        problem=problem,
    )


def lower_bound(problem: PlacementProblem) -> float:
    """Return the best lower bound that takes about a second: the optimum, if that does."""
    need = estimate(problem)
    if need.seconds <= _BOUND_SECONDS_MAX and need.memory_bytes <= _EXACT_BYTES_MAX / 8:
        return cost(problem, exact_plan(problem)).total
    return max(paper_bound(problem), dual_bound(problem))
