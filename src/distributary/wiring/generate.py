"""Random wiring problems like those of the published experiments.

Zhao and Wu, section VI: 1,000 to 10,000 users, a tenth to a hundredth as many brokers, a
one-dimensional content space, a random quadratic generating function for every user with
its negative part set to zero, a random subscription, and equal capacities that add up to
twice the demand. Users and brokers stand on a plane, and prices are distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from distributary.arguments import check_count, check_within, checked
from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.errors import BadInput
from distributary.topology.sites import Sites
from distributary.wiring.generating_function import quadratic_cells
from distributary.wiring.limits import BROKERS_MAX, USERS_MAX, check_size
from distributary.wiring.network_prices import Standing
from distributary.wiring.positions import Positions
from distributary.wiring.problem import WiringProblem

__all__ = ["CELLS_MAX", "Layout", "check_arguments", "generate_positions", "generate_problem"]

Layout = Literal["plane", "towns"]

CELLS_MAX = 4_096
"""The most cells of a content space: the channels of each dimension, multiplied."""

_ENTRIES_MAX = 200_000_000
_DIMENSIONS_MAX = 12
_RATIO_MAX = 1e6
_ACCESS_DIGITS = 6
# So many cells of a table are worked on at a time, and so many prices.
_BLOCK_CELLS = 4_000_000
_TOWN_USERS = 100
_TOWN_SPREAD = 0.04


@checked
def generate_problem(
    *,
    seed: int,
    users: int = 1_000,
    brokers: int | None = None,
    channels: int = 64,
    dimensions: int = 1,
    core_ratio: float = 1.0,
    interests: tuple[int, int] | None = None,
    capacity_factor: float | None = 2.0,
    layout: Layout = "plane",
    sites: Sites | None = None,
    at: Sequence[str] = (),
) -> WiringProblem:
    """Return a random problem; the same arguments give the same problem.

    Problems of one seed that differ only in prices, interests or capacities have the same
    users at the same places, who publish the same. A user publishes one unit on average,
    and a unit of traffic between a user and a broker costs one on average.

    Parameters
    ----------
    seed
        Not negative.
    users
        How many users there are.
    brokers
        How many brokers there are; one for every hundred users unless given.
    channels
        Into how many cells each dimension of the content space is cut.
    dimensions
        How many dimensions the content space has; `channels ** dimensions` cells are at
        most `CELLS_MAX`. A user publishes in several dimensions at the product of one
        generating function for each.
    core_ratio
        The mean price between two brokers, as a multiple of that between user and broker.
    interests
        The least and the largest number of cells that a subscription spans in each
        dimension. Without it, it lies between two random points: a third of the space.
    capacity_factor
        The capacities of all brokers together, as a multiple of the demand of all users;
        None for brokers without limit.
    layout
        "plane": users and brokers stand anywhere on a square. "towns": users stand around
        random centres, a hundred users each on average.
    sites
        Places of a network for users and brokers to stand at; prices are then in proportion
        to the delays between them. Users stand anywhere, brokers at different places, whose
        names they have.
    at
        At which of the sites brokers stand, by name; at random ones unless given.
    """
    brokers = _broker_count(users, brokers, sites, at)
    check_arguments(
        seed=seed,
        users=users,
        brokers=brokers,
        channels=channels,
        dimensions=dimensions,
        core_ratio=core_ratio,
        interests=interests,
        capacity_factor=capacity_factor,
    )
    place_rng, rate_rng, interest_rng = np.random.default_rng(seed).spawn(3)
    stands = _standing(users, brokers, sites, at, place_rng)
    if stands is None:
        positions = _positions(users, brokers, layout, place_rng)
        distances = _distances(positions.users, positions.brokers)
        between = _distances(positions.brokers, positions.brokers)
    else:
        distances, between = stands.access_prices, stands.core_prices
    access, core = _prices(distances, between, core_ratio)
    published = _publications(users, channels, dimensions, rate_rng)
    wanted = _interests(users, channels, dimensions, interests, interest_rng)
    cells = channels**dimensions
    capacities = None
    if capacity_factor is not None:
        demand = _demand(cells, published, wanted)
        capacities = np.full(brokers, capacity_factor * demand / brokers)
    return WiringProblem.from_rows(
        users=_names("u", users),
        brokers=_names("b", brokers) if stands is None else stands.broker_names,
        channel_count=cells,
        published=published,
        wanted=wanted,
        access_prices=access,
        core_prices=core,
        capacities=capacities,
    )


@checked
def generate_positions(
    *,
    seed: int,
    users: int = 1_000,
    brokers: int | None = None,
    layout: Layout = "plane",
    sites: Sites | None = None,
    at: Sequence[str] = (),
) -> Positions:
    """Return where the users and brokers of `generate_problem` with these arguments are."""
    brokers = _broker_count(users, brokers, sites, at)
    _check_size(seed, users, brokers, 1, 1)
    rng = np.random.default_rng(seed).spawn(3)[0]
    stands = _standing(users, brokers, sites, at, rng)
    if stands is None:
        return _positions(users, brokers, layout, rng)
    found = stands.positions
    # A problem has its brokers in the order of their names.
    order = sorted(range(brokers), key=stands.broker_names.__getitem__)
    return Positions(found.users, found.brokers[order], found.places)


def check_arguments(
    *,
    seed: int,
    users: int,
    brokers: int,
    channels: int,
    dimensions: int,
    core_ratio: float,
    interests: tuple[int, int] | None,
    capacity_factor: float | None,
) -> None:
    """Raise `BadInput` that names the argument of `generate_problem` that is out of range."""
    _check_size(seed, users, brokers, channels, dimensions)
    check_within("core_ratio", core_ratio, 0.0, _RATIO_MAX)
    if interests is not None and not 1 <= interests[0] <= interests[1] <= channels:
        raise BadInput(
            "interests",
            f"are from {interests[0]} to {interests[1]}, and must rise within 1 to {channels:,}",
        )
    if capacity_factor is not None and not 0.0 < capacity_factor <= _RATIO_MAX:
        raise BadInput(
            "capacity_factor",
            f"is {capacity_factor:g}, and must be above 0 and at most {_RATIO_MAX:g}",
        )


def _check_size(seed: int, users: int, brokers: int, channels: int, dimensions: int) -> None:
    """Raise `BadInput` for counts that are out of range, each alone and together."""
    check_count("seed", seed)
    for place, count, most in (
        ("users", users, USERS_MAX),
        ("brokers", brokers, BROKERS_MAX),
        ("channels", channels, CELLS_MAX),
        ("dimensions", dimensions, _DIMENSIONS_MAX),
    ):
        check_within(place, count, 1, most)
    cells = channels**dimensions
    if cells > CELLS_MAX:
        raise BadInput(
            "dimensions",
            f"{channels:,} channels in each of {dimensions} dimensions are {cells:,} cells; at "
            f"most {CELLS_MAX:,} are generated",
        )
    try:
        check_size(users=users, brokers=brokers, channels=cells)
    except BadInput as error:
        raise BadInput("users", error.problem) from None
    if users * cells > _ENTRIES_MAX:
        raise BadInput(
            "users",
            f"{users:,} users with {cells:,} cells are {users * cells:,} entries; "
            f"at most {_ENTRIES_MAX:,} are generated",
        )


def _names(letter: str, count: int) -> list[str]:
    # Of equal length, so that their order by name is the one in which they are drawn.
    width = len(str(count))
    return [f"{letter}{i:0{width}d}" for i in range(1, count + 1)]


def _positions(users: int, brokers: int, layout: Layout, rng: np.random.Generator) -> Positions:
    broker_rng, user_rng = rng.spawn(2)
    at_brokers = broker_rng.random((brokers, 2))
    if layout == "plane":
        return Positions(user_rng.random((users, 2)), at_brokers)
    centres = user_rng.random((-(-users // _TOWN_USERS), 2))
    town = user_rng.integers(len(centres), size=users)
    at_users = centres[town] + _TOWN_SPREAD * user_rng.standard_normal((users, 2))
    # What falls beyond the edge is reflected back onto the square.
    at_users = np.abs(at_users)
    return Positions(1.0 - np.abs(1.0 - at_users), at_brokers)


def _broker_count(users: int, brokers: int | None, sites: Sites | None, at: Sequence[str]) -> int:
    """Return how many brokers there are: as many as are named, or one for every hundred users."""
    if at:
        if brokers is not None:
            raise BadInput("brokers", "cannot be combined with 'at', which names them")
        return len(at)
    if brokers is None:
        brokers = max(1, users // 100)
        brokers = brokers if sites is None else min(brokers, len(sites.names))
    return brokers


def _standing(
    users: int, brokers: int, sites: Sites | None, at: Sequence[str], rng: np.random.Generator
) -> Standing | None:
    """Return where users and brokers stand in a network, if there is one."""
    if sites is None:
        return None
    broker_rng, user_rng = rng.spawn(2)
    chosen = sites.chosen(brokers, at, broker_rng, noun="brokers")
    return Standing(sites, user_rng.integers(len(sites.names), size=users), chosen)


def _prices(
    access: FloatArray, core: FloatArray, core_ratio: float
) -> tuple[FloatArray, FloatArray]:
    """Return access prices with mean 1, and core prices with mean `core_ratio`."""
    access *= 1.0 / max(float(access.mean()), 1e-9)
    # Rounded prices take half as much room in a file. Those between brokers stay as they
    # are: rounded, they would break the triangle inequality.
    np.round(access, _ACCESS_DIGITS, out=access)
    count = len(core)
    mean = float(core.sum()) / max(count * (count - 1), 1)
    core *= core_ratio / max(mean, 1e-9)
    return access, core


def _distances(some: FloatArray, others: FloatArray) -> FloatArray:
    distances = np.empty((len(some), len(others)))
    block = max(1, _BLOCK_CELLS // len(others))
    for first in range(0, len(some), block):
        last = first + block
        across = some[first:last, 0, None] - others[None, :, 0]
        along = some[first:last, 1, None] - others[None, :, 1]
        np.hypot(across, along, out=distances[first:last])
    return distances


def _publications(
    users: int, channels: int, dimensions: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return what users publish as (user, cell, rate), one unit per user on average."""
    # A quadratic function is fixed by its values at the ends and in the middle.
    at = rng.uniform(-1.0, 1.0, size=(dimensions, users, 3))
    publishers, cells, rates = [], [], []
    block = max(1, _BLOCK_CELLS // channels**dimensions)
    for first in range(0, users, block):
        table = np.ones((len(at[0, first : first + block]), 1))
        for values in at[:, first : first + block]:
            side = quadratic_cells(values, channels)
            table = (table[:, :, None] * side[:, None, :]).reshape(len(table), -1)
        user, cell = np.nonzero(table)
        publishers.append(user + first)
        cells.append(cell)
        rates.append(table[user, cell])
    rate = np.concatenate(rates)
    total = float(rate.sum())
    if total > 0.0:
        rate *= users / total
    return np.concatenate(publishers), np.concatenate(cells), rate


def _interests(
    users: int,
    channels: int,
    dimensions: int,
    interests: tuple[int, int] | None,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Return what users want as (user, cell): an interval, or a box in several dimensions."""
    if interests is None:
        ends = np.sort(rng.random((dimensions, users, 2)), axis=2)
        # All cells that the interval touches.
        first = (ends[:, :, 0] * channels).astype(np.int64)
        last = (ends[:, :, 1] * channels).astype(np.int64) + 1
    else:
        span = rng.integers(interests[0], interests[1] + 1, size=(dimensions, users))
        first = rng.integers(channels - span + 1)
        last = first + span
    within = np.arange(channels)[None, :]
    readers, cells = [], []
    block = max(1, _BLOCK_CELLS // channels**dimensions)
    for start in range(0, users, block):
        part = slice(start, start + block)
        table: BoolArray = np.ones((len(first[0, part]), 1), dtype=np.bool_)
        for axis in range(dimensions):
            side = (within >= first[axis, part, None]) & (within < last[axis, part, None])
            table = (table[:, :, None] & side[:, None, :]).reshape(len(table), -1)
        user, cell = np.nonzero(table)
        readers.append(user + start)
        cells.append(cell)
    return np.concatenate(readers), np.concatenate(cells)


def _demand(
    cells: int,
    published: tuple[IntArray, IntArray, FloatArray],
    wanted: tuple[IntArray, IntArray],
) -> float:
    """Return the traffic of all users together: what they publish, and what they are sent."""
    publisher, channel, rate = published
    totals = np.bincount(channel, weights=rate, minlength=cells)
    readers = np.bincount(wanted[1], minlength=cells)
    # Nobody is sent what it published itself.
    own = np.isin(publisher * cells + channel, wanted[0] * cells + wanted[1])
    return float(rate.sum() + totals @ readers - rate[own].sum())
