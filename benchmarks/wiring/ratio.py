"""The paper's curves: how much cheaper than random each method is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.excess import excess_percent
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
from benchmarks.wiring.checked_cost import PAPER_METHODS, Compared, compare
from distributary.wiring.generate import generate_problem

__all__ = ["STUDY"]

_METHODS = ("random", *PAPER_METHODS, "search")
_SHOWN = _METHODS[1:]


@dataclass(frozen=True)
class _Parameters:
    users: tuple[int, ...]
    users_per_broker: int
    channels: int
    access_to_core: tuple[float, ...]
    ratio_users: int
    seeds: tuple[int, ...]


_SIZES: Mapping[Size, _Parameters] = {
    "small": _Parameters((12, 24), 6, 4, (0.5, 2.0), 12, (1,)),
    "large": _Parameters(
        (1_000, 2_000, 4_000, 7_000, 10_000),
        100,
        64,
        (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
        2_000,
        (1, 2, 3),
    ),
}

_Ratios = Mapping[str, float]


def _run(size: Size, progress: Progress) -> Findings:
    parameters = _SIZES[size]

    def ratios(users: int, access_to_core: float) -> tuple[_Ratios, list[Compared]]:
        items = []
        for seed in parameters.seeds:
            progress(f"{users:,} users, access to core {access_to_core:g}, seed {seed}")
            problem = generate_problem(
                seed=seed,
                users=users,
                brokers=users // parameters.users_per_broker,
                channels=parameters.channels,
                core_ratio=1.0 / access_to_core,
            )
            items.append(compare(problem, _METHODS, seed=seed))
        means = {m: mean([i.costs["random"] / i.costs[m] for i in items]) for m in _SHOWN}
        return means, items

    by_users = {users: ratios(users, 1.0) for users in parameters.users}
    by_price = {price: ratios(parameters.ratio_users, price) for price in parameters.access_to_core}
    everything = [
        item for group in (by_users, by_price) for _, items in group.values() for item in items
    ]
    worst = max(excess_percent(item.costs["search"], item.best_of_paper) for item in everything)
    return Findings(
        tables=(
            Table(
                f"Cost reduction ratio by users, {parameters.users_per_broker} users a broker",
                "quality",
                (Column("users"), *(Column(method, 3) for method in _SHOWN)),
                tuple((n, *means.values()) for n, (means, _) in by_users.items()),
                notes=(
                    "The cost of `random` over that of the method, mean of "
                    f"{len(parameters.seeds)} seeds: figure 9 of Zhao and Wu. Their instances "
                    "are not published; ours follow their description."
                ),
                chart=_chart(
                    "wiring-ratio-users",
                    "Cost reduction ratio by users",
                    "users",
                    ((float(n), means) for n, (means, _) in by_users.items()),
                    x_doubling=False,
                ),
            ),
            Table(
                f"Cost reduction ratio by access-to-core price, {parameters.ratio_users:,} users",
                "quality",
                (Column("access to core", 1), *(Column(method, 3) for method in _SHOWN)),
                tuple((price, *means.values()) for price, (means, _) in by_price.items()),
                notes="Figure 10 of Zhao and Wu, with fewer users.",
                chart=_chart(
                    "wiring-ratio-prices",
                    "Cost reduction ratio by prices",
                    "price of access over price of core",
                    ((price, means) for price, (means, _) in by_price.items()),
                    x_doubling=True,
                ),
            ),
        ),
        claims=(
            Claim(
                "largest excess of search over the best of the paper's methods",
                worst,
                "<=",
                0.0,
                "%",
            ),
        ),
        result_hash=result_hash([[item.costs[m] for m in _METHODS] for item in everything]),
    )


def _chart(
    name: str,
    title: str,
    x_label: str,
    points: Iterable[tuple[float, _Ratios]],
    *,
    x_doubling: bool,
) -> Chart:
    drawn = list(points)
    return Chart(
        name,
        title,
        x_label,
        "cost of random / cost",
        tuple(
            Line(method, tuple((x, means[method]) for x, means in drawn), colour)
            for colour, method in enumerate(_SHOWN)
        ),
        x_doubling=x_doubling,
    )


STUDY = Study(
    name="wiring-ratio",
    about=(
        "The cost reduction ratio of every method, by the number of users and by the price of "
        "access beside that of the core, as in figures 9 and 10 of Zhao and Wu."
    ),
    minutes=12.0,
    run=_run,
)
