"""Narrow interests: who shares a broker matters most when few want the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.excess import saving_percent
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
from benchmarks.wiring.checked_cost import PAPER_METHODS, Compared, compare
from distributary.wiring.generate import generate_problem

__all__ = ["STUDY"]

_INTERESTS = (1, 3)
_SECONDS_MAX = 10.0
_METHODS = (*PAPER_METHODS, "search")


@dataclass(frozen=True)
class _Parameters:
    """How large, and what is claimed to be saved in percent for each core price."""

    users: int
    brokers: int
    channels: int
    seeds: tuple[int, ...]
    saving_min: Mapping[float, float]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(24, 8, 8, (1,), {1.0: 0.0, 10.0: 0.0}),
    "large": _Parameters(1_000, 100, 32, tuple(range(1, 11)), {1.0: 3.0, 10.0: 25.0}),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    progress("compiling")
    compare(generate_problem(seed=1, users=30, brokers=4, channels=4), _METHODS, seed=1)
    found: dict[float, list[Compared]] = {}
    for core_ratio in parameters.saving_min:
        for seed in parameters.seeds:
            progress(f"core price {core_ratio:g}, seed {seed}")
            problem = generate_problem(
                seed=seed,
                users=parameters.users,
                brokers=parameters.brokers,
                channels=parameters.channels,
                interests=_INTERESTS,
                core_ratio=core_ratio,
            )
            found.setdefault(core_ratio, []).append(compare(problem, _METHODS, seed=seed))
    savings = {
        core_ratio: [saving_percent(item.costs["search"], item.best_of_paper) for item in items]
        for core_ratio, items in found.items()
    }
    what = (
        f"{parameters.users:,} users, {parameters.brokers} brokers, {parameters.channels} channels"
    )
    return Findings(
        tables=(
            Table(
                f"Saving of `search` against the best of the paper's methods: {what}, each user "
                f"interested in {_INTERESTS[0]} to {_INTERESTS[1]} of them",
                "quality",
                (
                    Column("core price"),
                    Column("seeds"),
                    Column("search, mean cost"),
                    *(Column(f"{method}, mean cost") for method in PAPER_METHODS),
                    Column("mean saving %", 1),
                    Column("least saving %", 1),
                    Column("largest saving %", 1),
                    Column("lower bound below search, mean %", 1),
                ),
                tuple(
                    (
                        core_ratio,
                        len(items),
                        mean([item.costs["search"] for item in items]),
                        *(mean([item.costs[name] for item in items]) for name in PAPER_METHODS),
                        mean(savings[core_ratio]),
                        min(savings[core_ratio]),
                        max(savings[core_ratio]),
                        mean([100 * (1 - i.lower_bound / i.costs["search"]) for i in items]),
                    )
                    for core_ratio, items in found.items()
                ),
                notes=(
                    "The core price is the mean price between two brokers beside that between "
                    "user and broker."
                ),
            ),
            Table(
                f"Seconds: {what}",
                "speed",
                (Column("core price"), *(Column(f"{method}, slowest s", 3) for method in _METHODS)),
                tuple(
                    (
                        core_ratio,
                        *(max(item.seconds[method] for item in items) for method in _METHODS),
                    )
                    for core_ratio, items in found.items()
                ),
            ),
        ),
        claims=tuple(
            claim
            for core_ratio, limit in parameters.saving_min.items()
            for claim in (
                Claim(
                    f"core price {core_ratio:g}, mean saving",
                    mean(savings[core_ratio]),
                    ">=",
                    limit,
                    "%",
                ),
                Claim(
                    f"core price {core_ratio:g}, least saving",
                    min(savings[core_ratio]),
                    ">=",
                    limit,
                    "%",
                ),
                Claim(
                    f"core price {core_ratio:g}, slowest search",
                    max(item.seconds["search"] for item in found[core_ratio]),
                    "<",
                    _SECONDS_MAX,
                    "s",
                ),
            )
        ),
        result_hash=result_hash(
            [
                [item.costs[method] for method in _METHODS]
                for items in found.values()
                for item in items
            ]
        ),
    )


STUDY = Study(
    name="wiring-narrow",
    about=(
        "Users who are interested in few channels, with traffic between brokers as dear as to "
        "users and ten times as dear: what `search` saves against the paper's methods."
    ),
    minutes=6.0,
    run=_run,
)
