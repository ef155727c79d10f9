"""Real brokers that adapt their tree after a change, message by message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.simulator.adapting_overlay import AdaptingOverlay, Updates, with_tolerances
from benchmarks.study import (
    Chart,
    Claim,
    Column,
    Findings,
    Line,
    Progress,
    Size,
    Study,
    Table,
    Value,
    mean,
    result_hash,
)
from distributary.broker.settings import AdaptationSettings
from distributary.fidelity import FidelityProblem, Forest, build_trees
from distributary.fidelity.generate import generate_problem
from distributary.simulator.queueing import first_servers, slowed

__all__ = ["LOAD", "PARAMETERS", "STUDY", "Measured", "Parameters", "measure"]

LOAD = "slow servers"
_DELAYS = "delays"
_TOLERANCES = "tolerances"

_SLOWED = 10.0
_FARTHER = 3.0
_NEEDED = (0.5, 2.0)
_ADAPTIVE_MAX = 1.10
# How many windows a point of the series is of.
_GROUP = 10


@dataclass(frozen=True)
class Parameters:
    """How large a run is.

    Attributes
    ----------
    cases
        What changes, with which seed.
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


PARAMETERS: Mapping[Size, Parameters] = {
    # More updates in shorter windows: as many in each, and a tree of more than one level.
    "small": Parameters(
        24,
        4,
        ((LOAD, 2), (_DELAYS, 2), (_TOLERANCES, 2)),
        (3.0, 9.0),
        shift_s=25.0,
        seconds=200.0,
        last_s=75.0,
        static_s=50.0,
        window_s=5.0,
        adaptation=AdaptationSettings(window_s=12.5, round_s=25.0, hold_s=5.0),
        static_min=1.1,
    ),
    "large": Parameters(
        256,
        10,
        (*((LOAD, seed) for seed in (1, 2, 3, 4, 5)), (_DELAYS, 1), (_TOLERANCES, 1)),
        (0.5, 1.5),
        shift_s=1_000.0,
        seconds=11_000.0,
        last_s=5_000.0,
        static_s=1_000.0,
        window_s=100.0,
        adaptation=AdaptationSettings(),
        static_min=1.5,
    ),
}


@dataclass(frozen=True, eq=False)
class Measured:
    """What became of a tree after a change.

    Attributes
    ----------
    losses
        The average loss in each window.
    annealed
        The loss, over the last stretch, of the tree that annealing finds for the new state.
    static_annealed, static
        The same over the very last stretch, and the loss of the tree for the old state.
    moves
        How many moves were made before the change and after it.
    """

    losses: tuple[float, ...]
    annealed: float
    static_annealed: float
    static: float
    moves: tuple[int, int]

    def last(self, windows: int) -> float:
        """Return the loss in the last windows, beside that of annealing."""
        return mean(self.losses[-windows:]) / self.annealed

    @property
    def unchanged(self) -> float:
        """The loss of the tree that stays as it was, beside that of annealing."""
        return self.static / self.static_annealed


def measure(parameters: Parameters, kind: str, seed: int) -> Measured:
    """Change something while a stream runs, and see what it loses then."""
    before = with_tolerances(
        generate_problem(seed=seed, servers=parameters.servers, rates=parameters.rates)
    )
    old = build_trees(before, method="anneal", seed=seed).forest
    after = _changed(before, old, kind, parameters, seed)
    new = build_trees(after, method="anneal", seed=seed).forest
    # All runs carry the same updates, so that luck cancels out.
    updates = Updates.draw(parameters.rates[1], seconds=parameters.seconds, seed=seed)
    # Delays are measured by pings, in turn; where they stay as they are few of those will do.
    ping_s = 2.0 if kind == _DELAYS else 20.0
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
    annealed = _at_rest(parameters, after, new, updates, parameters.last_s, seed)
    static = _at_rest(parameters, after, old, updates, parameters.static_s, seed)
    windows = round(parameters.static_s / parameters.window_s)
    return Measured(
        tuple(share for _, share in overlay.losses()),
        mean(annealed),
        mean(annealed[-windows:]),
        mean(static),
        (earlier, len(overlay.adapted) - earlier),
    )


def _changed(
    problem: FidelityProblem, forest: Forest, kind: str, parameters: Parameters, seed: int
) -> FidelityProblem:
    """Return the state after the change."""
    if kind == LOAD:
        return slowed(problem, first_servers(forest, parameters.slowed_servers), _SLOWED)
    rng = np.random.default_rng(seed)
    chosen = 1 + rng.permutation(parameters.servers)[: parameters.servers // 2]
    if kind == _DELAYS:
        far = np.zeros(problem.node_count, dtype=np.bool_)
        far[chosen] = True
        factors = np.where(far[:, None] | far[None, :], _FARTHER, 1.0)
        return replace(problem, delays=problem.delays * factors)
    assert kind == _TOLERANCES
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
) -> list[float]:
    """Return what a tree that nobody changes loses in each window of the last stretch."""
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
    return [share for _, share in overlay.losses()][-windows:]


