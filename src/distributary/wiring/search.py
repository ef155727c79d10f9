"""Our own search for a wiring: several starts, cooling, and descent on the full cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from distributary.arrays import IntArray, UintArray
from distributary.errors import InfeasiblePlan
from distributary.kernels import clock
from distributary.wiring._search_kernels import anneal, descend, reshape
from distributary.wiring._state_kernels import WiringState, fill, try_change
from distributary.wiring.clustering import clustering_wiring
from distributary.wiring.mixing import mixing_wiring
from distributary.wiring.model import state_of
from distributary.wiring.packing import packing_wiring
from distributary.wiring.problem import WiringProblem, row_starts
from distributary.wiring.starts import central_wiring, nearest_brokers, nearest_users
from distributary.xorshift import seed_state

__all__ = ["Observer", "WiringSearch", "search_wiring"]

Observer = Callable[[str, int, int], None]

# Pairs of user and broker beyond which clustering and mixing take too long to start from.
_PAIRS_MAX = 2_000_000
# Few central brokers: their capacity as a multiple of the demand.
_SHARES = (1.1, 1.4)
_NEAR_BROKERS, _NEAR_USERS = 10, 40
# Starts that cost more than this many times the cheapest are not worth a descent.
_FAR = 1.5
# The first temperature as a multiple of what one user costs: the more of that is core, the
# more there is to arrange anew. The last is lower by this factor.
_HOT_PER_CORE_SHARE, _HOT_MIN, _HOT_MAX, _COLD = 1.5, 0.1, 1.0, 0.02
_TEMPERATURES = 60
# Steps (a few nanoseconds each) of cooling: for every pair of user and broker, at least and
# at most; and at most for every descent. They are counted, not timed, so that a seed gives
# one result.
_COOLING_PER_PAIR, _COOLING_MIN, _COOLING_MAX = 40_000, 2_000_000, 500_000_000
_DESCENT_MAX = 10_000_000_000
# Cooling is done anew from other starts as long as it is cheap.
_RUNS_MAX, _RUNS_STEPS = 6, 400_000_000
_ROUNDS_MAX = 50


@dataclass(frozen=True, eq=False)
class WiringSearch:
    """What the phases of a search share.

    Attributes
    ----------
    problem
        What to plan.
    state
        The wiring under change.
    near, near_users
        The brokers near each user, and the users near each broker.
    reader_start, readers
        The subscribers of each channel, in rows.
    deadline
        When to stop, on the clock of `kernels.clock`.
    """

    problem: WiringProblem
    state: WiringState
    near: IntArray
    near_users: IntArray
    reader_start: IntArray
    readers: IntArray
    deadline: float

    @classmethod
    def of(
        cls,
        problem: WiringProblem,
        broker_of: IntArray,
        *,
        core: str,
        home: IntArray | None = None,
        moves_max: int | None = None,
        time_limit: float | None = None,
    ) -> WiringSearch:
        """Return a search that stands at `broker_of`; `home` and `moves_max` as of `state_of`."""
        by_channel = np.argsort(problem.interest_channel, kind="stable")
        return cls(
            problem=problem,
            state=state_of(problem, broker_of, core, home=home, moves_max=moves_max),
            near=nearest_brokers(problem, _NEAR_BROKERS),
            near_users=nearest_users(problem, _NEAR_USERS),
            reader_start=row_starts(problem.interest_channel, problem.channel_count),
            readers=problem.reader[by_channel],
            deadline=np.inf if time_limit is None else clock() + time_limit,
        )

    @property
    def late(self) -> bool:
        """Is the time up?"""
        return clock() >= self.deadline

    @property
    def away(self) -> IntArray:
        """The users who are not where they came from."""
        return np.flatnonzero((self.state.home >= 0) & (self.state.broker_of != self.state.home))

    def start_at(self, broker_of: IntArray) -> None:
        """Go on from another wiring."""
        self.state.broker_of[:] = broker_of
        fill(self.state)

    def fits(self, u: int, to: int) -> bool:
        """Has broker `to` room for user `u`?"""
        state = self.state
        return bool(state.loads[to] + state.demands[u] <= state.capacities[to])

    def move(self, u: int, to: int, *, most: float) -> float:
        """Return what moving a user adds to the cost, and move it if that is at most `most`."""
        self.state.users[0], self.state.targets[0] = u, to
        return try_change(self.state, 1, most)

    def descend(self, rng: np.random.Generator) -> None:
        """Move and swap single users until none helps any more."""
        until = self.state.steps[0] + _DESCENT_MAX
        for _ in range(_ROUNDS_MAX):
            order = rng.permutation(self.problem.user_count)
            # In pieces, so that a time limit is kept with many users.
            pieces = np.array_split(order, max(1, len(order) // 2_000))
            made = 0
            for piece in pieces:
                if self.late:
                    return
                made += descend(self.state, piece, until)
            if made == 0 or self.state.steps[0] >= until:
                return

    def polish(self, rng: np.random.Generator) -> None:
        """Descend, close and open brokers, and descend again until nothing helps."""
        until = self.state.steps[0] + _DESCENT_MAX
        self.descend(rng)
        for _ in range(_ROUNDS_MAX):
            made = 0
            for brokers in np.array_split(rng.permutation(self.problem.broker_count), 10):
                if self.late or self.state.steps[0] >= until:
                    return
                made += reshape(self.state, brokers, self.near_users, until)
            if made == 0:
                return
            self.descend(rng)

    def anneal(
        self,
        numbers: UintArray,
        steps: int,
        *,
        hot: float | None = None,
        observe: Observer | None = None,
    ) -> None:
        """Cool from `hot` times the cost of a user, and end at the best wiring on the way."""
        if hot is None:
            core_share = float(self.state.core.sum() / max(self.state.total[0], 1e-300))
            hot = min(max(_HOT_PER_CORE_SHARE * core_share, _HOT_MIN), _HOT_MAX)
        best, best_cost = self.state.broker_of.copy(), self.state.total.copy()
        began = int(self.state.steps[0])
        for step in range(_TEMPERATURES):
            if self.late:
                break
            share = hot * _COLD ** (step / (_TEMPERATURES - 1))
            anneal(
                numbers,
                self.state,
                self.near,
                self.reader_start,
                self.readers,
                share * float(best_cost[0]) / self.problem.user_count,
                began + steps * (step + 1) // _TEMPERATURES,
                best,
                best_cost,
            )
            if observe is not None:
                observe("search", step + 1, _TEMPERATURES)
        self.start_at(best)


def search_wiring(
    problem: WiringProblem,
    *,
    core: str = "mst",
    seed: int = 0,
    time_limit: float | None = None,
    observe: Observer | None = None,
) -> IntArray:
    """Return the best wiring found.

    The search starts from the published methods and from packing onto few central brokers,
    so that it is never dearer than any of them. It cools from the best and, where that is
    cheap, from the others; then it closes and opens brokers and moves and swaps users
    until nothing helps. With a time limit it goes on cooling until then; without one, the
    result depends on the seed only.
    """
    rng = np.random.default_rng(seed)
    numbers = seed_state(seed)
    ended = None if time_limit is None else clock() + time_limit
    starts = list(_starts(problem, seed, ended))
    left = None if ended is None else max(0.0, ended - clock())
    search = WiringSearch.of(problem, starts[0], core=core, time_limit=left)
    state = search.state
    if problem.user_count == 0 or problem.broker_count == 1:
        return state.broker_of
    standing: list[tuple[float, IntArray]] = []
    for start in starts:
        search.start_at(start)
        standing.append((float(state.total[0]), start))
    standing.sort(key=lambda entry: entry[0])
    reached: list[tuple[float, IntArray]] = []
    for total, start in standing:
        if total > _FAR * standing[0][0]:
            break
        search.start_at(start)
        search.descend(rng)
        reached.append((float(state.total[0]), state.broker_of.copy()))
        if search.late:
            break
    reached.sort(key=lambda entry: entry[0])
    best_cost, best = reached[0]
    pairs = problem.user_count * problem.broker_count
    steps = min(max(_COOLING_PER_PAIR * pairs, _COOLING_MIN), _COOLING_MAX)
    runs = min(_RUNS_MAX, max(1, _RUNS_STEPS // steps))
    done = 0
    while done < runs or (time_limit is not None and not search.late):
        search.start_at(reached[done % len(reached)][1])
        search.anneal(numbers, steps, observe=observe)
        search.polish(rng)
        if state.total[0] < best_cost:
            best_cost, best = float(state.total[0]), state.broker_of.copy()
        done += 1
        if search.late:
            break
    return best


def _starts(problem: WiringProblem, seed: int, ended: float | None) -> Iterator[IntArray]:
    """Yield wirings to start from, the cheapest to make first."""
    yield packing_wiring(problem, seed=seed)
    for share in _SHARES:
        central = central_wiring(problem, share)
        if central is not None:
            yield central
    if problem.user_count * problem.broker_count > _PAIRS_MAX:
        return
    for method in (clustering_wiring, mixing_wiring):
        if ended is not None and clock() >= ended:
            return
        try:
            yield method(problem, seed=seed)
        except InfeasiblePlan:
            # There is a wiring to start from already.
            continue
