"""Adaptation graphs far beyond the exact method: how long, and how close to the bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.placement.checked_cost import checked_cost
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

_GAP_PERCENT_MAX, _GAP_PERCENT_AIM = 3.0, 1.5
_SECONDS_MAX = 30.0
# `auto` searches no longer than this; a search that was cut short depends on the clock.
_SEARCH_SECONDS = 15.0


@dataclass(frozen=True)
class _Family:
    kind: str
    formats: int
    brokers: int


@dataclass(frozen=True)
class _Parameters:
    families: tuple[_Family, ...]
    seeds: tuple[int, ...]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(
        (_Family("dense", 30, 4), _Family("sparse", 32, 6), _Family("few-wants", 64, 16)), (2,)
    ),
    "large": _Parameters(
        tuple(_Family(kind, 64, 1024) for kind in ("dense", "sparse", "few-wants")),
        tuple(range(1, 11)),
    ),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    warm_up = generate_problem("dense", seed=1, formats=30, brokers=4)
    place(warm_up)
    speed: list[tuple[Value, ...]] = []
    quality: list[tuple[Value, ...]] = []
    claims: list[Claim] = []
    results: list[object] = []
    gaps: dict[str, float] = {}
    for family in parameters.families:
        seconds, percents, cut_short = [], [], 0
        for seed in parameters.seeds:
            progress(f"{family.kind}, seed {seed}")
            problem = generate_problem(
                family.kind, seed=seed, formats=family.formats, brokers=family.brokers
            )
            placement = place(problem, seed=seed)
            total_cost = checked_cost(problem, placement.plan)
            seconds.append(placement.seconds)
            percents.append(100.0 * placement.gap)
            if placement.seconds >= _SEARCH_SECONDS:
                cut_short += 1
            else:
                results.append((family.kind, seed, total_cost, placement.lower_bound))
        name = f"{family.kind}, {family.formats} formats x {family.brokers:,} brokers"
        speed.append((name, len(seconds), mean(seconds), max(seconds), cut_short))
        met = "yes" if mean(percents) <= _GAP_PERCENT_AIM else "no"
        quality.append((name, len(percents), mean(percents), max(percents), met))
        gaps[family.kind] = mean(percents)
        claims += [
            Claim(f"{family.kind}, mean gap", mean(percents), "<=", _GAP_PERCENT_MAX, "%"),
            Claim(f"{family.kind}, slowest plan", max(seconds), "<=", _SECONDS_MAX, "s"),
        ]
    return Findings(
        tables=(
            Table(
                "Seconds of `auto`",
                "speed",
                (
                    Column("problem"),
                    Column("seeds"),
                    Column("mean s", 2),
                    Column("slowest s", 2),
                    Column("cut short"),
                ),
                tuple(speed),
                notes=(
                    f"`auto` stops searching after {_SEARCH_SECONDS:g} s. A plan that was cut "
                    "short may differ from run to run and is left out of the hash."
                ),
            ),
            Table(
                "Gap of `auto` between its plan and its lower bound",
                "quality",
                (
                    Column("problem"),
                    Column("seeds"),
                    Column("mean gap %", 2),
                    Column("largest gap %", 2),
                    Column(f"aim of {_GAP_PERCENT_AIM} % met"),
                ),
                tuple(quality),
            ),
        ),
        claims=tuple(claims),
        result_hash=result_hash(results),
        gaps=gaps,
    )


STUDY = Study(
    name="large-graphs",
    about=(
        "Random adaptation graphs with more formats than any exact method can take, planned by "
        "`auto`. The gap is what is not proven necessary; the true distance to the optimum is "
        "smaller."
    ),
    minutes=6.0,
    run=_run,
)
