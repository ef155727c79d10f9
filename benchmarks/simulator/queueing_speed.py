"""How many messages the queueing model carries in a second, on one core."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    Value,
    result_hash,
)
from distributary.fidelity import build_trees, loss
from distributary.fidelity.generate import generate_problem
from distributary.simulator.queueing import QueueingRun, simulate

__all__ = ["STUDY"]

_SEED = 1
_MILLIONS_MIN = 2.0


@dataclass(frozen=True)
class _Stream:
    """How many objects, how likely a server wants one, in which trees, and how loaded."""

    objects: int
    interest: float
    approach: str
    load: float = 1.0

    def __str__(self) -> str:
        objects = "1 object" if self.objects == 1 else f"{self.objects} objects"
        return f"{objects}, {self.approach}, load {self.load:g}"


@dataclass(frozen=True)
class _Parameters:
    servers: int
    streams: tuple[_Stream, ...]
    seconds: float
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(
        24, (_Stream(1, 1.0, "one-tree"), _Stream(5, 0.6, "tree-each")), 2_000.0, repeats=2
    ),
    "large": _Parameters(
        256,
        (
            _Stream(1, 1.0, "one-tree"),
            _Stream(1, 1.0, "one-tree", load=5.0),
            _Stream(100, 0.6, "one-tree"),
            _Stream(100, 0.6, "tree-each"),
            _Stream(100, 0.6, "tree-each", load=8.0),
        ),
        20_000.0,
        repeats=5,
    ),
}


@dataclass(frozen=True)
class _Measured:
    """A run, the loss that was predicted for it, and its seconds: of the core, and in all."""

    run: QueueingRun
    predicted: float
    core_seconds: float
    seconds: float

    @property
    def million_per_second(self) -> float:
        return 1e-6 * self.run.received / self.core_seconds


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    measured = {}
    for stream in parameters.streams:
        progress(str(stream))
        measured[stream] = _measure(stream, parameters)
    common = (Column("objects"), Column("trees"), Column("load", 0))
    speed: list[tuple[Value, ...]] = []
    quality: list[tuple[Value, ...]] = []
    for stream, item in measured.items():
        which = (stream.objects, stream.approach, stream.load)
        run = item.run
        speed.append(
            (
                *which,
                1e-6 * run.received,
                item.seconds,
                item.core_seconds,
                item.million_per_second,
            )
        )
        quality.append(
            (
                *which,
                float(run.loads.max()),
                item.predicted,
                run.average_loss,
                run.average_loss / item.predicted,
                run.average_outside,
            )
        )
    title = f"{parameters.servers} servers, {parameters.seconds:,.0f} seconds of a stream"
    return Findings(
        tables=(
            Table(
                f"The queueing model on one core, {title}",
                "speed",
                (
                    *common,
                    Column("million messages", 2),
                    Column("s", 2),
                    Column("core s", 2),
                    Column("million messages per core second", 2),
                ),
                tuple(speed),
                notes=(
                    "Messages received by servers, those that they only pass on included, and "
                    "the seconds of a whole run: drawing the updates, carrying them and "
                    "measuring. It runs on one core and waits for nothing; core seconds leave "
                    f"out what others did meanwhile. Best of {parameters.repeats}."
                ),
            ),
            Table(
                f"What is measured beside what is predicted, {title}",
                "quality",
                (
                    *common,
                    Column("largest load", 3),
                    Column("predicted loss", 5),
                    Column("measured loss", 5),
                    Column("measured / predicted", 3),
                    Column("share of time outside", 5),
                ),
                tuple(quality),
                notes=(
                    "Greedy trees. The prediction takes all services for exponential, those of "
                    "many children together vary less. Two updates that are late at the same "
                    "time count twice in rate times delay, and once in the time outside."
                ),
            ),
        ),
        claims=tuple(
            Claim(str(stream), item.million_per_second, ">=", _MILLIONS_MIN, "million/s")
            for stream, item in measured.items()
        ),
        result_hash=result_hash(
            [
                [item.run.received, item.run.average_loss, item.run.average_outside]
                for item in measured.values()
            ]
        ),
    )


def _measure(stream: _Stream, parameters: _Parameters) -> _Measured:
    problem = generate_problem(
        seed=_SEED,
        servers=parameters.servers,
        objects=stream.objects,
        interest=stream.interest,
        load=stream.load,
    )
    forest = build_trees(problem, method="greedy", approach=stream.approach).forest
    simulate(problem, forest, seconds=10.0)
    core_best = best = float("inf")
    for _ in range(parameters.repeats):
        began, core_began = time.perf_counter(), time.process_time()
        run = simulate(problem, forest, seconds=parameters.seconds, seed=_SEED)
        core_best = min(core_best, time.process_time() - core_began)
        best = min(best, time.perf_counter() - began)
    return _Measured(run, loss(problem, forest).average, core_best, best)


STUDY = Study(
    name="queueing-speed",
    about=(
        "How fast the queueing model of Zhou, Ooi and Tan's experiments runs: servers that "
        "handle messages first come, first served, with exponential times to filter and send."
    ),
    minutes=0.8,
    run=_run,
)
