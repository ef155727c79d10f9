"""What planning saves as transmission gets dearer beside conversion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.excess import saving_percent
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
from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.placement.exact import exact_plan
from distributary.placement.generate import generate_problem

__all__ = ["STUDY"]

# alpha / beta, at beta = 1.
_WEIGHTS = (0.1, 1.0, 10.0)
_STARTS = {
    "all-in-root": all_in_root,
    "all-in-leaves": all_in_leaves,
    "single-format": single_format,
}
_KINDS = ("map", "video")


@dataclass(frozen=True)
class _Parameters:
    brokers: int
    ratios: tuple[float, ...]
    middle: float
    seeds: tuple[int, ...]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(32, (0.5,), 0.5, (1,)),
    "large": _Parameters(1024, (0.1, 0.5, 0.9), 0.5, (1, 2, 3, 4, 5)),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    savings: list[tuple[Value, ...]] = []
    starts: list[tuple[Value, ...]] = []
    results: list[object] = []
    lowest = float("inf")
    for kind in _KINDS:
        for alpha in _WEIGHTS:
            for ratio in parameters.ratios:
                progress(f"{kind}, alpha/beta {alpha:g}, matching {ratio:.0%}")
                costs = _costs(kind, alpha, ratio, parameters)
                results.append((kind, alpha, ratio, list(costs.values())))
                starts.append((kind, alpha, f"{ratio:.0%}", *_starts_row(costs)))
                if ratio == parameters.middle:
                    by_baseline = [
                        [
                            saving_percent(*pair)
                            for pair in zip(costs["exact"], baseline, strict=True)
                        ]
                        for baseline in (costs["all-in-root"], costs["all-in-leaves"])
                    ]
                    lowest = min(lowest, *(min(values) for values in by_baseline))
                    savings.append(
                        (kind, alpha, len(parameters.seeds), *(mean(part) for part in by_baseline))
                    )
    return Findings(
        tables=(
            Table(
                f"Mean saving of the optimum, {parameters.brokers:,} brokers, matching "
                f"{parameters.middle:.0%} (CCD's figure 7)",
                "quality",
                (
                    Column("problem"),
                    Column("alpha/beta", 1),
                    Column("seeds"),
                    Column("against all-in-root %", 1),
                    Column("against all-in-leaves %", 1),
                ),
                tuple(savings),
                notes=(
                    "CCD finds large savings against all-in-leaves when conversion is dear (0.1) "
                    "and large ones against all-in-root when transmission is (10)."
                ),
            ),
            Table(
                "Starting plans, in mean percent of the cheapest of the three (CCD's figure 10)",
                "quality",
                (
                    Column("problem"),
                    Column("alpha/beta", 1),
                    Column("matching"),
                    *(Column(f"{name} %", 1) for name in _STARTS),
                    Column("cheapest"),
                ),
                tuple(starts),
                notes=(
                    "CCD finds all-in-root the best start at 0.1 and the worst at 10, where "
                    "single-format is the best."
                ),
            ),
        ),
        claims=(Claim("smallest saving of the optimum", lowest, ">=", 0.0, "%"),),
        result_hash=result_hash(results),
    )


def _costs(
    kind: str, alpha: float, ratio: float, parameters: _Parameters
) -> dict[str, list[float]]:
    """Return what the starting plans and, where it is compared, the optimum cost, by seed."""
    costs: dict[str, list[float]] = {}
    for seed in parameters.seeds:
        problem = generate_problem(
            kind, seed=seed, brokers=parameters.brokers, matching=ratio, alpha=alpha
        )
        for name, method in _STARTS.items():
            costs.setdefault(name, []).append(checked_cost(problem, method(problem)))
        if ratio == parameters.middle:
            costs.setdefault("exact", []).append(checked_cost(problem, exact_plan(problem)))
    return costs


def _starts_row(costs: dict[str, list[float]]) -> list[Value]:
    """Return each start's mean cost beside the cheapest one's, and which that is most often."""
    by_seed = [
        dict(zip(_STARTS, row, strict=True))
        for row in zip(*(costs[name] for name in _STARTS), strict=True)
    ]
    relative = [
        mean([100.0 * row[name] / min(row.values()) for row in by_seed]) for name in _STARTS
    ]
    winners = [min(row, key=lambda name: row[name]) for row in by_seed]
    counts = {name: winners.count(name) for name in _STARTS if name in winners}
    best = max(counts, key=lambda name: counts[name])
    return [*relative, f"{best} ({counts[best]} of {len(winners)})"]


STUDY = Study(
    name="weights",
    about=(
        "What the optimum saves against two plans that need no planner, and which simple plan is "
        "the best start, as transmission gets dearer beside conversion."
    ),
    minutes=1.0,
    run=_run,
)
