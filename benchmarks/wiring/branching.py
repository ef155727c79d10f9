"""Branching points: how far the paper's spanning trees are from the best trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

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
from distributary.wiring.cost import cost
from distributary.wiring.generate import generate_problem
from distributary.wiring.planner import wire

__all__ = ["STUDY"]

_INTERESTS = (1, 2)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Parameters:
    """How large; the subscribers of a channel are about users over channels."""

    users: int
    channels: tuple[int, ...]
    brokers: tuple[int, ...]
    seeds: tuple[int, ...]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(16, (8,), (6, 12), (1,)),
    "large": _Parameters(300, (32, 128), (10, 30, 100), tuple(range(1, 6))),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    rows, dearer, results = [], 0, []
    for brokers in parameters.brokers:
        for channels in parameters.channels:
            savings: list[float] = []
            of_random: list[float] = []
            for seed in parameters.seeds:
                progress(f"{brokers} brokers, {channels} channels, seed {seed}")
                problem = generate_problem(
                    seed=seed,
                    users=parameters.users,
                    brokers=brokers,
                    channels=channels,
                    interests=_INTERESTS,
                )
                wiring = wire(problem, method="search", core="steiner", seed=seed)
                spread = np.random.default_rng(seed).integers(brokers, size=parameters.users)
                for broker_of, found in ((wiring.broker_of, savings), (spread, of_random)):
                    spanning = cost(problem, broker_of).core
                    branching = cost(problem, broker_of, core="steiner").core
                    dearer += branching > spanning * (1.0 + _ROUNDING)
                    found.append(saving_percent(branching, spanning) if spanning > 0.0 else 0.0)
                    results.append([spanning, branching])
            rows.append((brokers, channels, len(savings), mean(savings), mean(of_random)))
    return Findings(
        tables=(
            Table(
                f"Saving of branching points in % of the core, {parameters.users} users with "
                f"{_INTERESTS[0]} or {_INTERESTS[1]} interests",
                "quality",
                (
                    *(Column(name) for name in ("brokers", "channels", "seeds")),
                    Column("search, mean %", 2),
                    Column("random, mean %", 2),
                ),
                tuple(rows),
                notes=(
                    "The same wirings with `--core steiner` and along spanning trees. Up to ten "
                    "brokers the best branching points are taken, beyond that the best found."
                ),
            ),
        ),
        claims=(
            Claim("wirings that cost more with branching points", float(dearer), "==", 0.0),
            Claim(
                "least mean saving for random wirings", min(row[4] for row in rows), ">=", 0.0, "%"
            ),
        ),
        result_hash=result_hash(results),
    )


STUDY = Study(
    name="wiring-steiner",
    about=(
        "Zhao and Wu hold that a spanning tree of the brokers concerned is optimal. A broker "
        "without a subscriber can still be a branching point: how much that saves."
    ),
    minutes=4.0,
    run=_run,
)
