"""Wiring problems in files.

A problem file is one JSON object::

    {"brokers": [{"broker": "b1", "capacity": 100.0}, {"broker": "b2"}],
     "users": [{"user": "u1", "publishes": [1.0, 0.0], "subscribes": [0, 1]},
               {"user": "u2", "publishes": [0.0, 2.0], "subscribes": [1, 0]}],
     "access_cost": [[1.0, 4.0], [3.0, 1.0]],
     "core_cost": [[0.0, 3.0], [3.0, 0.0]]}

`publishes` and `subscribes` have an entry per channel, `access_cost` a row per user and
`core_cost` a row per broker, both with an entry per broker, in the order of the file. An
interest may be true or false as well. A
capacity that is left out or null is unlimited. Users and brokers may have a `position`,
`[x, y]`, for pictures. Large problems come as Parquet tables, see `problem_tables`.

With a network there are no prices in the file. Every user has a `place` in the network, and so has
every broker, whose name it is unless given; what a way costs is its delay in milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import numpy as np

from distributary.arguments import checked
from distributary.arrays import BoolArray, FloatArray
from distributary.content.documents import DOCUMENT_BYTES_MAX, read_document
from distributary.content.fields import NUMBER_MAX, Record, UnknownKeys
from distributary.content.number_rows import flag_rows, number_rows
from distributary.errors import BadInput, counted, quoted
from distributary.topology.sites import Sites
from distributary.wiring.limits import BROKERS_MAX, USERS_MAX, check_size
from distributary.wiring.network_prices import standing
from distributary.wiring.positions import Positions
from distributary.wiring.problem import WiringProblem

__all__ = [
    "DOCUMENT_CELLS_MAX",
    "ProblemFile",
    "fits_document",
    "parse_problem",
    "positions_in_order",
    "problem_document",
    "read_problem",
]

DOCUMENT_CELLS_MAX = 20_000_000
"""The most users times channels, and users times brokers, that a document may have."""

_TOP_KEYS = frozenset({"brokers", "users", "access_cost", "core_cost"})
_BROKER_KEYS = frozenset({"broker", "capacity", "position", "place"})
_USER_KEYS = frozenset({"user", "publishes", "subscribes", "position", "place"})


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """A problem, and what the file says beyond it.

    The order of the problem does not depend on the file; wirings keep `user_order`, which is that
    of the file. Positions are there if the file says so for everybody, and `warnings` has a
    sentence for each thing in it that is ignored.
    """

    problem: WiringProblem
    user_order: tuple[str, ...]
    positions: Positions | None = None
    warnings: tuple[str, ...] = ()


def read_problem(path: Path | str, *, sites: Sites | None = None) -> ProblemFile:
    """Return the wiring problem in a file; see `parse_problem`."""
    return read_document(path, lambda document: parse_problem(document, sites=sites))


def parse_problem(document: object, *, sites: Sites | None = None) -> ProblemFile:
    """Return the wiring problem in a JSON document, or raise `BadInput`.

    With sites users and brokers stand there, and the document has no prices.
    """
    top = Record(document)
    unknown = UnknownKeys()
    unknown.note(top, _TOP_KEYS)
    brokers, capacities, at_brokers = _brokers(top, unknown)
    users, publishes, subscribes, at_users = _users(top, unknown)
    places = _places(top, users)
    check_size(users=len(users), brokers=len(brokers), channels=publishes.shape[1])
    for what, count in (("channels", publishes.shape[1]), ("brokers", len(brokers))):
        if len(users) * count > DOCUMENT_CELLS_MAX:
            raise BadInput(
                "users",
                f"{len(users):,} users and {count:,} {what} are too many for one document",
                hint="large problems come as a directory of Parquet tables",
            )
    if sites is None:
        access = _matrix(top, "access_cost", rows=len(users), noun="user", brokers=len(brokers))
        core = _matrix(top, "core_cost", rows=len(brokers), noun="broker", brokers=len(brokers))
    else:
        for key in ("access_cost", "core_cost"):
            if key in top:
                raise BadInput(key, "is given both here and by the network", hint="leave it out")
        if places is None:
            raise BadInput("users[].place", "is missing", hint="say where each user stands")
        stands = standing(sites, places, _broker_places(top))
        access, core, drawn = stands.access_prices, stands.core_prices, stands.positions
        at_users, at_brokers = drawn.users, drawn.brokers
    problem = WiringProblem.in_order(
        users=users,
        brokers=brokers,
        publishes=publishes,
        subscribes=subscribes,
        access_prices=access,
        core_prices=core,
        capacities=np.array(capacities),
        core_place=lambda i, j: f"core_cost[{i}][{j}]",
    )
    positions = None
    if at_users is not None and at_brokers is not None:
        positions = positions_in_order(problem, users, at_users, brokers, at_brokers, places)
    return ProblemFile(problem, tuple(users), positions, unknown.warnings())


@checked
def positions_in_order(
    problem: WiringProblem,
    users: Sequence[str],
    at_users: FloatArray,
    brokers: Sequence[str],
    at_brokers: FloatArray,
    places: Sequence[str] | None = None,
) -> Positions:
    """Return the places of users and brokers, given in any order, in that of the problem."""
    user_at = {name: i for i, name in enumerate(users)}
    broker_at = {name: i for i, name in enumerate(brokers)}
    return Positions(
        at_users[[user_at[name] for name in problem.users]],
        at_brokers[[broker_at[name] for name in problem.brokers]],
        None if places is None else tuple(places[user_at[name]] for name in problem.users),
    )


def _places(top: Record, users: Sequence[str]) -> list[str] | None:
    """Return the places of the users, if the file says so for everybody."""
    entries = top.records("users", count_max=USERS_MAX)
    places = [entry.name("place") for entry in entries if "place" in entry]
    return places if users and len(places) == len(users) else None


def _broker_places(top: Record) -> list[str]:
    return [
        entry.name("place" if "place" in entry else "broker")
        for entry in top.records("brokers", count_max=BROKERS_MAX)
    ]


def _brokers(top: Record, unknown: UnknownKeys) -> tuple[list[str], list[float], FloatArray | None]:
    """Return the names, capacities and positions of the brokers."""
    names: dict[str, None] = {}
    capacities: list[float] = []
    points: list[tuple[float, float] | None] = []
    for entry in top.records("brokers", count_max=BROKERS_MAX):
        unknown.note(entry, _BROKER_KEYS)
        _add_name(entry, "broker", names)
        limited = "capacity" in entry and entry.value("capacity") is not None
        capacities.append(entry.number("capacity") if limited else math.inf)
        points.append(_position(entry))
    return list(names), capacities, _points(points)


def _users(
    top: Record, unknown: UnknownKeys
) -> tuple[list[str], FloatArray, BoolArray, FloatArray | None]:
    """Return the names of the users, what they publish and want, and their positions."""
    names: dict[str, None] = {}
    points: list[tuple[float, float] | None] = []
    publishes: list[object] = []
    subscribes: list[object] = []
    for entry in top.records("users", count_max=USERS_MAX):
        unknown.note(entry, _USER_KEYS)
        _add_name(entry, "user", names)
        publishes.append(entry.value("publishes"))
        subscribes.append(entry.value("subscribes"))
        points.append(_position(entry))
    first = publishes[0] if publishes else None
    channels = len(first) if isinstance(first, list) else 1
    if channels == 0:
        raise BadInput(
            "users[0].publishes", "is empty", hint="a content space has at least one channel"
        )
    rates = number_rows(
        publishes, lambda i: f"users[{i}].publishes", width=channels, noun="channel"
    )
    wishes = flag_rows(
        subscribes, lambda i: f"users[{i}].subscribes", width=channels, noun="channel"
    )
    return list(names), rates, wishes, _points(points)


def _add_name(entry: Record, key: str, names: dict[str, None]) -> None:
    name = entry.name(key)
    if name in names:
        raise BadInput(entry.place(key), f"{key} {quoted(name)} is given twice")
    names[name] = None


def _position(entry: Record) -> tuple[float, float] | None:
    """Return the point where an entry says that it is."""
    if "position" not in entry:
        return None
    point = entry.value("position")
    if isinstance(point, list) and len(point) == 2:
        x, y = point
        if _is_coordinate(x) and _is_coordinate(y):
            return float(x), float(y)
    raise BadInput(entry.place("position"), "must be a list of two finite numbers, x and y")


def _is_coordinate(value: object) -> TypeGuard[int | float]:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= NUMBER_MAX
    )


def _points(points: Sequence[tuple[float, float] | None]) -> FloatArray | None:
    given = [point for point in points if point is not None]
    return np.array(given) if points and len(given) == len(points) else None


def _matrix(top: Record, key: str, *, rows: int, noun: str, brokers: int) -> FloatArray:
    """Return a table of prices with a column per broker."""
    entries = top.entries(key, count_max=USERS_MAX)
    if len(entries) != rows:
        raise BadInput(key, f"has {counted(len(entries), 'row')} for {counted(rows, noun)}")
    return number_rows(entries, lambda i: f"{key}[{i}]", width=brokers, noun="broker")


@checked
def fits_document(*, users: int, brokers: int, channels: int) -> bool:
    """Say whether a problem of this size, written as a document, could be read back."""
    # An access price takes about eleven bytes, a rate twenty-two and an interest three.
    written = users * (11 * brokers + 25 * channels) + 20 * brokers * brokers
    return users * max(brokers, channels) <= DOCUMENT_CELLS_MAX and written < DOCUMENT_BYTES_MAX


@checked
def problem_document(
    problem: WiringProblem, *, positions: Positions | None = None
) -> dict[str, object]:
    """Return `problem` as the document that `parse_problem` reads back."""
    brokers: list[dict[str, object]] = [
        {"broker": name} if math.isinf(capacity) else {"broker": name, "capacity": capacity}
        for name, capacity in zip(problem.brokers, problem.capacities.tolist(), strict=True)
    ]
    users: list[dict[str, object]] = [
        {"user": name, "publishes": publishes.tolist(), "subscribes": subscribes.tolist()}
        for name, publishes, subscribes in zip(
            problem.users, problem.publishes, problem.subscribes.astype(np.int64), strict=True
        )
    ]
    if positions is not None:
        for entry, point in zip(brokers, positions.brokers.tolist(), strict=True):
            entry["position"] = point
        for entry, point in zip(users, positions.users.tolist(), strict=True):
            entry["position"] = point
        for entry, place in zip(users, positions.places or (), strict=False):
            entry["place"] = place
    return {
        "brokers": brokers,
        "users": users,
        "access_cost": problem.access_prices.tolist(),
        "core_cost": problem.core_prices.tolist(),
    }
