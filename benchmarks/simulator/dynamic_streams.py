"""The published experiment in a dynamic environment: servers at the top slow down."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from benchmarks.simulator.yardstick import ANNEALED, best_annealed
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
from distributary.arrays import FloatArray
from distributary.fidelity import build_trees
from distributary.fidelity.generate import generate_problem
from distributary.simulator.queueing import (
    Adapting,
    Change,
    first_servers,
    simulate,
    slowed,
)

__all__ = ["STUDY"]

_SLOWED = 10.0
_ADAPTIVE_MAX = 1.10
_ADAPTIVE_SECONDS_MAX = 10.0
_METHODS = ("SA", "SA + adaptive", "DiTA")


@dataclass(frozen=True)
class _Parameters:
    servers: int
    slowed_servers: int
    seeds: tuple[int, ...]
    seconds: float
    shift_s: float
    last_s: float
    static_min: float
    rates: tuple[float, float] | None = None


_SIZES: Mapping[Size, _Parameters] = {
    # With few servers there are no more than one level of them, unless updates are frequent.
    "small": _Parameters(
        40, 4, (1, 2), 6_000.0, 2_000.0, 2_000.0, static_min=1.2, rates=(2.0, 6.0)
    ),
    "large": _Parameters(256, 10, (1, 2, 3, 4, 5), 20_000.0, 10_000.0, 5_000.0, static_min=1.5),
}


class _Common(TypedDict):
    """What all runs have in common."""

    seconds: float
    seed: int


@dataclass(frozen=True, eq=False)
class _Measured:
    """Losses by window beside those of annealing for the state of the time, for one seed."""

    relative: Mapping[str, FloatArray]
    moved: int
    reports: int
    received: int
    seconds: float

    def last(self, method: str, windows: int) -> float:
        """Return the mean of the last windows."""
        return float(self.relative[method][-windows:].mean())


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    measured = {}
    for seed in parameters.seeds:
        progress(f"seed {seed}")
        measured[seed] = _measure(parameters, seed)
    return Findings(
        tables=(
            _speed_table(parameters, measured),
            _series_table(parameters, measured),
            _seed_table(parameters, measured),
        ),
        claims=_claims(parameters, measured),
        result_hash=result_hash(
            [
                [item.moved, item.reports, *item.relative[method].tolist()]
                for item in measured.values()
                for method in _METHODS
            ]
        ),
    )


def _measure(parameters: _Parameters, seed: int) -> _Measured:
    before = generate_problem(seed=seed, servers=parameters.servers, rates=parameters.rates)
    annealed = build_trees(before, method="anneal", seed=seed).forest
    top = first_servers(annealed, parameters.slowed_servers)
    after = slowed(before, top, _SLOWED)
    anew = best_annealed(after, seed=seed)
    dita = build_trees(before, method="dita").forest
    # All runs of a seed carry the same updates, so that luck cancels out.
    common: _Common = {"seconds": parameters.seconds, "seed": seed}
    old = simulate(before, annealed, **common).average_loss_series
    new = simulate(after, anew, **common).average_loss_series
    changes = [Change(parameters.shift_s, after)]
    began = time.perf_counter()
    adaptive = simulate(before, annealed, changes=changes, adapting=Adapting(), **common)
    seconds = time.perf_counter() - began
    runs = {
        "SA": simulate(before, annealed, changes=changes, **common),
        "SA + adaptive": adaptive,
        "DiTA": simulate(before, dita, changes=changes, **common),
    }
    begins = np.arange(len(adaptive.loss_series)) * adaptive.window_s
    norm = np.where(begins < parameters.shift_s, old, new)
    return _Measured(
        {method: run.average_loss_series / norm for method, run in runs.items()},
        sum(done.moved for done in adaptive.rounds),
        sum(done.reports for done in adaptive.rounds),
        adaptive.received,
        seconds,
    )


def _last_windows(parameters: _Parameters) -> int:
    return round(parameters.last_s / 1_000.0)


def _claims(parameters: _Parameters, measured: Mapping[int, _Measured]) -> tuple[Claim, ...]:
    windows = _last_windows(parameters)
    last = f"last {parameters.last_s:,.0f} s"
    return (
        *(
            Claim(
                f"seed {seed}, SA + adaptive, {last}",
                item.last("SA + adaptive", windows),
                "<=",
                _ADAPTIVE_MAX,
                "times SA of the new state",
            )
            for seed, item in measured.items()
        ),
        Claim(
            f"SA alone, {last}, mean",
            mean([item.last("SA", windows) for item in measured.values()]),
            ">=",
            parameters.static_min,
            "times SA of the new state",
        ),
        Claim(
            "adaptive run, slowest",
            max(item.seconds for item in measured.values()),
            "<",
            _ADAPTIVE_SECONDS_MAX,
            "s",
        ),
    )


def _speed_table(parameters: _Parameters, measured: Mapping[int, _Measured]) -> Table:
    return Table(
        f"A run of {parameters.seconds:,.0f} s that adapts its tree, {parameters.servers} servers",
        "speed",
        (Column("seed"), Column("million messages", 2), Column("s", 2)),
        tuple((seed, 1e-6 * item.received, item.seconds) for seed, item in measured.items()),
        notes="With the time to decide about moves. Messages received by servers; once.",
    )


def _series_table(parameters: _Parameters, measured: Mapping[int, _Measured]) -> Table:
    series = {
        method: np.median([item.relative[method] for item in measured.values()], axis=0)
        for method in _METHODS
    }
    ends = [1_000.0 * (window + 1) for window in range(len(series["SA"]))]
    rows: list[tuple[Value, ...]] = [
        (end, *(float(series[method][window]) for method in _METHODS))
        for window, end in enumerate(ends)
    ]
    title = (
        f"Loss while {parameters.slowed_servers} of {parameters.servers} servers slow down "
        f"at {parameters.shift_s:,.0f} s"
    )
    return Table(
        title,
        "quality",
        (Column("until s"), *(Column(method, 3) for method in _METHODS)),
        tuple(rows),
        notes=(
            f"Measured by the queueing model in windows of 1,000 s, median of {len(measured)} "
            "seeds, divided by the loss, in the same window and with the same updates, of the "
            "tree that annealing finds for the state before the change, and from then on of the "
            f"best that it finds for the state after it in {ANNEALED} runs. The first servers of "
            "a breadth-first walk through the tree become ten times as slow. Zhou, Ooi and Tan "
            "report that adapting brings the loss back after a short rise, while SA and DiTA "
            "stay bad."
        ),
        chart=Chart(
            "paper-004-dynamic",
            title,
            "seconds",
            "times the loss of annealing",
            tuple(
                Line(
                    method,
                    tuple(zip(ends, series[method].tolist(), strict=True)),
                    colour=colour,
                )
                for colour, method in enumerate(_METHODS)
            ),
        ),
    )


def _seed_table(parameters: _Parameters, measured: Mapping[int, _Measured]) -> Table:
    windows = _last_windows(parameters)
    return Table(
        f"Adapting at run time, {parameters.servers} servers, last {parameters.last_s:,.0f} s",
        "quality",
        (
            Column("seed"),
            *(Column(method, 3) for method in _METHODS),
            Column("servers moved"),
            Column("reports"),
        ),
        tuple(
            (seed, *(item.last(method, windows) for method in _METHODS), item.moved, item.reports)
            for seed, item in measured.items()
        ),
        notes=(
            "Statistics windows of 50 s, threshold 0.2, rounds of 200 s. Where a server of the "
            "tree cannot keep up any more, the loss grows for as long as the run lasts."
        ),
    )


STUDY = Study(
    name="paper-004-dynamic",
    about=(
        "Zhou, Ooi and Tan's experiment with one object in a dynamic environment: what "
        "adapting at run time, from measured figures only, makes of a tree whose top servers "
        "become ten times as slow."
    ),
    minutes=2.5,
    run=_run,
)
