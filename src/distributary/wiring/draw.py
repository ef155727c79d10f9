"""Drawing a wiring: users around their brokers, and the traffic between brokers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.drawing.plane import Plane, plane_picture
from distributary.errors import counted
from distributary.wiring.flows import flows
from distributary.wiring.layout import clear_of_brokers, positions_from_prices
from distributary.wiring.positions import Positions
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import Wiring, loads

__all__ = ["USERS_DRAWN_MAX", "draw_wiring", "wiring_plane"]

USERS_DRAWN_MAX = 3_000
"""The most users that a picture shows; of more, a sample."""

_LINKS_DRAWN_MAX = 800


def draw_wiring(
    problem: WiringProblem,
    wiring: Wiring,
    path: Path | str,
    *,
    positions: Positions | None = None,
) -> None:
    """Write a picture of a wiring to a file, whole or not at all.

    A path that ends in `.svg` gets a standalone picture, `.html` a page with zoom, search and
    details, which needs nothing but a browser. Places are worked out from the prices unless
    `positions` are given.
    """
    plane = wiring_plane(problem, wiring, positions=positions)
    plane_picture(plane).write(path, option="--draw", stem="wiring")


def wiring_plane(
    problem: WiringProblem, wiring: Wiring, *, positions: Positions | None = None
) -> Plane:
    """Return what a picture of the wiring shows."""
    broker_of = wiring.broker_of
    carried = loads(problem, broker_of)
    users = _sample(problem.user_count)
    if positions is None:
        places = clear_of_brokers(positions_from_prices(problem, users), broker_of[users])
    else:
        places = Positions(positions.users[users], positions.brokers)
    counts = np.bincount(broker_of, minlength=problem.broker_count)
    ranks = np.flatnonzero(counts)
    ranks = ranks[np.lexsort((ranks, -carried[ranks]))]
    with np.errstate(invalid="ignore", divide="ignore"):
        fills = np.where(np.isinf(problem.capacities), np.nan, carried / problem.capacities)
    fills = np.where(problem.capacities == 0.0, 1.0, fills)
    limited = not bool(np.isnan(fills).all())
    between = flows(problem, broker_of, core="mst" if wiring.core == "steiner" else wiring.core)
    links = _links(between)
    rates = between[links[:, 0], links[:, 1]]
    hidden = int((between > 0.0).sum()) - len(links)
    return Plane(
        title=f"Who attaches to which broker ({wiring.method})",
        subtitle=_subtitle(problem, wiring, len(ranks), len(users), hidden),
        hub_noun="broker",
        hubs=problem.brokers,
        points=tuple(problem.users[u] for u in users.tolist()),
        hub_places=places.brokers,
        point_places=places.users,
        hub_of=broker_of[users],
        sizes=carried / max(float(carried.max()), np.finfo(np.float64).tiny),
        fills=np.clip(fills, 0.0, 1.0),
        ranks=ranks,
        hub_details=tuple(
            _broker_details(problem, b, int(counts[b]), float(carried[b]), between)
            for b in range(problem.broker_count)
        ),
        point_details=tuple(_user_details(problem, u, int(broker_of[u])) for u in users.tolist()),
        links=links,
        link_sizes=rates / max(float(rates.max(initial=0.0)), np.finfo(np.float64).tiny),
        link_details=tuple(
            (f"traffic {_figure(rate)}", f"price {_figure(problem.core_prices[one, other])}")
            for (one, other), rate in zip(links.tolist(), rates.tolist(), strict=True)
        ),
        legend_columns=("users", "traffic", "of capacity")[: 3 if limited else 2],
        legend_cells=tuple(
            (
                f"{counts[b]:,}",
                _figure(carried[b]),
                "" if np.isnan(fills[b]) else f"{100.0 * fills[b]:.3g} %",
            )[: 3 if limited else 2]
            for b in ranks.tolist()
        ),
    )


def _sample(count: int) -> IntArray:
    """Return the users to draw: all, or so many at equal distances."""
    drawn = min(count, USERS_DRAWN_MAX)
    return np.unique(np.linspace(0, count - 1, drawn).astype(np.int64))


def _links(between: FloatArray) -> IntArray:
    """Return the pairs of brokers with traffic between them, those with most of it only."""
    one, other = np.nonzero(between > 0.0)
    heaviest = np.argsort(-between[one, other], kind="stable")[:_LINKS_DRAWN_MAX]
    return np.column_stack([one[heaviest], other[heaviest]]).astype(np.int64)


def _broker_details(
    problem: WiringProblem, b: int, users: int, carried: float, between: FloatArray
) -> tuple[str, ...]:
    lines = [counted(users, "user"), f"traffic of users {_figure(carried)}"]
    capacity = float(problem.capacities[b])
    if np.isfinite(capacity):
        lines.append(f"capacity {_figure(capacity)}")
    exchanged = float(between[b].sum() + between[:, b].sum())
    if exchanged > 0.0:
        lines.append(f"traffic with brokers {_figure(exchanged)}")
    return tuple(lines)


def _user_details(problem: WiringProblem, u: int, b: int) -> tuple[str, ...]:
    first, last = problem.publish_start[u], problem.publish_start[u + 1]
    published = float(problem.publish_rate[first:last].sum())
    wanted = int(problem.interest_start[u + 1] - problem.interest_start[u])
    price = float(problem.access_prices[u, b])
    best = float(problem.access_prices[u].min())
    return (
        f"at {problem.brokers[b]}",
        f"price {_figure(price)}"
        + (f" (nearest broker {_figure(best)})" if best < price else ", the least"),
        f"traffic {_figure(problem.demands[u])}",
        f"publishes {_figure(published)}, wants {wanted:,} of "
        f"{counted(problem.channel_count, 'channel')}",
    )


def _subtitle(problem: WiringProblem, wiring: Wiring, used: int, users: int, hidden: int) -> str:
    """Return the figures of a result on one line, without its running time.

    Two runs of one plan must give the same picture, and no two take the same time.
    """
    cost = wiring.cost
    parts = [
        f"cost {_figure(cost.total)} (access {_figure(cost.access)}, core {_figure(cost.core)})",
        f"gap {100.0 * wiring.gap:.3g} %",
        f"{used:,} of {counted(problem.broker_count, 'broker')} in use",
    ]
    if users < problem.user_count:
        parts.append(f"{users:,} of {problem.user_count:,} users drawn")
    else:
        parts.append(counted(users, "user"))
    if wiring.core == "steiner":
        parts.append("traffic drawn along spanning trees, without branching points")
    if hidden:
        parts.append(f"{counted(hidden, 'link')} with less traffic left out")
    return " · ".join(parts)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if 1e3 <= value < 1e9 else f"{value:.4g}"
