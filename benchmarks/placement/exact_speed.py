"""How fast the exact method is, as the command that a user would run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.excess import excess_percent
from benchmarks.process import DISTRIBUTARY, peak_memory_bytes
from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    Value,
    mean,
    result_hash,
)
from distributary.content.documents import document_text
from distributary.placement.generate import generate_problem
from distributary.placement.problem import PlacementProblem
from distributary.placement.problem_file import problem_document

__all__ = ["STUDY"]

_HETEROGENEITIES = ("none", "weak", "strong")
_VIDEO_SECONDS_MAX, _VIDEO_GIB_MAX = 1.0, 1.0
_DENSE_SECONDS_MAX, _DENSE_GIB_MAX = 20.0, 4.0
_ITERATIONS = 1000


@dataclass(frozen=True)
class _Parameters:
    heterogeneities: tuple[str, ...]
    seeds: tuple[int, ...]
    brokers: int
    dense_formats: int
    dense_brokers: int
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(("strong",), (1,), 32, 8, 16, repeats=1),
    "large": _Parameters(_HETEROGENEITIES, (1, 2, 3), 1024, 20, 256, repeats=3),
}


@dataclass(frozen=True)
class _Run:
    """One run of the command."""

    seconds: float
    memory_gib: float
    total_cost: float


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    exact: dict[str, list[_Run]] = {}
    iterative: dict[str, list[_Run]] = {}
    for heterogeneity in parameters.heterogeneities:
        for seed in parameters.seeds:
            progress(f"video, heterogeneity {heterogeneity}, seed {seed}")
            problem = generate_problem(
                "video",
                seed=seed,
                brokers=parameters.brokers,
                matching=1.0,
                heterogeneity=heterogeneity,
            )
            best = _best(problem, "exact", parameters.repeats, _VIDEO_SECONDS_MAX)
            exact.setdefault(heterogeneity, []).append(best)
            best = _best(problem, "iterative", parameters.repeats)
            iterative.setdefault(heterogeneity, []).append(best)
    dense = []
    for seed in parameters.seeds:
        progress(f"dense, {parameters.dense_formats} formats, seed {seed}")
        problem = generate_problem(
            "dense", seed=seed, formats=parameters.dense_formats, brokers=parameters.dense_brokers
        )
        dense.append(_best(problem, "exact", parameters.repeats, _DENSE_SECONDS_MAX))
    excess = {
        heterogeneity: [
            excess_percent(found.total_cost, optimum.total_cost)
            for found, optimum in zip(iterative[heterogeneity], optima, strict=True)
        ]
        for heterogeneity, optima in exact.items()
    }
    videos = [run for runs in exact.values() for run in runs]
    return Findings(
        tables=(
            _speed_table(parameters, exact, iterative, dense),
            Table(
                f"Excess cost of `iterative` ({_ITERATIONS:,} iterations, slack, charikar) over "
                "the optimum",
                "quality",
                (Column("problem"), Column("seeds"), Column("mean %", 2), Column("largest %", 2)),
                tuple(
                    (_video_name(parameters, name), len(values), mean(values), max(values))
                    for name, values in excess.items()
                ),
            ),
        ),
        claims=(
            Claim("video, slowest exact plan", _slowest(videos), "<=", _VIDEO_SECONDS_MAX, "s"),
            Claim("video, largest peak memory", _largest(videos), "<=", _VIDEO_GIB_MAX, "GiB"),
            Claim("dense, slowest exact plan", _slowest(dense), "<", _DENSE_SECONDS_MAX, "s"),
            Claim("dense, largest peak memory", _largest(dense), "<", _DENSE_GIB_MAX, "GiB"),
        ),
        result_hash=result_hash(
            [[run.total_cost for run in runs] for runs in (videos, dense, *iterative.values())]
        ),
    )


def _best(
    problem: PlacementProblem, method: str, repeats: int, seconds_max: float | None = None
) -> _Run:
    """Return the fastest of several runs of the command on a problem."""
    with TemporaryDirectory() as folder:
        problem_path, plan_path = Path(folder, "problem.json"), Path(folder, "plan.json")
        problem_path.write_text(document_text(problem_document(problem)), encoding="utf-8")

        def run() -> _Run:
            options = ["--method", method, "--iterations", str(_ITERATIONS), "-o", str(plan_path)]
            memory = peak_memory_bytes([*DISTRIBUTARY, "place", str(problem_path), *options])
            plan = json.loads(plan_path.read_text(encoding="utf-8"))
            return _Run(float(plan["seconds"]), memory / 2**30, float(plan["total_cost"]))

        runs = [run() for _ in range(repeats)]
        if seconds_max is not None and min(run.seconds for run in runs) > seconds_max:
            # A single run may have had to compile, which is not what is measured here.
            runs.append(run())
    assert len({run.total_cost for run in runs}) == 1
    return min(runs, key=lambda run: run.seconds)


def _speed_table(
    parameters: _Parameters,
    exact: dict[str, list[_Run]],
    iterative: dict[str, list[_Run]],
    dense: list[_Run],
) -> Table:
    rows: list[tuple[Value, ...]] = [
        (_video_name(parameters, name), method, len(runs), *_speed(runs))
        for name in parameters.heterogeneities
        for method, runs in (("exact", exact[name]), ("iterative", iterative[name]))
    ]
    dense_name = f"dense, {parameters.dense_formats} formats x {parameters.dense_brokers:,} brokers"
    rows.append((dense_name, "exact", len(dense), *_speed(dense)))
    columns = ("problem", "method", "seeds")
    return Table(
        "Seconds and memory of the command",
        "speed",
        (
            *(Column(name) for name in columns),
            Column("mean s", 3),
            Column("slowest s", 3),
            Column("peak MiB"),
        ),
        tuple(rows),
        notes=(
            "Every run is a fresh process of `distributary place FILE --method M -o PLAN` with "
            "compiled code in its cache. Seconds are those that the plan states, best of "
            f"{parameters.repeats}; memory is the peak resident size of that process."
        ),
    )


def _video_name(parameters: _Parameters, heterogeneity: str) -> str:
    return f"video, 16 formats x {parameters.brokers:,} brokers, heterogeneity {heterogeneity}"


def _speed(runs: list[_Run]) -> tuple[float, float, float]:
    return mean([run.seconds for run in runs]), _slowest(runs), 1024.0 * _largest(runs)


def _slowest(runs: list[_Run]) -> float:
    return max(run.seconds for run in runs)


def _largest(runs: list[_Run]) -> float:
    return max(run.memory_gib for run in runs)


STUDY = Study(
    name="exact-speed",
    about=(
        "The exact method on the papers' video scenario, with every broker in the tree, beside "
        "the papers' own method; and on a random graph with as many formats as it takes in its "
        "stride."
    ),
    minutes=4.0,
    run=_run,
)
