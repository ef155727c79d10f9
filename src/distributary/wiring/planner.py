"""The planner: one problem in, one wiring out, by any method."""

from __future__ import annotations

from functools import partial

import numpy as np

from distributary.arguments import check_choice, check_count, check_time_limit, check_type
from distributary.arrays import IntArray, check_indices, shaped
from distributary.errors import BadInput
from distributary.kernels import clock
from distributary.methods import WIRING, run_method
from distributary.wiring.bounds import lower_bound
from distributary.wiring.capacity import check_feasible
from distributary.wiring.cost import cost
from distributary.wiring.exact import exact_wiring, is_small, require_small
from distributary.wiring.problem import WiringProblem
from distributary.wiring.rewire import rewire, users_moved
from distributary.wiring.search import Observer, search_wiring
from distributary.wiring.wiring import CORES, Wiring, check, verified

__all__ = ["METHODS", "wire"]

METHODS = WIRING
"""Every method by its name, baselines first."""

# Branches of the exact method beside a search: less than a second.
_BRANCHES_MAX = 300_000
# Pairs of user and broker up to which a second search takes little time.
_PAIRS_FEW = 20_000


def wire(
    problem: WiringProblem,
    *,
    method: str = "auto",
    core: str = "mst",
    seed: int = 0,
    time_limit: float | None = None,
    start: IntArray | None = None,
    moves: int | None = None,
    observe: Observer | None = None,
) -> Wiring:
    """Attach every user to a broker, at the least cost of access and core.

    Parameters
    ----------
    problem
        What to plan.
    method
        One of `METHODS`.
    core
        How traffic travels between brokers, one of `CORES`.
    seed
        Seed of every random choice.
    time_limit
        Seconds after which "search" and "auto" stop; they go on until then. Without it,
        they end by themselves and the result depends on the seed only.
    start
        The broker of every user so far, -1 for those who have none: re-wire from there.
    moves
        With `start`, the most users that may move; all of them unless given.
    observe
        Called with a stage, what is done of it and how much there is.

    Returns
    -------
    Wiring
        The wiring, its cost by the one definition in `cost`, and a lower bound that holds
        for every wiring (with `moves`, for those with fewer moves as well).

    Raises
    ------
    BadInput
        When an argument is not as described above.
    InfeasiblePlan
        When the users do not fit on the brokers.
    TooLarge
        When "exact" would take too long; before it starts.
    """
    check_type("problem", problem, WiringProblem, hint="read_problem(path).problem is one")
    check_choice("method", method, METHODS)
    check_choice("core", core, CORES)
    check_count("seed", seed)
    check_time_limit(time_limit)
    if moves is not None:
        check_count("moves", moves)
    if start is not None:
        start = shaped("start", start, (problem.user_count,), np.int64)
        check_indices("start", start + 1, problem.broker_count + 1)
    if start is not None and method not in ("auto", "search"):
        raise BadInput("method", f"{method} starts from nothing; search can start from a wiring")
    if moves is not None and start is None:
        raise BadInput("moves", "counts from a wiring, and none was given")
    began = clock()
    check_feasible(problem)
    bound = 0.0
    if start is not None:
        broker_of = rewire(
            problem,
            start,
            problem.user_count if moves is None else moves,
            core=core,
            seed=seed,
            time_limit=time_limit,
            observe=observe,
        )
    else:
        result = run_method(
            METHODS,
            method,
            problem,
            verified=verified,
            core=core,
            seed=seed,
            time_limit=time_limit,
            observe=observe,
        )
        broker_of, bound = result if isinstance(result, tuple) else (result, 0.0)
    seconds = clock() - began
    check(problem, broker_of)
    found = cost(problem, broker_of, core=core)
    saving = None
    if core == "steiner":
        saving = cost(problem, broker_of).core - found.core
    return Wiring(
        method=method,
        core=core,
        broker_of=broker_of,
        cost=found,
        lower_bound=min(_bound(problem, core, broker_of, found.total, bound), found.total),
        seconds=seconds,
        steiner_saving=saving,
        moved=None if start is None else users_moved(start, broker_of),
        problem=problem,
    )


def best_wiring(
    problem: WiringProblem,
    *,
    core: str,
    seed: int,
    time_limit: float | None,
    observe: Observer | None,
    branches_max: int | None = _BRANCHES_MAX,
) -> tuple[IntArray, float]:
    """Return the wiring of the methods "search" and "auto", and a bound if it is a small one.

    Half of the time is for a search, half for the proof, which takes at most `branches_max`
    branches. Without that limit, whatever is not small is refused at once.
    """
    if branches_max is None:
        require_small(problem)
    elif not is_small(problem):
        return _search(problem, core, seed, time_limit, observe), 0.0
    half = None if time_limit is None else time_limit / 2.0
    found = _search(problem, core, seed, half, observe)
    return exact_wiring(problem, core=core, time_limit=half, branches_max=branches_max, start=found)


proven_wiring = partial(best_wiring, branches_max=None)
"""Returns the wiring of the method "exact" and its bound, or raises `TooLarge`."""


def _bound(
    problem: WiringProblem, core: str, broker_of: IntArray, total: float, known: float
) -> float:
    """Return a lower bound on the cost of every wiring; that of a small problem is the optimum.

    `broker_of` and `total` are the wiring that was found and its cost: looking for a better one is
    shorter with it. `known` is a bound that is known already, or 0.
    """
    if known >= total:
        return known
    if known == 0.0 and is_small(problem):
        _, known = exact_wiring(problem, core=core, branches_max=_BRANCHES_MAX, start=broker_of)
        if known >= total:
            return known
    return max(known, lower_bound(problem, core=core))


def _search(
    problem: WiringProblem,
    core: str,
    seed: int,
    time_limit: float | None,
    observe: Observer | None,
) -> IntArray:
    """Return the best wiring that a search finds.

    Branching points are too dear to be weighed with every move. What they save depends on
    the wiring, so with core "steiner" the best along spanning trees is compared with the
    best within one tree, as long as that takes little time.
    """
    planned = "mst" if core == "steiner" else core
    found = search_wiring(problem, core=planned, seed=seed, time_limit=time_limit, observe=observe)
    small = problem.user_count * problem.broker_count <= _PAIRS_FEW
    if core != "steiner" or not small or time_limit is not None:
        return found
    other = search_wiring(problem, core="one-tree", seed=seed, observe=observe)
    costs = [cost(problem, wiring, core=core).total for wiring in (found, other)]
    return other if costs[1] < costs[0] else found
