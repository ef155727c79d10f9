"""Re-wiring: the best wiring with few users moved away from where they are."""

from __future__ import annotations

import itertools
import math

import numpy as np

from distributary.arrays import IntArray
from distributary.errors import InfeasiblePlan
from distributary.kernels import clock
from distributary.wiring._rewire_kernels import best_gains, relieve
from distributary.wiring._search_kernels import GAIN_MIN, descend
from distributary.wiring.capacity import check_feasible, room_limits
from distributary.wiring.cost import cost
from distributary.wiring.problem import WiringProblem
from distributary.wiring.search import Observer, WiringSearch, search_wiring
from distributary.wiring.starts import attach_rest
from distributary.wiring.wiring import ROUNDING, loads
from distributary.xorshift import seed_state

__all__ = ["rewire", "users_moved"]

# Up to so many wirings all are tried; there are more than that beyond so many moves.
_TRIED_MAX, _MOVED_MAX = 4_000, 20
# The moves that are allowed are used up in about so many rounds; in each the users are
# judged anew, since a move changes what others gain.
_ROUNDS = 20
# Cooling starts mildly: far from where they are, few users could go on.
_HOT = 0.1
_COOLING_PER_USER, _COOLING_MAX = 300_000, 500_000_000
# Pairs of user and broker up to which the users are also wired from nothing.
_PAIRS_MAX = 2_000_000
# Steps after which no more users are sent back home to let others go instead.
_EXCHANGE_MAX = 500_000_000
# More than any search takes.
_STEPS_ENOUGH = 2**62


def users_moved(home: IntArray, broker_of: IntArray) -> int:
    """Return how many users are no longer where they were; new users do not count."""
    return int(((home >= 0) & (broker_of != home)).sum())


def rewire(
    problem: WiringProblem,
    home: IntArray,
    moves: int,
    *,
    core: str = "mst",
    seed: int = 0,
    time_limit: float | None = None,
    observe: Observer | None = None,
    tried_max: int = _TRIED_MAX,
) -> IntArray:
    """Return the best wiring found with at most `moves` users moved.

    Where there are at most `tried_max` such wirings it is the best of all; else a search finds it.

    Users at -1 have no broker yet, and do not count as moved wherever they are attached. Raises
    `InfeasiblePlan` when brokers are overloaded and that cannot be mended with so few moves.
    """
    check_feasible(problem)
    if _wirings_near(problem, home, moves) <= tried_max:
        return _best_of_all(problem, home, moves, core)
    start = attach_rest(problem, home)
    search = WiringSearch.of(
        problem, start, core=core, home=home, moves_max=moves, time_limit=time_limit
    )
    relieve(search.state)
    _check_relieved(problem, search.state.broker_of, moves)
    _spend(search)
    best, best_cost = search.state.broker_of.copy(), float(search.state.total[0])
    rng = np.random.default_rng(seed)
    steps = min(_COOLING_PER_USER * problem.user_count, _COOLING_MAX)
    search.anneal(seed_state(seed), steps, hot=_HOT, observe=observe)
    search.polish(rng)
    for phase in ("cooled", "polished", "returned", "few"):
        if phase == "polished":
            search.start_at(best)
            search.polish(rng)
        elif phase == "returned":
            if not _go_back(search, seed, core):
                continue
            search.polish(rng)
        elif phase == "few":
            fewer = _enumerable_moves(problem, home, moves)
            if fewer is None:
                continue
            search.start_at(_best_of_all(problem, home, fewer, core))
        _exchange(search)
        if search.state.total[0] < best_cost:
            best, best_cost = search.state.broker_of.copy(), float(search.state.total[0])
    return best


def _enumerable_moves(problem: WiringProblem, home: IntArray, moves: int) -> int | None:
    """Return the most moves of which all ways can be tried, if the old wiring fits at all."""
    if (home < 0).any() or (loads(problem, home) > room_limits(problem)).any():
        return None
    return max(k for k in range(moves + 1) if _wirings_near(problem, home, k) <= _TRIED_MAX)


