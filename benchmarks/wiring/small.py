"""How far `search` is from the best wiring, where that is known."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.excess import excess_percent
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
from benchmarks.wiring.checked_cost import PAPER_METHODS, checked_cost, compare
from distributary.wiring.bounds import lower_bound
from distributary.wiring.cost import cost
from distributary.wiring.generate import generate_problem
from distributary.wiring.planner import wire
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import CORES, loads

__all__ = ["STUDY"]

_EXCESS_PERCENT_MAX = 2.0
_ROUNDING = 1e-9
_METHODS = (*PAPER_METHODS, "search")


@dataclass(frozen=True)
class _Shape:
    """A kind of problem; interests are in channels, None for a third of them."""

    users: int
    brokers: int
    channels: int
    interests: tuple[int, int] | None
    core_ratio: float


# Few enough to look at every wiring, and as many as the exact method solves in seconds.
_TINY = (_Shape(6, 3, 3, (1, 2), 1.0), _Shape(5, 4, 2, None, 3.0))
_SHAPES = (
    _Shape(12, 5, 4, (1, 2), 1.0),
    _Shape(20, 5, 6, (1, 3), 1.0),
    _Shape(20, 4, 6, None, 1.0),
    _Shape(16, 6, 8, (1, 2), 2.0),
    _Shape(18, 4, 6, (1, 3), 5.0),
)

_INSTANCES: Mapping[Size, int] = {"small": 2, "large": 40}


@dataclass(frozen=True)
class _Compared:
    """One problem: the optimum, how far each method and the bound are from it in percent."""

    shape: _Shape
    optimum: float
    excess: Mapping[str, float]
    gap: float


def _run(size: Size, progress: Progress) -> Findings:
    instances = _INSTANCES[size]
    different = 0
    for instance in range(instances // 2):
        progress(f"all wirings, {instance + 1} of {instances // 2}")
        problem = _problem(_TINY[instance % len(_TINY)], seed=instance + 1)
        for core in CORES:
            exact = checked_cost(problem, wire(problem, method="exact", core=core))
            different += abs(exact - _least_cost(problem, core)) > _ROUNDING * exact
    compared = []
    for instance in range(instances):
        progress(f"exact, {instance + 1} of {instances}")
        compared.append(_compare(_SHAPES[instance % len(_SHAPES)], seed=instance + 1))
    return Findings(
        tables=(
            Table(
                f"Excess over the optimum in %: {instances} problems",
                "quality",
                (
                    *(Column(name) for name in ("users", "brokers", "channels", "interests")),
                    Column("core price", 1),
                    Column("problems"),
                    Column("search, mean %", 3),
                    Column("search, largest %", 3),
                    *(Column(f"{method}, mean %", 1) for method in PAPER_METHODS),
                    Column("lower bound below it, mean %", 1),
                ),
                tuple(_row(shape, compared) for shape in _SHAPES[:instances]),
                notes=(
                    "The core price is the mean price between two brokers beside that between "
                    "user and broker. The last column is how far the lower bound for large "
                    "problems is below the optimum."
                ),
            ),
        ),
        claims=(
            Claim(
                "problems where exact is not the cheapest of all wirings", float(different), "==", 0
            ),
            Claim(
                "largest excess of search over the optimum",
                max(item.excess["search"] for item in compared),
                "<=",
                _EXCESS_PERCENT_MAX,
                "%",
            ),
            Claim(
                "smallest gap of the lower bound",
                min(item.gap for item in compared),
                ">=",
                0.0,
                "%",
            ),
        ),
        result_hash=result_hash(
            [[item.optimum, item.gap, *item.excess.values()] for item in compared]
        ),
        gaps={"wirings of 12 to 20 users": mean([item.excess["search"] for item in compared])},
    )


def _problem(shape: _Shape, *, seed: int) -> WiringProblem:
    return generate_problem(
        seed=seed,
        users=shape.users,
        brokers=shape.brokers,
        channels=shape.channels,
        interests=shape.interests,
        core_ratio=shape.core_ratio,
    )


def _least_cost(problem: WiringProblem, core: str) -> float:
    """Return the cost of the cheapest of all wirings, one after the other."""
    least = float("inf")
    for chosen in itertools.product(range(problem.broker_count), repeat=problem.user_count):
        broker_of = np.array(chosen, dtype=np.int64)
        if np.all(loads(problem, broker_of) <= problem.capacities * (1.0 + _ROUNDING)):
            least = min(least, cost(problem, broker_of, core=core).total)
    return least


def _compare(shape: _Shape, *, seed: int) -> _Compared:
    problem = _problem(shape, seed=seed)
    optimum = checked_cost(problem, wire(problem, method="exact"))
    found = compare(problem, _METHODS, seed=seed)
    excess = {method: excess_percent(total, optimum) for method, total in found.costs.items()}
    return _Compared(shape, optimum, excess, 100.0 * (1.0 - lower_bound(problem) / optimum))


def _row(shape: _Shape, compared: list[_Compared]) -> tuple[Value, ...]:
    items = [item for item in compared if item.shape == shape]
    wide = "a third" if shape.interests is None else "{} to {}".format(*shape.interests)
    search = [item.excess["search"] for item in items]
    return (
        shape.users,
        shape.brokers,
        shape.channels,
        wide,
        shape.core_ratio,
        len(items),
        mean(search),
        max(search),
        *(mean([item.excess[method] for item in items]) for method in PAPER_METHODS),
        mean([item.gap for item in items]),
    )


STUDY = Study(
    name="wiring-small",
    about=(
        "The wiring that `search` finds for a handful of users beside the best of all wirings; "
        "and `exact` beside looking at every wiring, for the three modes of the core."
    ),
    minutes=2.0,
    run=_run,
)
