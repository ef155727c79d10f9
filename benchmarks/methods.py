"""Every method of every planner on the same problems: what it costs and how long it takes.

The methods are those of the tables in `distributary.methods`, so that one that a package adds is
measured beside ours. What counts is computed here from the plans alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.excess import excess_percent
from benchmarks.fidelity.checked_loss import checked_loss
from benchmarks.placement.checked_cost import checked_cost as cost_of_plan
from benchmarks.study import (
    Claim,
    Column,
    Findings,
    Progress,
    Size,
    Study,
    Table,
    mean,
    result_hash,
)
from benchmarks.wiring.checked_cost import checked_cost as cost_of_wiring
from distributary import fidelity, placement, wiring
from distributary.errors import TooLarge
from distributary.fidelity.generate import generate_problem as generate_stream
from distributary.methods import FIDELITY, PLACEMENT, WIRING, MethodTable
from distributary.placement.generate import generate_problem as generate_map
from distributary.wiring.generate import generate_problem as generate_users

__all__ = ["STUDY"]


@dataclass(frozen=True)
class _Planner:
    """How to make a problem from a size and a seed, solve it, and weigh the result."""

    methods: MethodTable
    problem: Callable[[int, int], Any]
    solve: Callable[..., Any]
    weigh: Callable[[Any, Any], float]


_PLANNERS: Mapping[str, _Planner] = {
    "placement": _Planner(
        PLACEMENT,
        lambda size, seed: generate_map("map", seed=seed, brokers=size),
        placement.place,
        lambda problem, found: cost_of_plan(problem, found.plan),
    ),
    "fidelity": _Planner(
        FIDELITY,
        lambda size, seed: generate_stream(seed=seed, servers=size, objects=3, routers=60),
        fidelity.build_trees,
        checked_loss,
    ),
    "wiring": _Planner(
        WIRING,
        lambda size, seed: generate_users(seed=seed, users=4 * size, brokers=size, channels=8),
        wiring.wire,
        cost_of_wiring,
    ),
}
_SIZES: Mapping[Size, tuple[int, int]] = {"small": (4, 1), "large": (8, 10)}
"""Brokers or servers, and seeds; small enough for the methods that prove their result."""
# Sums in another order differ by less than this share.
_ROUNDING_PERCENT = 1e-6


def _run(size: Size, progress: Progress) -> Findings:
    nodes, seeds = _SIZES[size]
    rows: list[tuple[str, str, float, float, float]] = []
    skipped: list[str] = []
    for name, planner in _PLANNERS.items():
        values: dict[str, list[float]] = {}
        seconds: dict[str, list[float]] = {}
        for method in planner.methods:
            progress(f"{name} by {method}")
            try:
                planner.solve(planner.problem(3, 0), method=method)  # compiles, once
                for seed in range(seeds):
                    problem = planner.problem(nodes, seed)
                    found = planner.solve(problem, method=method, seed=seed)
                    values.setdefault(method, []).append(planner.weigh(problem, found))
                    seconds.setdefault(method, []).append(found.seconds)
            except TooLarge:
                skipped.append(f"{name}: {method}")
                values.pop(method, None)
        best = [min(column) for column in zip(*values.values(), strict=True)]
        for method, column in values.items():
            excess = [excess_percent(*pair) for pair in zip(column, best, strict=True)]
            rows.append((name, method, mean(excess), max(excess), mean(seconds[method])))
    of_auto = max(row[3] for row in rows if row[1] == "auto")
    what = f"{nodes} brokers or servers, {seeds} seeds"
    return Findings(
        tables=(
            Table(
                f"What every method costs above the best of them: {what}",
                "quality",
                (Column("planner"), Column("method"), Column("mean %", 2), Column("most %", 2)),
                tuple(row[:4] for row in rows),
                notes=f"Too large for {', '.join(skipped)}." if skipped else "",
            ),
            Table(
                f"Seconds of every method: {what}",
                "speed",
                (Column("planner"), Column("method"), Column("mean s", 4)),
                tuple((*row[:2], row[4]) for row in rows),
            ),
        ),
        claims=(
            Claim("excess of auto over the best method", of_auto, "<=", _ROUNDING_PERCENT, "%"),
        ),
        result_hash=result_hash([row[:4] for row in rows]),
    )


STUDY = Study(
    name="methods",
    about=(
        "Every method of every planner on problems that are small enough to be solved to "
        "optimality; methods that installed packages add are measured beside ours."
    ),
    minutes=2.0,
    run=_run,
)
