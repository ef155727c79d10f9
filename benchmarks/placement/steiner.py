"""One broker, many formats: the directed Steiner tree problem, against known optima."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.excess import excess_percent
from benchmarks.placement.checked_cost import checked_cost
from benchmarks.placement.steiner_optimum import steiner_optimum
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
from distributary.placement import place
from distributary.placement.generate import generate_problem

__all__ = ["STUDY"]

_DISTANCE_PERCENT_MAX = 1.0
_SECONDS_MAX = 30.0
_OPTIMUM_SECONDS_MAX = 60.0
_SEARCH_SECONDS = 15.0


@dataclass(frozen=True)
class _Parameters:
    shapes: tuple[tuple[int, int], ...]
    seeds: tuple[int, ...]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(((50, 10), (100, 25)), (1, 2)),
    "large": _Parameters(
        (
            (50, 10),
            (100, 25),
            (200, 50),
            (200, 100),
            (500, 10),
            (500, 50),
            (500, 125),
            (500, 250),
        ),
        (1, 2, 3, 4, 5),
    ),
}


@dataclass(frozen=True)
class _Instance:
    """One problem: what `auto` made of it, and what is known of its optimum."""

    total_cost: float
    lower_bound: float
    gap_percent: float
    proven: bool
    seconds: float
    optimum: float | None
    optimum_seconds: float

    @property
    def distance_percent(self) -> float | None:
        """How far the plan is from the optimum, if that is known."""
        return None if self.optimum is None else excess_percent(self.total_cost, self.optimum)


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    place(generate_problem("steiner", seed=1, formats=60, wants=30))
    found: dict[tuple[int, int], list[_Instance]] = {}
    results: list[object] = []
    for formats, wants in parameters.shapes:
        for seed in parameters.seeds:
            progress(f"{wants} of {formats} formats, seed {seed}")
            instance = _solve(formats, wants, seed)
            found.setdefault((formats, wants), []).append(instance)
            results.append((formats, wants, seed, instance.optimum))
            if instance.seconds < _SEARCH_SECONDS:
                results.append((instance.total_cost, instance.lower_bound))
    everything = [instance for instances in found.values() for instance in instances]
    known = [instance for instance in everything if instance.optimum is not None]
    distances = [instance.distance_percent or 0.0 for instance in known]
    gap_mean = mean([instance.gap_percent for instance in everything])
    return Findings(
        tables=(
            Table(
                "Seconds of `auto`, and of the independent program that finds the optimum",
                "speed",
                (
                    Column("problem"),
                    Column("seeds"),
                    Column("mean s", 3),
                    Column("slowest s", 3),
                    Column("optimum, mean s", 2),
                ),
                tuple(_speed_row(*shape, instances) for shape, instances in found.items()),
            ),
            Table(
                "Distance of `auto` from the optimum, and the gap it certifies",
                "quality",
                (
                    Column("problem"),
                    Column("seeds"),
                    Column("proven optimal"),
                    Column("optimum known"),
                    Column("mean distance %", 3),
                    Column("largest distance %", 3),
                    Column("mean gap %", 3),
                    Column("largest gap %", 3),
                ),
                tuple(_quality_row(*shape, instances) for shape, instances in found.items()),
                notes=(
                    f"The optimum of {len(known)} of {len(everything)} problems is known, from a "
                    "mixed-integer program with cuts that shares no code with the planner and may "
                    f"take {_OPTIMUM_SECONDS_MAX:g} s for each. The mean certified gap over all "
                    f"problems is {gap_mean:.3f} %; costs are whole numbers, so `auto` may round "
                    "its bound up."
                ),
            ),
        ),
        claims=(
            Claim(
                "mean distance to the optimum", mean(distances), "<=", _DISTANCE_PERCENT_MAX, "%"
            ),
            Claim(
                "slowest plan",
                max(instance.seconds for instance in everything),
                "<=",
                _SECONDS_MAX,
                "s",
            ),
            Claim(
                "lower bounds above the optimum",
                sum(instance.lower_bound > (instance.optimum or 0.0) + 1e-6 for instance in known),
                "==",
                0,
            ),
            Claim(
                "plans called optimal that are not",
                sum(
                    instance.proven and (instance.distance_percent or 0.0) > 0 for instance in known
                ),
                "==",
                0,
            ),
        ),
        result_hash=result_hash(results),
        gaps={"steiner": gap_mean},
    )


def _solve(formats: int, wants: int, seed: int) -> _Instance:
    """Plan one problem, and find its optimum independently."""
    problem = generate_problem("steiner", seed=seed, formats=formats, wants=wants)
    placement = place(problem, seed=seed)
    total_cost = checked_cost(problem, placement.plan)
    start = time.perf_counter()
    optimum = steiner_optimum(problem, plan_cost=total_cost, seconds_max=_OPTIMUM_SECONDS_MAX)
    return _Instance(
        total_cost=total_cost,
        lower_bound=placement.lower_bound,
        gap_percent=100.0 * placement.gap,
        proven=placement.optimal,
        seconds=placement.seconds,
        optimum=optimum,
        optimum_seconds=time.perf_counter() - start,
    )


def _name(formats: int, wants: int) -> str:
    return f"{wants} wanted of {formats} formats"


def _speed_row(formats: int, wants: int, instances: list[_Instance]) -> tuple[Value, ...]:
    seconds = [instance.seconds for instance in instances]
    return (
        _name(formats, wants),
        len(instances),
        mean(seconds),
        max(seconds),
        mean([instance.optimum_seconds for instance in instances]),
    )


def _quality_row(formats: int, wants: int, instances: list[_Instance]) -> tuple[Value, ...]:
    distances = [
        instance.distance_percent for instance in instances if instance.distance_percent is not None
    ]
    gaps = [instance.gap_percent for instance in instances]
    return (
        _name(formats, wants),
        len(instances),
        sum(instance.proven for instance in instances),
        len(distances),
        mean(distances) if distances else None,
        max(distances) if distances else None,
        mean(gaps),
        max(gaps),
    )


STUDY = Study(
    name="steiner",
    about=(
        "With one broker, placement is the directed Steiner tree problem in the adaptation "
        "graph. Random sparse graphs with whole-number costs, planned by `auto`."
    ),
    minutes=5.0,
    run=_run,
)
