"""Runs in which something changes, beside runs of trees that were planned for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.simulator.adapting_overlay import AdaptingOverlay, Updates, with_tolerances
from benchmarks.simulator.yardstick import best_annealed
from benchmarks.study import mean
from distributary.arrays import FloatArray
from distributary.broker.settings import AdaptationSettings
from distributary.fidelity import FidelityProblem, Forest, build_trees
from distributary.fidelity.generate import generate_problem
from distributary.simulator.queueing import first_servers, slowed

__all__ = ["DELAYS", "LOAD", "TOLERANCES", "Measured", "Parameters", "measure"]

LOAD = "slow servers"
DELAYS = "delays"
TOLERANCES = "tolerances"

_SLOWED = 10.0
_FARTHER = 3.0
_NEEDED = (0.5, 2.0)


@dataclass(frozen=True)
class Parameters:
    """How large a run is.

    Attributes
    ----------
    cases
        What changes, with which seed.
    wandering
        The same for values that wander.
    rates
        The least and the largest number of updates per second that somebody needs.
    shift_s, seconds
        When it changes, and when the run ends.
    last_s
        How long the stretch at the end is that counts.
    static_s
        How long the stretch at its end is for which a tree that stays as it was is measured.
    window_s
        The width of the windows in which the loss is measured. A run of a tree that stays
        as it is begins one window early, so that everybody has a copy.
    static_min
        What a tree that stays as it was must lose at least, after servers got slow.
    """

    servers: int
    slowed_servers: int
    cases: tuple[tuple[str, int], ...]
    wandering: tuple[tuple[str, int], ...]
    rates: tuple[float, float]
    shift_s: float
    seconds: float
    last_s: float
    static_s: float
    window_s: float
    adaptation: AdaptationSettings
    static_min: float

    @property
    def last_windows(self) -> int:
        """How many windows the stretch at the end has."""
        return round(self.last_s / self.window_s)


@dataclass(frozen=True, eq=False)
class Measured:
    """What became of a tree after a change.

    Attributes
    ----------
    losses
        The average loss in each window.
    annealed
        The loss, over the last stretch, of the best tree that annealing finds for the new
        state in some runs.
    static_annealed, static
        The same over the very last stretch, and the loss of the tree for the old state.
    moves
        How many moves were made before the change and after it.
    excess
        How many versions brokers in the tree of annealing get, for each that planners expect.
    """

    losses: tuple[float, ...]
    annealed: float
    static_annealed: float
    static: float
    moves: tuple[int, int]
    excess: float

    def last(self, windows: int) -> float:
        """Return the loss in the last windows, beside that of annealing."""
        return mean(self.losses[-windows:]) / self.annealed

    @property
    def unchanged(self) -> float:
        """The loss of the tree that stays as it was, beside that of annealing."""
        return self.static / self.static_annealed


def measure(parameters: Parameters, kind: str, seed: int, *, wandering: bool = False) -> Measured:
    """Change something while a stream runs, and see what it loses then.

    Parameters
    ----------
    wandering
        Whether the value wanders, in place of flipping its digits.
    """
    before = with_tolerances(
        generate_problem(seed=seed, servers=parameters.servers, rates=parameters.rates)
    )
    old = build_trees(before, method="anneal", seed=seed).forest
    after = _changed(before, old, kind, parameters, seed)
    new = best_annealed(after, seed=seed)
    # All runs carry the same updates, so that luck cancels out.
    draw = Updates.wander if wandering else Updates.draw
    updates = draw(parameters.rates[1], seconds=parameters.seconds, seed=seed)
    # Delays are measured by pings, in turn; where they stay as they are few of those will do.
    ping_s = 2.0 if kind == DELAYS else 20.0
    overlay = AdaptingOverlay(
        before,
        old,
        updates,
        adaptation=parameters.adaptation,
        ping_s=ping_s,
        window_s=parameters.window_s,
        seed=seed,
    )
    overlay.run_until(parameters.shift_s)
    earlier = len(overlay.adapted)
    overlay.change(after)
    overlay.run_until(parameters.seconds)
    annealed, excess = _at_rest(parameters, after, new, updates, parameters.last_s, seed)
    static, _ = _at_rest(parameters, after, old, updates, parameters.static_s, seed)
    windows = round(parameters.static_s / parameters.window_s)
    return Measured(
        tuple(share for _, share in overlay.losses()),
        mean(annealed),
        mean(annealed[-windows:]),
        mean(static),
        (earlier, len(overlay.adapted) - earlier),
        excess,
    )


def _changed(
    problem: FidelityProblem, forest: Forest, kind: str, parameters: Parameters, seed: int
) -> FidelityProblem:
    """Return the state after the change."""
    if kind == LOAD:
        return slowed(problem, first_servers(forest, parameters.slowed_servers), _SLOWED)
    rng = np.random.default_rng(seed)
    chosen = 1 + rng.permutation(parameters.servers)[: parameters.servers // 2]
    if kind == DELAYS:
        far = np.zeros(problem.node_count, dtype=np.bool_)
        far[chosen] = True
        factors = np.where(far[:, None] | far[None, :], _FARTHER, 1.0)
        return replace(problem, delays=problem.delays * factors)
    assert kind == TOLERANCES
    rates = problem.rates.copy()
    rates[chosen, 0] *= rng.choice(_NEEDED, size=len(chosen))
    return with_tolerances(replace(problem, rates=np.minimum(rates, rates[0])))


def _at_rest(
    parameters: Parameters,
    problem: FidelityProblem,
    forest: Forest,
    updates: Updates,
    last_s: float,
    seed: int,
) -> tuple[list[float], float]:
    """Return what a tree that nobody changes loses in each window of the last stretch.

    And how many versions brokers get, for each that the rates and the tree lead to expect.
    """
    windows = round(last_s / parameters.window_s)
    settle_s = parameters.window_s
    overlay = AdaptingOverlay(
        problem,
        forest,
        updates.since(parameters.seconds - last_s - settle_s),
        adaptation=replace(parameters.adaptation, enabled=False),
        ping_s=20.0,
        window_s=parameters.window_s,
        seed=seed,
    )
    overlay.run_until(last_s + settle_s)
    expected = _subtree_rates(problem, forest)[1:].sum() * (last_s + settle_s)
    losses = [share for _, share in overlay.losses()][-windows:]
    return losses, float(overlay.received / expected)


def _subtree_rates(problem: FidelityProblem, forest: Forest) -> FloatArray:
    """Return the largest rate at each broker and below it, which is what it is sent."""
    rates = problem.rates[:, 0].copy()
    parents = forest.parents[0]
    for _ in rates:
        np.maximum.at(rates, parents[1:], rates[1:])
    return rates
