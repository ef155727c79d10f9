"""Real brokers that adapt their tree after a change, message by message."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.simulator.adaptation_runs import (
    DELAYS,
    LOAD,
    TOLERANCES,
    Measured,
    Parameters,
    measure,
)
from benchmarks.simulator.yardstick import ANNEALED
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

__all__ = ["PARAMETERS", "STUDY"]

_ADAPTIVE_MAX = 1.10
# How many windows a point of the series is of.
_GROUP = 10

PARAMETERS: Mapping[Size, Parameters] = {
    # More updates in shorter windows: as many in each, and a tree of more than one level.
    "small": Parameters(
        24,
        4,
        ((LOAD, 2), (DELAYS, 2), (TOLERANCES, 2)),
        ((LOAD, 2),),
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
        (*((LOAD, seed) for seed in (1, 2, 3, 4, 5)), (DELAYS, 1), (TOLERANCES, 1)),
        ((LOAD, 1),),
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


def _run(size: Size, progress: Progress) -> Findings:
    parameters = PARAMETERS[size]
    measured = {}
    for kind, seed in parameters.cases:
        progress(f"{kind}, seed {seed}")
        item = measured[kind, seed] = measure(parameters, kind, seed)
        progress(f"{item.last(parameters.last_windows):.3f} times SA, {item.unchanged:.2f} without")
    wandering = {}
    for kind, seed in parameters.wandering:
        progress(f"{kind}, seed {seed}, values that wander")
        wandering[kind, seed] = measure(parameters, kind, seed, wandering=True)
    return Findings(
        tables=(
            _case_table(parameters, measured),
            _wandering_table(parameters, measured, wandering),
            _series_table(parameters, measured),
        ),
        claims=_claims(parameters, measured),
        result_hash=result_hash(
            [
                [*item.losses, item.annealed, item.static_annealed, item.static, *item.moves]
                for item in (*measured.values(), *wandering.values())
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
            "is divided by that of the best tree that annealing finds for the new state in "
            f"{ANNEALED} runs, planted and left alone, with the same updates. A tree for the old "
            "state that is left alone is measured "
            f"over the last {parameters.static_s:,.0f} s. Windows of "
            f"{settings.window_s:g} s, rounds of {settings.round_s:g} s, tau {settings.tau:g}. "
            "The value has digits that flip, because planners assume that the rate at which a "
            "server needs updates does not depend on the tree. With ordinary values it does: "
            "see the next table."
        ),
    )


def _wandering_table(parameters: Parameters, measured: _Cases, wandering: _Cases) -> Table:
    return Table(
        f"The same with a value that wanders, {parameters.servers} servers, "
        f"last {parameters.last_s:,.0f} s",
        "quality",
        (
            Column("what changes"),
            Column("seed"),
            Column("value"),
            Column("versions sent, times expected", 2),
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
                name,
                item.excess,
                item.annealed,
                item.last(parameters.last_windows),
                item.unchanged,
                *item.moves,
            )
            for kind, seed in wandering
            for name, item in (
                ("digits flip", measured[kind, seed]),
                ("wanders", wandering[kind, seed]),
            )
        ),
        notes=(
            "A value that wanders is a random walk that is drawn back to its mean. Followers "
            "tolerate so much that as children of the source they would be sent as many versions "
            "as planners assume. Below another broker they are sent more, because that broker's "
            "own tolerance is taken off theirs; so brokers get more than annealing counts on. "
            "Nothing is claimed of these "
            "rows: they show what the assumption is worth."
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
        "Tan's experiment with one object, in the simulator of messages. The value has digits "
        "that flip, so that rates do not depend on the tree, as planners assume; one case is "
        "repeated with a value that wanders, with which they do."
    ),
    minutes=52.0,
    run=_run,
)
