"""The exact method: try all wirings of a small problem, leaving out what cannot be best."""

from __future__ import annotations

import math

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.errors import TooLarge
from distributary.kernels import clock
from distributary.wiring._exact_kernels import branch_and_bound
from distributary.wiring._steiner_kernels import subset_weights
from distributary.wiring.capacity import make_room, room_limits
from distributary.wiring.core import STEINER_EXACT_MAX, reach
from distributary.wiring.cost import cost
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import CORES

__all__ = ["BROKERS_MAX", "exact_wiring", "is_small", "require_small", "set_weights"]

BROKERS_MAX = STEINER_EXACT_MAX
"""How many brokers `exact_wiring` takes: it has the weight of the tree of every set of them."""

# The most wirings there may be, as a power of ten: for `exact_wiring`, where it may take
# minutes, and for `is_small`, where it is a matter of a second or two.
_WIRINGS_LOG10_MAX = 24.0
_SMALL_LOG10_MAX = 14.0
# In practice the branches grow about with the third root of the wirings. That and the time
# for a branch only have to be about right.
_BRANCHES_ROOT = 3.0
_SECONDS_PER_BRANCH = 2e-6
# Branches between two looks at the clock, at first.
_BRANCHES_FIRST = 50_000


def exact_wiring(
    problem: WiringProblem,
    *,
    core: str = "mst",
    time_limit: float | None = None,
    branches_max: int | None = None,
    start: IntArray | None = None,
) -> tuple[IntArray, float]:
    """Return a wiring and what no wiring costs less than; together they prove an optimum.

    Without a limit the two are equal. Twenty users and six brokers take some
    milliseconds, thirty users and six brokers seconds.

    The best wiring so far, at first `start`, is returned after about `time_limit` seconds, or after
    `branches_max` branches of about two microseconds each: the result then does not depend on the
    machine. Raises `TooLarge` with more than ten brokers and when it would take too long, before
    anything is computed, and `InfeasiblePlan` when the users do not fit on the brokers.
    """
    assert core in CORES
    require_small(problem)
    if start is None:
        start = make_room(problem, np.full(problem.user_count, -1, dtype=np.int64))
    rates, wants = _merged_channels(problem)
    weights = set_weights(problem.core_prices, core)
    # Those who weigh most first: what they do decides most of what the others can do.
    order = np.argsort(-problem.demands, kind="stable")
    access = problem.demands[:, None] * problem.access_prices
    best_of = np.array(start[order], dtype=np.int64)
    best_cost = cost(problem, start, core=core).total
    began = clock()
    most = math.inf if branches_max is None else branches_max
    branches = int(min(_BRANCHES_FIRST, most))
    while True:
        best_cost, bound, done = branch_and_bound(
            access[order],
            problem.demands[order],
            room_limits(problem),
            rates[order],
            wants[order],
            weights,
            subset_weights(problem.core_prices, True) if core == "mst" else weights,
            branches,
            best_of,
            best_cost,
        )
        spent = clock() - began
        late = time_limit is not None and spent >= time_limit
        if done < branches or branches >= most or late:
            break
        # From the beginning, with the best wiring so far: that costs a tenth at most.
        branches = int(min(10 * branches, most))
        if time_limit is not None:
            rate = done / max(spent, 1e-6)
            branches = min(branches, max(1, int(rate * (time_limit - spent))))
    broker_of = np.empty_like(best_of)
    broker_of[order] = best_of
    total = cost(problem, broker_of, core=core).total
    return broker_of, total if done < branches else min(bound, total)


def is_small(problem: WiringProblem) -> bool:
    """Say whether `exact_wiring` is likely to take no more than a second or two."""
    return problem.broker_count <= BROKERS_MAX and _wirings_log10(problem) <= _SMALL_LOG10_MAX


def _wirings_log10(problem: WiringProblem) -> float:
    """Return how many wirings there are, as a power of ten."""
    return int(np.count_nonzero(problem.demands)) * math.log10(problem.broker_count)


def require_small(problem: WiringProblem) -> None:
    """Raise `TooLarge` when there are too many brokers or wirings."""
    magnitude = _wirings_log10(problem)
    if problem.broker_count <= BROKERS_MAX and magnitude <= _WIRINGS_LOG10_MAX:
        return
    branches_log10 = magnitude / _BRANCHES_ROOT
    seconds = 10.0**branches_log10 * _SECONDS_PER_BRANCH if branches_log10 < 300 else math.inf
    duration = f"about {seconds:.2g} s" if math.isfinite(seconds) else "more time than there is"
    memory = 8.0 * 2.0 ** min(problem.broker_count, 1000)
    raise TooLarge(
        f"method 'exact' would look for the best of 10**{magnitude:.0f} wirings, which takes "
        f"{duration} and {memory / 2**30:.2g} GiB; it takes at most {BROKERS_MAX} brokers and "
        f"10**{_WIRINGS_LOG10_MAX:.0f} wirings; hint: use method 'auto'",
        seconds=seconds,
        memory_bytes=memory,
    )


def _merged_channels(problem: WiringProblem) -> tuple[FloatArray, BoolArray]:
    """Return what users publish and want; channels that are wanted by the same are one.

    Both of shape (users, channels), without channels that nobody publishes or wants.
    """
    used = problem.subscribes.any(axis=0) & (problem.channel_rates > 0.0)
    columns = np.flatnonzero(used)
    wants, kind = np.unique(problem.subscribes[:, columns], axis=1, return_inverse=True)
    rates = np.zeros(wants.shape)
    for column, place in zip(columns.tolist(), kind.ravel().tolist(), strict=True):
        rates[:, place] += problem.publishes[:, column]
    return rates, wants


def set_weights(prices: FloatArray, core: str) -> FloatArray:
    """Return the weight of the tree of every set of brokers, by its bits."""
    if core != "one-tree":
        return subset_weights(prices, core == "steiner")
    count = len(prices)
    sets = np.arange(1 << count)
    inside = (sets[:, None] >> np.arange(count)[None, :] & 1).astype(np.bool_)
    # From any broker of the set itself nothing is added to the part that connects the set.
    return np.asarray(reach(prices, inside, core)[sets, inside.argmax(axis=1)])