def _go_back(search: WiringSearch, seed: int, core: str) -> bool:
    """Wire anew, send back home whoever must, those first whom it costs least; say if it works.

    From a wiring that is free of the old one it is sometimes nearer to a good one than from
    home, above all when many may move.
    """
    problem, state = search.problem, search.state
    home, moves = state.home, state.moves
    if problem.user_count * problem.broker_count > _PAIRS_MAX or search.late:
        return False
    left = None if search.deadline == np.inf else search.deadline - clock()
    search.start_at(search_wiring(problem, core=core, seed=seed, time_limit=left))
    while moves[0] > moves[1]:
        away = search.away
        losses = np.full(len(away), np.inf)
        for place, u in enumerate(away.tolist()):
            if search.fits(u, int(home[u])):
                losses[place] = search.move(u, int(home[u]), most=-np.inf)
        if not np.isfinite(losses).any():
            return False
        # A few at a time, since every return changes what the others cost.
        over = int(moves[0] - moves[1])
        cheapest = np.argsort(losses, kind="stable")[: max(1, over // _ROUNDS)]
        for u in away[cheapest[np.isfinite(losses[cheapest])]].tolist():
            if search.fits(u, int(home[u])):
                search.move(u, int(home[u]), most=np.inf)
    return True


def _wirings_near(problem: WiringProblem, home: IntArray, moves: int) -> float:
    """Return in how many ways so few users can be moved, and the new ones be attached."""
    settled = int((home >= 0).sum())
    others = problem.broker_count - 1
    ways = sum(
        math.comb(settled, moved) * float(others) ** moved
        for moved in range(min(moves, settled, _MOVED_MAX) + 1)
    )
    return ways * float(problem.broker_count) ** min(problem.user_count - settled, _MOVED_MAX)


def _best_of_all(problem: WiringProblem, home: IntArray, moves: int, core: str) -> IntArray:
    """Return the best wiring with so few moves by trying all of them."""
    settled = np.flatnonzero(home >= 0)
    new = np.flatnonzero(home < 0)
    limits = room_limits(problem)
    best: IntArray | None = None
    best_cost = shortfall = math.inf
    for count in range(min(moves, len(settled)) + 1):
        for leaving in itertools.combinations(settled.tolist(), count):
            users = [*leaving, *new.tolist()]
            for targets in itertools.product(range(problem.broker_count), repeat=len(users)):
                if any(home[u] == b for u, b in zip(leaving, targets, strict=False)):
                    continue
                wiring = np.array(home, dtype=np.int64)
                wiring[users] = targets
                over = float((loads(problem, wiring) - limits).max())
                shortfall = min(shortfall, over)
                if over <= 0.0:
                    total = cost(problem, wiring, core=core).total
                    if total < best_cost:
                        best, best_cost = wiring, total
    if best is None:
        raise InfeasiblePlan(
            f"with the number of moves limited to {moves:,} no wiring respects the capacities: "
            f"the best is short by {shortfall:.6g}; hint: allow more moves",
            shortfall=shortfall,
        )
    return best


def _check_relieved(problem: WiringProblem, broker_of: IntArray, moves: int) -> None:
    """Raise `InfeasiblePlan` if some broker still has more than it can carry."""
    over = loads(problem, broker_of) - problem.capacities * (1.0 + ROUNDING)
    if (over > 0.0).any():
        broker = int(np.argmax(over))
        raise InfeasiblePlan(
            f"broker {problem.brokers[broker]!r} carries {over[broker]:.6g} more than its "
            f"capacity, and {moves:,} moves did not mend that; hint: allow more moves",
            shortfall=float(over[broker]),
        )


def _spend(search: WiringSearch, *, barred: int | None = None) -> None:
    """Move those first who gain most, and judge the rest anew after every few.

    The user `barred` stays.
    """
    state, moves = search.state, search.state.moves
    gains = np.empty(search.problem.user_count)
    targets = np.empty(search.problem.user_count, dtype=np.int64)
    while not search.late:
        best_gains(state, gains, targets)
        if barred is not None:
            gains[barred] = 0.0
        left = int(moves[1] - moves[0])
        users = np.argsort(gains, kind="stable")[: max(1, left // _ROUNDS)]
        made = 0
        for u in users[gains[users] < 0.0].tolist():
            if targets[u] < 0:
                made += descend(state, np.array([u]), _STEPS_ENOUGH)
                continue
            to, home = int(targets[u]), state.home[u]
            away = int(to != home) - int(state.broker_of[u] != home) if home >= 0 else 0
            if moves[0] + away <= moves[1] and search.fits(u, to):
                helps = -GAIN_MIN * float(state.total[0])
                made += search.move(u, to, most=helps) <= helps
        if made == 0:
            return


def _exchange(search: WiringSearch) -> None:
    """Send users back home one by one, and keep it that way if others use the move better."""
    state = search.state
    until = state.steps[0] + _EXCHANGE_MAX
    for u in search.away:
        if search.late or state.steps[0] >= until:
            return
        before, cost = state.broker_of.copy(), float(state.total[0])
        returned = before.copy()
        home = int(state.home[u])
        returned[u] = home
        if loads(search.problem, returned)[home] > state.capacities[home]:
            continue
        search.start_at(returned)
        _spend(search, barred=int(u))
        if state.total[0] >= cost:
            search.start_at(before)
