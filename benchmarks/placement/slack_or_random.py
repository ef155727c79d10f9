"""Which broker to refine next: the one with the most slack, or any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

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
from distributary.placement.generate import generate_problem
from distributary.placement.iterative import iterative

__all__ = ["STUDY"]

_LEVELS = (0.5, 0.9, 0.99)
_SELECTIONS = ("slack", "random")
# Enough for either to come to its end: a draw may be wasted on a broker that needs nothing.
_ITERATIONS_MAX = 50_000
_CHART_ITERATIONS, _CHART_STEP = 500, 10


@dataclass(frozen=True)
class _Parameters:
    brokers: int
    ratios: tuple[float, ...]
    seeds: tuple[int, ...]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(64, (0.5,), (1, 2)),
    "large": _Parameters(1024, (0.1, 0.5, 0.7), (1, 2, 3, 4, 5)),
}


@dataclass(frozen=True)
class _Race:
    """One problem refined both ways.

    Attributes
    ----------
    needed
        Iterations that each selection needs for each level; all it made if it never gets
        there, which is fewer than it would need.
    reached
        Whether each gets there.
    reductions
        Percent of the starting plan's cost saved after each iteration of the chart.
    """

    needed: Mapping[str, tuple[int, ...]]
    reached: Mapping[str, tuple[bool, ...]]
    reductions: Mapping[str, FloatArray]
    final_costs: tuple[float, ...]


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    rows: list[tuple[Value, ...]] = []
    claims: list[Claim] = []
    lines: list[Line] = []
    results: list[object] = []
    for colour, ratio in enumerate(parameters.ratios):
        races = []
        for seed in parameters.seeds:
            progress(f"matching {ratio:.0%}, seed {seed}")
            races.append(_race(parameters.brokers, ratio, seed))
        results += [
            [race.final_costs, *(race.needed[name] for name in _SELECTIONS)] for race in races
        ]
        for place, level in enumerate(_LEVELS):
            slack, random = (
                mean([race.needed[name][place] for race in races]) for name in _SELECTIONS
            )
            reached = sum(race.reached["random"][place] for race in races)
            rows.append((f"{ratio:.0%}", f"{level:.0%}", len(races), slack, random, reached))
            claims.append(
                Claim(
                    f"matching {ratio:.0%}, {level:.0%} of the reduction: slack against random",
                    slack / random,
                    "<",
                    1.0,
                    "times",
                )
            )
        lines += [
            Line(
                f"{name}, {ratio:.0%}",
                _points(np.mean([race.reductions[name] for race in races], axis=0)),
                colour,
                dashed=name == "random",
            )
            for name in _SELECTIONS
        ]
    return Findings(
        tables=(
            Table(
                "Mean iterations to a share of the cost reduction that slack reaches in the end",
                "quality",
                (
                    Column("matching"),
                    Column("share"),
                    Column("seeds"),
                    Column("slack", 1),
                    Column("random", 1),
                    Column("random gets there"),
                ),
                tuple(rows),
                notes=(
                    f"The video scenario with {parameters.brokers:,} brokers. Where random ends "
                    "before it gets there, all its iterations are counted, which flatters it."
                ),
                chart=Chart(
                    "slack-or-random",
                    f"Cost reduction by refinement, video, {parameters.brokers:,} brokers",
                    "iterations",
                    "% below the starting plan",
                    tuple(lines),
                ),
            ),
        ),
        claims=tuple(claims),
        result_hash=result_hash(results),
    )


def _race(brokers: int, ratio: float, seed: int) -> _Race:
    """Refine one problem both ways, to the end."""
    problem = generate_problem("video", seed=seed, brokers=brokers, matching=ratio)
    costs = {
        name: iterative(problem, iterations=_ITERATIONS_MAX, select=name, seed=seed).costs
        for name in _SELECTIONS
    }
    start, end = costs["slack"][0], costs["slack"][-1]
    targets = [start - level * (start - end) for level in _LEVELS]
    needed, reached = {}, {}
    for name, course in costs.items():
        # Costs never rise, so those above a target come before it is reached.
        above = [int((course > target).sum()) for target in targets]
        needed[name] = tuple(max(1, min(count, len(course) - 1)) for count in above)
        reached[name] = tuple(count < len(course) for count in above)
    return _Race(
        needed,
        reached,
        {name: _reduction_percent(course) for name, course in costs.items()},
        tuple(float(course[-1]) for course in costs.values()),
    )


def _reduction_percent(course: FloatArray) -> FloatArray:
    """Return the reduction at the iterations of the chart; a run that ended stays there."""
    at = np.minimum(np.arange(0, _CHART_ITERATIONS + 1, _CHART_STEP), len(course) - 1)
    reduction: FloatArray = 100.0 * (1.0 - course[at] / course[0])
    return reduction


def _points(reductions: FloatArray) -> tuple[tuple[float, float], ...]:
    return tuple(
        (float(place * _CHART_STEP), round(float(value), 4))
        for place, value in enumerate(reductions)
    )


STUDY = Study(
    name="slack-or-random",
    about=(
        "CCD chooses the next broker to refine by its slack or at random, and finds slack faster. "
        "Both refine the same starting plan here, until nothing is left to refine."
    ),
    minutes=0.5,
    run=_run,
)
