"""Drawing a wiring: users around their brokers, and the traffic between brokers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from distributary.arguments import checked
from distributary.arrays import FloatArray, IntArray
from distributary.drawing.picture import Picture
from distributary.drawing.plane import Plane, heaviest_links, plane_picture
from distributary.errors import counted
from distributary.wiring.flows import flows
from distributary.wiring.layout import around_places, clear_of_brokers, positions_from_prices
from distributary.wiring.positions import Positions
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import Wiring, loads

__all__ = ["USERS_DRAWN_MAX", "draw_wiring", "wiring_picture", "wiring_plane"]

USERS_DRAWN_MAX = 3_000
"""The most users that a picture shows; of more, a sample."""

_LINKS_DRAWN_MAX = 800
_NAMES_MAX = 50


@checked
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
    picture = wiring_picture(problem, wiring, positions=positions)
    picture.write(path, option="--draw", stem="wiring")


def wiring_picture(
    problem: WiringProblem, wiring: Wiring, *, positions: Positions | None = None
) -> Picture:
    """Return the picture of a wiring."""
    return plane_picture(wiring_plane(problem, wiring, positions=positions))


def wiring_plane(
    problem: WiringProblem, wiring: Wiring, *, positions: Positions | None = None
) -> Plane:
    """Return what a picture of the wiring shows."""
    broker_of = wiring.broker_of
    carried = loads(problem, broker_of)
    if positions is None:
        users = _sample(problem.user_count)
        places = clear_of_brokers(positions_from_prices(problem, users), broker_of[users])
        together = np.ones(len(users), dtype=np.int64)
    else:
        users, together = _together(positions, broker_of)
        some = _sample(len(users))
        users, together = users[some], together[some]
        places = around_places(
            Positions(positions.users[users], positions.brokers), broker_of[users], together
        )
    counts = np.bincount(broker_of, minlength=problem.broker_count)
    ranks = np.flatnonzero(counts)
    ranks = ranks[np.lexsort((ranks, -carried[ranks]))]
    with np.errstate(invalid="ignore", divide="ignore"):
        fills = np.where(np.isinf(problem.capacities), np.nan, carried / problem.capacities)
    fills = np.where(problem.capacities == 0.0, 1.0, fills)
    limited = not bool(np.isnan(fills).all())
    between = flows(problem, broker_of, core="mst" if wiring.core == "steiner" else wiring.core)
    links = heaviest_links(between, _LINKS_DRAWN_MAX)
    rates = between[links[:, 0], links[:, 1]]
    hidden = int((between > 0.0).sum()) - len(links)
    return Plane(
        title=f"Who attaches to which broker ({wiring.method})",
        subtitle=_subtitle(problem, wiring, len(ranks), int(together.sum()), hidden),
        hub_noun="broker",
        point_noun="user",
        full_noun="share of the capacity in use",
        hubs=problem.brokers,
        points=tuple(
            _names(problem, positions, u, count, broker_of)
            for u, count in zip(users.tolist(), together.tolist(), strict=True)
        ),
        hub_places=places.brokers,
        point_places=places.users,
        hub_of=broker_of[users],
        counts=together,
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


def _together(positions: Positions, broker_of: IntArray) -> tuple[IntArray, IntArray]:
    """Return one of the users at each place and broker, and how many stand there with it."""
    keys = np.column_stack([positions.users, broker_of])
    _, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    return first[order], counts[order]


def _names(
    problem: WiringProblem,
    positions: Positions | None,
    u: int,
    count: int,
    broker_of: IntArray,
) -> str:
    """Return what a point is called: its user, or how many there are, where, and who."""
    place = "" if positions is None or positions.places is None else positions.places[u]
    if count == 1 or positions is None:
        return f"{problem.users[u]} ({place})" if place else problem.users[u]
    same = (positions.users == positions.users[u]).all(axis=1) & (broker_of == broker_of[u])
    names = ", ".join(problem.users[v] for v in np.flatnonzero(same)[:_NAMES_MAX].tolist())
    more = " ..." if count > _NAMES_MAX else ""
    return f"{count:,} users{f' in {place}' if place else ''}: {names}{more}"


def _sample(count: int) -> IntArray:
    """Return which points to draw: all, or so many at equal distances."""
    drawn = min(count, USERS_DRAWN_MAX)
    return np.unique(np.linspace(0, count - 1, drawn).astype(np.int64))


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
