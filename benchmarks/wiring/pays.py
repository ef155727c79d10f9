"""Where a search pays, and where the paper's methods are as good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.excess import saving_percent
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
    mean,
    result_hash,
)
from benchmarks.wiring.checked_cost import PAPER_METHODS, compare
from distributary.wiring.generate import generate_problem

__all__ = ["STUDY"]

_METHODS = (*PAPER_METHODS, "search")


@dataclass(frozen=True)
class _Parameters:
    users: int
    channels: int
    widths: tuple[int, ...]
    users_per_broker: tuple[int, ...]
    seeds: tuple[int, ...]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters(24, 8, (1, 4), (4,), (1,)),
    "large": _Parameters(1_000, 32, (1, 2, 4, 8, 16, 32), (10, 25, 50, 100), (1, 2, 3)),
}


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]
    savings: dict[tuple[int, int], list[float]] = {}
    results = []
    for crowd in parameters.users_per_broker:
        for width in parameters.widths:
            for seed in parameters.seeds:
                progress(f"{crowd} users a broker, {width} channels wide, seed {seed}")
                problem = generate_problem(
                    seed=seed,
                    users=parameters.users,
                    brokers=parameters.users // crowd,
                    channels=parameters.channels,
                    interests=(width, width),
                )
                found = compare(problem, _METHODS, seed=seed)
                saving = saving_percent(found.costs["search"], found.best_of_paper)
                savings.setdefault((crowd, width), []).append(saving)
                results.append([found.costs[method] for method in _METHODS])
    return Findings(
        tables=(
            Table(
                "Mean saving in % of `search` against the best of the paper's methods: "
                f"{parameters.users:,} users, {parameters.channels} channels",
                "quality",
                (
                    Column("users a broker"),
                    *(
                        Column(f"{width} channel{'s' if width > 1 else ''} each, %", 1)
                        for width in parameters.widths
                    ),
                ),
                tuple(
                    (crowd, *(mean(savings[crowd, width]) for width in parameters.widths))
                    for crowd in parameters.users_per_broker
                ),
                notes=(
                    f"Traffic between brokers is as dear as to users; {len(parameters.seeds)} "
                    "seeds. Where every broker has users with every interest, nothing can be "
                    "arranged, and attaching everybody to the nearest broker with room is best."
                ),
                chart=Chart(
                    "wiring-pays",
                    "Saving by how wide interests are and how many users share a broker",
                    "channels that a user wants",
                    "saving in %",
                    tuple(
                        Line(
                            f"{crowd} a broker",
                            tuple(
                                (float(width), mean(savings[crowd, width]))
                                for width in parameters.widths
                            ),
                            colour,
                        )
                        for colour, crowd in enumerate(parameters.users_per_broker)
                    ),
                    x_doubling=True,
                ),
            ),
        ),
        claims=(
            Claim(
                "least saving of search",
                min(saving for items in savings.values() for saving in items),
                ">=",
                0.0,
                "%",
            ),
        ),
        result_hash=result_hash(results),
    )


STUDY = Study(
    name="wiring-pays",
    about=(
        "What `search` saves against the best of the paper's methods, by how wide interests are "
        "and how many users share a broker."
    ),
    minutes=10.0,
    run=_run,
)
