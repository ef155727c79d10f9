"""How the exact method's time grows with the number of brokers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    result_hash,
)
from distributary.placement import place
from distributary.placement.generate import generate_problem

__all__ = ["STUDY"]

_SEED = 1
_GROWTH_MAX = 1.5


@dataclass(frozen=True)
class _Parameters:
    formats: int
    brokers: tuple[int, ...]
    compared_with: int
    repeats: int


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(5, (64, 128, 256), compared_with=64, repeats=2),
    "large": _Parameters(
        8, tuple(256 * 2**step for step in range(7)), compared_with=1024, repeats=3
    ),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    problems = {}
    for brokers in parameters.brokers:
        progress(f"generating {brokers:,} brokers")
        problems[brokers] = generate_problem(
            "dense", seed=_SEED, formats=parameters.formats, brokers=brokers, tree="recursive"
        )
    place(problems[parameters.brokers[0]], method="exact")
    seconds = dict.fromkeys(parameters.brokers, float("inf"))
    costs = {}
    # All sizes in turn, several times: a busy moment then spoils one round, not one size.
    for repeat in range(parameters.repeats):
        for brokers, problem in problems.items():
            progress(f"{brokers:,} brokers, run {repeat + 1} of {parameters.repeats}")
            placement = place(problem, method="exact")
            seconds[brokers] = min(seconds[brokers], placement.seconds)
            costs[brokers] = placement.total_cost
    per_broker = {brokers: 1e6 * seconds[brokers] / brokers for brokers in parameters.brokers}
    last, base = parameters.brokers[-1], parameters.compared_with
    return Findings(
        tables=(
            Table(
                f"Exact plans for {parameters.formats} formats",
                "speed",
                (Column("brokers"), Column("seconds", 3), Column("µs per broker", 1)),
                tuple((n, seconds[n], per_broker[n]) for n in parameters.brokers),
                notes=(
                    f"Random dense graphs on random recursive trees, seed {_SEED}; best of "
                    f"{parameters.repeats} within one process."
                ),
                chart=Chart(
                    "exact-scaling",
                    f"Exact plans for {parameters.formats} formats",
                    "brokers",
                    "µs per broker",
                    (Line("exact", tuple((float(n), per_broker[n]) for n in parameters.brokers)),),
                    x_doubling=True,
                ),
            ),
        ),
        claims=(
            Claim(
                f"time per broker with {last:,} brokers, against {base:,}",
                per_broker[last] / per_broker[base],
                "<=",
                _GROWTH_MAX,
                "times as long",
            ),
        ),
        result_hash=result_hash([costs[n] for n in parameters.brokers]),
    )


STUDY = Study(
    name="exact-scaling",
    about="For a given number of formats the exact method takes time in proportion to the brokers.",
    minutes=1.0,
    run=_run,
)