def _run(size: Size, progress: Progress) -> Findings:
    parameters = PARAMETERS[size]
    measured = {}
    for kind, seed in parameters.cases:
        progress(f"{kind}, seed {seed}")
        item = measured[kind, seed] = measure(parameters, kind, seed)
        progress(f"{item.last(parameters.last_windows):.3f} times SA, {item.unchanged:.2f} without")
    return Findings(
        tables=(_case_table(parameters, measured), _series_table(parameters, measured)),
        claims=_claims(parameters, measured),
        result_hash=result_hash(
            [
                [*item.losses, item.annealed, item.static_annealed, item.static, *item.moves]
                for item in measured.values()
            ]
        ),
    )


_Cases = Mapping[tuple[str, int], Measured]


def _claims(parameters: Parameters, measured: _Cases) -> tuple[Claim, ...]:
    unit = "times SA of the new state"
    slow = [item.unchanged for (kind, _), item in measured.items() if kind == LOAD]
    return (
        *(
            Claim(
                f"{kind}, seed {seed}, last {parameters.last_s:,.0f} s",
                item.last(parameters.last_windows),
                "<=",
                _ADAPTIVE_MAX,
                unit,
            )
            for (kind, seed), item in measured.items()
        ),
        Claim(f"{LOAD}, without adapting, mean", mean(slow), ">=", parameters.static_min, unit),
    )


def _case_table(parameters: Parameters, measured: _Cases) -> Table:
    settings = parameters.adaptation
    return Table(
        f"Brokers that adapt their tree, {parameters.servers} servers, "
        f"last {parameters.last_s:,.0f} s",
        "quality",
        (
            Column("what changes"),
            Column("seed"),
            Column("loss of SA of the new state", 4),
            Column("adapting, times that", 3),
            Column("not adapting, times that", 2),
            Column("moves before"),
            Column("moves after"),
        ),
        tuple(
            (
                kind,
                seed,
                item.annealed,
                item.last(parameters.last_windows),
                item.unchanged,
                *item.moves,
            )
            for (kind, seed), item in measured.items()
        ),
        notes=(
            f"A run of {parameters.seconds:,.0f} s begins with the tree that annealing finds. At "
            f"{parameters.shift_s:,.0f} s the first {parameters.slowed_servers} servers of a "
            f"breadth-first walk become ten times as slow; or the delays to and from every "
            "second server three times as long; or every second follower needs half or twice "
            "as many updates as before, because it tolerates more or less. The loss is the share "
            "of time for which copies at brokers are outside of their followers' tolerances. It "
            "is divided by that of the tree that annealing finds for the new state, planted and "
            "left alone, with the same updates. A tree for the old state that is left alone is "
            f"measured over the last {parameters.static_s:,.0f} s. Windows of "
            f"{settings.window_s:g} s, rounds of {settings.round_s:g} s, tau {settings.tau:g}."
        ),
    )


def _series_table(parameters: Parameters, measured: _Cases) -> Table:
    series = {
        kind: np.mean(
            [
                np.reshape(item.losses, (-1, _GROUP)).mean(axis=1) / item.annealed
                for (name, _), item in measured.items()
                if name == kind
            ],
            axis=0,
        ).tolist()
        for kind in dict.fromkeys(kind for kind, _ in measured)
    }
    step_s = _GROUP * parameters.window_s
    ends = [step_s * (k + 1) for k in range(len(series[LOAD]))]
    rows: list[tuple[Value, ...]] = [
        (end, *(values[k] for values in series.values())) for k, end in enumerate(ends)
    ]
    title = (
        f"Loss while brokers adapt, {parameters.servers} servers, "
        f"change at {parameters.shift_s:,.0f} s"
    )
    return Table(
        title,
        "quality",
        (Column("until s"), *(Column(kind, 3) for kind in series)),
        tuple(rows),
        notes=(
            f"In windows of {step_s:,.0f} s, divided by the loss of the tree that annealing "
            f"finds for the new state over the last {parameters.last_s:,.0f} s; mean of the seeds."
        ),
        chart=Chart(
            "adaptation-256",
            title,
            "seconds",
            "times the loss of annealing",
            tuple(
                Line(kind, tuple(zip(ends, values, strict=True)), colour=colour)
                for colour, (kind, values) in enumerate(series.items())
            ),
        ),
    )


STUDY = Study(
    name="adaptation-256",
    about=(
        "Brokers that adapt the tree of a stream by what they tell each other, after servers at "
        "its top become slow, after delays change and after tolerances change: Zhou, Ooi and "
        "Tan's experiment with one object, in the simulator of messages."
    ),
    minutes=45.0,
    run=_run,
)
