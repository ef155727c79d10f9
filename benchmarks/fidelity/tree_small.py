"""How far `auto` is from the best tree, where every tree can be looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.excess import excess_percent
from benchmarks.fidelity.checked_loss import checked_loss
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
from distributary.fidelity import FidelityProblem, build_trees
from distributary.fidelity.generate import (
    FILTER_TIME_MEAN,
    SEND_TIME_MEAN,
    generate_problem,
)

__all__ = ["STUDY"]

_EXCESS_PERCENT_MAX = 0.5
_SERVERS = (2, 3, 4, 5, 6, 7)
# How busy an average server would be if it served all the others by itself. The source is
# some five times as fast, so that from about 5 on it can no longer serve everybody.
_BUSY = (0.1, 1.0, 2.0, 4.0, 6.0, 8.0)
_ROUTERS = 100
# The largest rate beside the smallest, as in the published experiments.
_RATE_SPREAD = 3.0

_INSTANCES: Mapping[Size, int] = {"small": 10, "large": 200}


@dataclass(frozen=True)
class _Compared:
    """One problem.

    Attributes
    ----------
    busy
        Which of the loads it has.
    optimum
        The least average loss; infinite when every tree overloads a node.
    largest_load
        Of the nodes in the best tree.
    excess
        Of every method over the optimum in percent; infinite where it overloads a node.
    """

    busy: float
    optimum: float
    largest_load: float
    excess: Mapping[str, float]


def _run(size: Size, progress: Progress) -> Findings:
    compared = []
    for instance in range(_INSTANCES[size]):
        if instance % 20 == 0:
            progress(f"{instance} of {_INSTANCES[size]} instances")
        servers = _SERVERS[instance % len(_SERVERS)]
        # One load further each time round, so that every number of servers meets every load.
        busy = _BUSY[(instance + instance // len(_SERVERS)) % len(_BUSY)]
        compared.append(_compare(servers, busy, seed=instance + 1))
    solvable = [item for item in compared if math.isfinite(item.optimum)]
    excess = _finite(solvable, "auto")
    by_load = {busy: [item for item in compared if item.busy == busy] for busy in _BUSY}
    return Findings(
        tables=(
            Table(
                f"Excess of the average loss over the optimum in %: {len(compared)} problems of "
                f"{_SERVERS[0]} to {_SERVERS[-1]} servers",
                "quality",
                (
                    Column("load of a server that serves all", 1),
                    Column("problems"),
                    Column("all trees overloaded"),
                    Column("largest load in the best tree", 2),
                    Column("auto, mean %", 3),
                    Column("auto, largest %", 3),
                    Column("its search alone, mean %", 3),
                    Column("its search alone, largest %", 3),
                    Column("greedy, mean %", 2),
                ),
                tuple(_row(busy, group) for busy, group in by_load.items()),
                notes=(
                    "`auto` looks at every tree itself when there are so few servers, so that its "
                    "excess can only be 0. Its search alone is made to run by an object that "
                    "nobody wants, with a tree each. `greedy` counts where it overloads nobody."
                ),
            ),
        ),
        claims=(
            Claim(
                "problems that auto overloads although a tree does not",
                float(len(solvable) - len(excess)),
                "==",
                0.0,
            ),
            Claim(
                "largest excess of auto over the optimum",
                max(excess),
                "<=",
                _EXCESS_PERCENT_MAX,
                "%",
            ),
        ),
        result_hash=result_hash(
            [
                [value if math.isfinite(value) else None for value in values]
                for values in ((item.optimum, *item.excess.values()) for item in compared)
            ]
        ),
        gaps={f"trees of {_SERVERS[0]} to {_SERVERS[-1]}": mean(excess)},
    )


def _compare(servers: int, busy: float, *, seed: int) -> _Compared:
    rate = busy / (servers * (FILTER_TIME_MEAN + SEND_TIME_MEAN))
    problem = generate_problem(
        seed=seed, servers=servers, routers=_ROUTERS, rates=(rate / _RATE_SPREAD, rate)
    )
    best = build_trees(problem, method="exact")
    optimum = checked_loss(problem, best)

    found = {
        method: checked_loss(problem, build_trees(problem, method=method, seed=seed))
        for method in ("auto", "greedy")
    }
    padded = _with_an_unwanted_object(problem)
    found["search"] = checked_loss(padded, build_trees(padded, approach="tree-each", seed=seed))
    excess = {
        name: excess_percent(average, optimum) if math.isfinite(average) else math.inf
        for name, average in found.items()
    }
    return _Compared(busy, optimum, float(best.loss.loads.max()), excess)


def _with_an_unwanted_object(problem: FidelityProblem) -> FidelityProblem:
    """Return the same problem with one more object; trees for each lose the same."""
    return FidelityProblem(
        problem.names,
        (*problem.objects, "unwanted"),
        np.hstack([problem.rates, np.zeros((problem.node_count, 1))]),
        problem.filter_times,
        problem.send_times,
        problem.delays,
    )


def _row(busy: float, compared: list[_Compared]) -> tuple[Value, ...]:
    solvable = [item for item in compared if math.isfinite(item.optimum)]

    auto, search, greedy = (_finite(solvable, name) for name in ("auto", "search", "greedy"))
    return (
        busy,
        len(compared),
        len(compared) - len(solvable),
        max((item.largest_load for item in solvable), default=None),
        mean(auto) if auto else None,
        max(auto, default=None),
        mean(search) if search else None,
        max(search, default=None),
        mean(greedy) if greedy else None,
    )


def _finite(compared: list[_Compared], name: str) -> list[float]:
    """Return the excess of a method wherever it overloads nobody."""
    return [item.excess[name] for item in compared if math.isfinite(item.excess[name])]


STUDY = Study(
    name="tree-small",
    about=(
        "The tree that `auto` finds for a handful of servers beside the best of all trees, from "
        "light load to near overload."
    ),
    minutes=0.3,
    run=_run,
)
