"""Seconds of every method at the size for which the paper states its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.excess import excess_percent
from benchmarks.study import Claim, Column, Findings, Progress, Size, Study, Table, result_hash
from benchmarks.wiring.checked_cost import PAPER_METHODS, compare
from distributary.wiring.generate import generate_problem

__all__ = ["STUDY"]

_SEED = 1
_METHODS = ("random", *PAPER_METHODS, "search")
_SECONDS_MAX = {"packing": 0.5, "clustering": 5.0, "mixing": 15.0, "search": 15.0}
# Zhao and Wu, table I.
_PAPER_SECONDS = {"random": 0.9, "packing": 91.445, "clustering": 100.235, "mixing": 179.654}


@dataclass(frozen=True)
class _Parameters:
    users: int
    brokers: int
    channels: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(30, 6, 8),
    "large": _Parameters(10_000, 100, 64),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    progress("compiling")
    compare(generate_problem(seed=_SEED, users=30, brokers=4, channels=4), _METHODS, seed=_SEED)
    progress(f"{parameters.users:,} users")
    problem = generate_problem(
        seed=_SEED,
        users=parameters.users,
        brokers=parameters.brokers,
        channels=parameters.channels,
    )
    found = compare(problem, _METHODS, seed=_SEED)
    what = (
        f"{parameters.users:,} users, {parameters.brokers} brokers, {parameters.channels} channels"
    )
    return Findings(
        tables=(
            Table(
                f"Seconds of every method: {what}",
                "speed",
                (Column("method"), Column("seconds", 3), Column("paper's seconds", 1)),
                tuple(
                    (method, found.seconds[method], _PAPER_SECONDS.get(method))
                    for method in _METHODS
                ),
                notes=(
                    "Within one process, with everything compiled. Zhao and Wu measured 10,000 "
                    "users and 100 brokers in unoptimised C++ on a processor of 2008."
                ),
            ),
            Table(
                f"Total cost of every method: {what}",
                "quality",
                (
                    Column("method"),
                    Column("total cost"),
                    Column("cost reduction ratio", 3),
                    Column("above the lower bound %", 2),
                ),
                tuple(
                    (
                        method,
                        found.costs[method],
                        found.costs["random"] / found.costs[method],
                        excess_percent(found.costs[method], found.lower_bound),
                    )
                    for method in _METHODS
                ),
                notes="The cost reduction ratio is the cost of `random` over that of the method.",
            ),
        ),
        claims=(
            *(
                Claim(f"{method}, {what}", found.seconds[method], "<", limit, "s")
                for method, limit in _SECONDS_MAX.items()
            ),
            Claim(
                "excess of search over the best of the paper's methods",
                excess_percent(found.costs["search"], found.best_of_paper),
                "<=",
                0.0,
                "%",
            ),
        ),
        result_hash=result_hash([found.costs[method] for method in _METHODS]),
        gaps={"wirings of 10,000 users": excess_percent(found.costs["search"], found.lower_bound)}
        if size == "large"
        else {},
    )


STUDY = Study(
    name="wiring-speed",
    about="How long every method takes for ten thousand users, as in the paper, and its cost.",
    minutes=1.5,
    run=_run,
)
