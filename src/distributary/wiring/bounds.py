"""A lower bound on what any wiring costs, at any size and for every mode of the core.

Users and channels are taken apart. A channel opens the brokers that its subscribers are on
and pays its rate times the weight of a tree for them; a subscriber must be on a broker that
all its channels have opened. That "must" is given up for prices: every subscriber pays a
share of the opening of a broker where it attaches, and the channel receives it. Likewise
the capacities are given up for surcharges on the brokers' prices. Then every user chooses
its broker and every channel its brokers by themselves, and for whatever shares and
surcharges the sum is a bound (Lagrangian relaxation); subgradients improve them.

Two more things are known about a channel. The capacities tell how many brokers its
subscribers need at least. And no tree weighs less than the one in which groups of brokers
join at the least price between them, for which the best set of brokers can be computed
(`_linkage_kernels`); with few brokers the true weight of every set is in a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.wiring._bound_kernels import cheapest_access, choose, follow, near_brokers
from distributary.wiring._linkage_kernels import least_by_linkage, least_by_set, link
from distributary.wiring.core import STEINER_EXACT_MAX, broker_tree
from distributary.wiring.exact import set_weights
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import CORES, ROUNDING

__all__ = ["lower_bound"]

# Steps (of a few nanoseconds) that a second has, on the machine in docs/benchmarks.md. Time
# is counted in steps, not by the clock: the same problem then has the same bound anywhere.
_STEPS_PER_SECOND = 8e8
_SECONDS, _SECONDS_PER_PRICE = 1.0, 4e-8
_ROUNDS_MIN, _ROUNDS_MAX = 8, 400
# Rounds for the surcharges alone, before the near brokers of each user are chosen.
_ACCESS_ROUNDS = 15
# Shares are held for so many pairs of a wish and a near broker.
_SHARES_MAX = 4_000_000
_NEAR_MIN = 4
# By how much the bound is believed to be able to rise at first, as a share of itself: by
# surcharges, and at most; and what is left of that belief in the last round.
_RISE = 0.03
_RISE_MAX = 1.5
_RISE_LEFT = 0.01


def lower_bound(
    problem: WiringProblem, *, core: str = "mst", time_limit: float | None = None
) -> float:
    """Return what no wiring costs less than.

    About `time_limit` seconds may be spent; unless given, one, and four more for every hundred
    million access prices. It is turned into a number of steps, so that the bound does not depend
    on how fast a machine is. The prices are read a few times in any case.
    """
    assert core in CORES
    if time_limit is None:
        time_limit = _SECONDS + _SECONDS_PER_PRICE * problem.access_prices.size
    budget = _STEPS_PER_SECOND * time_limit
    limited = np.isfinite(problem.capacities)
    ascent = _Ascent(
        # What rounding may add to a load is no overload, so it must not raise the bound.
        capacities=np.where(limited, problem.capacities * (1.0 + 2.0 * ROUNDING), np.inf),
        unit=max(float(problem.demands.mean()) if problem.user_count else 0.0, 1e-300),
    )
    wishes = _Wishes.of(problem)
    width = problem.broker_count
    if len(wishes.channels):
        width = min(width, max(_NEAR_MIN, _SHARES_MAX // len(wishes.channels)))
    else:
        width = min(width, _NEAR_MIN)
    surcharges = np.zeros(problem.broker_count)
    bound = 0.0
    if width < problem.broker_count or not len(wishes.channels):
        rounds = _rounds(budget / 2.0, problem.access_prices.size, _ACCESS_ROUNDS)
        bound, surcharges = ascent.access(problem, rounds)
    if len(wishes.channels):
        bound = max(bound, ascent.joint(problem, wishes, core, width, surcharges, budget))
    return max(0.0, bound * (1.0 - ROUNDING))


def _rounds(budget: float, steps: float, most: int) -> int:
    """Return how many rounds of so many steps fit into a budget."""
    return int(min(most, max(_ROUNDS_MIN, budget / max(steps, 1.0))))


@dataclass(frozen=True, eq=False)
class _Wishes:
    """Subscriptions to channels that carry anything, by user.

    Attributes
    ----------
    starts, channels
        As `interest_start` and `interest_channel` of a problem; channels are renumbered.
    rates
        Of the channels.
    counts_min
        How many brokers the subscribers of each channel need at least.
    """

    starts: IntArray
    channels: IntArray
    rates: FloatArray
    counts_min: IntArray

    @classmethod
    def of(cls, problem: WiringProblem) -> _Wishes:
        """Return the wishes of a problem."""
        carried = problem.channel_rates[problem.interest_channel] > 0.0
        readers = problem.reader[carried]
        used, channels = np.unique(problem.interest_channel[carried], return_inverse=True)
        together = np.bincount(channels, weights=problem.demands[readers], minlength=len(used))
        holds = np.cumsum(np.sort(problem.capacities)[::-1]) * (1.0 + 2.0 * ROUNDING)
        counts_min = np.minimum(np.searchsorted(holds, together) + 1, problem.broker_count)
        ends = np.cumsum(np.bincount(readers, minlength=problem.user_count))
        return cls(
            starts=np.concatenate([[0], ends]).astype(np.int64),
            channels=channels.astype(np.int64).ravel(),
            rates=problem.channel_rates[used],
            counts_min=counts_min.astype(np.int64),
        )


@dataclass(frozen=True, eq=False)
class _Ascent:
    """How multipliers are improved.

    `unit` is the mean demand: a surcharge counts by what it does to an average user, so that it can
    be compared with shares.
    """

    capacities: FloatArray
    unit: float

    def _excess(self, loads: FloatArray, surcharges: FloatArray) -> FloatArray:
        """Return by how many average users each broker is overloaded, where that matters."""
        limited = np.isfinite(self.capacities)
        excess = np.where(limited, loads - np.where(limited, self.capacities, 0.0), 0.0)
        return np.where((surcharges > 0.0) | (excess > 0.0), excess / self.unit, 0.0)

    def _paid(self, surcharges: FloatArray) -> float:
        """Return what the surcharges would bring if every broker were full."""
        charged = surcharges > 0.0
        return float(surcharges[charged] @ self.capacities[charged])

    def access(self, problem: WiringProblem, rounds: int) -> tuple[float, FloatArray]:
        """Return a bound on access alone, and the surcharges that give it."""
        surcharges, loads = np.zeros(problem.broker_count), np.empty(problem.broker_count)
        belief = _Belief(rounds, core=0.0)
        best = surcharges
        for _ in range(rounds):
            bound = cheapest_access(problem.demands, problem.access_prices, surcharges, loads)
            bound -= self._paid(surcharges)
            if belief.improved(bound):
                best = surcharges
            excess = self._excess(loads, surcharges)
            step = belief.step(bound, float(excess @ excess))
            if step == 0.0:
                break
            surcharges = np.maximum(0.0, surcharges + step / self.unit * excess)
        return belief.best, best

    def joint(
        self,
        problem: WiringProblem,
        wishes: _Wishes,
        core: str,
        width: int,
        start: FloatArray,
        budget: float,
    ) -> float:
        """Return a bound on access and core together.

        Shares are held for the `width` nearest brokers of each user; `start` are surcharges to
        begin with, and `budget` is in steps.
        """
        near = np.empty((problem.user_count, width), dtype=np.int64)
        far = np.empty(problem.user_count)
        near_brokers(problem.access_prices, start, near, far)
        near_prices = np.take_along_axis(problem.access_prices, near, axis=1)
        shares = np.zeros((len(wishes.channels), width))
        gains = np.zeros((len(wishes.rates), problem.broker_count))
        opened = np.zeros(gains.shape, dtype=np.bool_)
        chosen = np.empty(problem.user_count, dtype=np.int64)
        loads = np.empty(problem.broker_count)
        open_best, steps = _opening(problem, wishes, core)
        steps += near.size + 10 * shares.size
        surcharges = start
        rounds = _rounds(budget, steps, _ROUNDS_MAX)
        everywhere = float(wishes.rates.sum() * broker_tree(problem.core_prices).edges.sum())
        belief = _Belief(rounds, core=everywhere)
        for _ in range(rounds):
            bound = open_best(gains, opened) - self._paid(surcharges)
            paid, disagreement = choose(
                problem.demands,
                near,
                near_prices,
                far,
                surcharges,
                float((surcharges - start).min()),
                wishes.starts,
                wishes.channels,
                shares,
                opened,
                chosen,
                loads,
            )
            bound += paid
            belief.improved(bound)
            excess = self._excess(loads, surcharges)
            step = belief.step(bound, float(excess @ excess) + disagreement)
            if step == 0.0:
                break
            surcharges = np.maximum(0.0, surcharges + step / self.unit * excess)
            follow(step, near, wishes.starts, wishes.channels, chosen, opened, shares, gains)
        return belief.best


class _Belief:
    """How far the best bound so far may still rise, which gives the length of a step.

    The belief shrinks a little in each of the `rounds`. `core` is what the core would cost if every
    channel opened all brokers.
    """

    def __init__(self, rounds: int, *, core: float) -> None:
        self.best = -np.inf
        self._core = core
        self._rise = np.nan
        self._shrink = _RISE_LEFT ** (1.0 / rounds)

    def improved(self, bound: float) -> bool:
        """Take note of the bound of a round and say whether it is the best."""
        if np.isnan(self._rise):
            self._rise = _RISE * bound + min(self._core, _RISE_MAX * bound)
        self._rise *= self._shrink
        better = bound > self.best
        self.best = max(self.best, bound)
        return better

    def step(self, bound: float, square: float) -> float:
        """Return the step along a subgradient of that squared length; 0 when it is nothing."""
        return (self.best + self._rise - bound) / square if square > 0.0 else 0.0


def _opening(
    problem: WiringProblem, wishes: _Wishes, core: str
) -> tuple[Callable[[FloatArray, BoolArray], float], float]:
    """Return the function that opens brokers for gains, and how many steps it takes."""
    prices = problem.core_prices
    brokers = problem.broker_count
    if brokers <= STEINER_EXACT_MAX:
        # With spanning trees a publisher may be where it saves: branching points bound that.
        weights = set_weights(prices, "steiner" if core == "mst" else core)
        bits = np.bitwise_count(np.arange(len(weights))).astype(np.int64)

        def by_set(gains: FloatArray, opened: BoolArray) -> float:
            return least_by_set(wishes.rates, wishes.counts_min, gains, weights, bits, opened)

        return by_set, 5.0 * len(wishes.rates) * len(weights)
    tree = broker_tree(prices)
    by_price = np.argsort(tree.edges[1:], kind="stable") + 1
    pairs, joins, sizes = link(tree.order, tree.parents, tree.edges, by_price)

    def by_linkage(gains: FloatArray, opened: BoolArray) -> float:
        return least_by_linkage(wishes.rates, wishes.counts_min, gains, pairs, joins, sizes, opened)

    return by_linkage, 2.0 * brokers * float((wishes.counts_min + 2).sum())
