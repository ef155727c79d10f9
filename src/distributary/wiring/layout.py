"""Places for users and brokers of which nothing but prices is known."""

from __future__ import annotations

import math

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.wiring.positions import Positions
from distributary.wiring.problem import WiringProblem

__all__ = ["around_places", "clear_of_brokers", "metric_places", "positions_from_prices"]

_LANDMARKS_MAX = 300
_GOLDEN_ANGLE = math.pi * (3.0 - math.sqrt(5.0))
# How far from a broker without distance to others its users are spread out.
_SPREAD = 0.06
# How far from its broker a user stands at least, as a share of the whole picture: the largest
# square with its ring reaches 0.026, a user's dot 0.004, and the picture may grow by 7 %.
_CLEARANCE = 0.033
_APART = 0.038


def positions_from_prices(problem: WiringProblem, users: IntArray) -> Positions:
    """Return places whose distances are about in proportion to prices.

    Brokers stand where classical multidimensional scaling of the prices between them puts
    them, by way of some hundred landmarks if there are many (de Silva and Tenenbaum). A
    user stands among the brokers, the nearer to one the lower the price to it.

    The places of users are in the order of `users`, who need one.
    """
    brokers = metric_places(problem.core_prices)
    extent = float(np.ptp(brokers, axis=0).max()) if len(brokers) > 1 else 0.0
    prices = problem.access_prices[users]
    least = prices.min(axis=1, keepdims=True)
    # Far brokers count for little: twice the price, an eighth of the weight.
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(least > 0.0, (least / prices) ** 3, (prices == 0.0).astype(np.float64))
    places = (weights @ brokers) / weights.sum(axis=1, keepdims=True)
    # Users with the same prices would stand on one spot: they are spread like the seeds of
    # a sunflower, over a disc that is small beside the whole.
    turns = _GOLDEN_ANGLE * np.arange(len(users))
    spread = _SPREAD * (extent if extent > 0.0 else 1.0)
    radii = spread * np.sqrt((np.arange(len(users)) + 0.5) / max(len(users), 1))
    places = places + np.column_stack([radii * np.cos(turns), radii * np.sin(turns)])
    return Positions(places, brokers)


def clear_of_brokers(places: Positions, broker_of: IntArray) -> Positions:
    """Return the places with users moved away from their brokers, whose squares hide them.

    Only users who are near their broker move, and none further than it takes: their order
    by distance stays.
    """
    everything = np.concatenate([places.users, places.brokers])
    least = _CLEARANCE * float(np.ptp(everything, axis=0).max())
    homes = places.brokers[broker_of]
    away = places.users - homes
    distances = np.hypot(away[:, 0], away[:, 1])
    turns = _GOLDEN_ANGLE * np.arange(len(away))
    anywhere = np.column_stack([np.cos(turns), np.sin(turns)])
    ways = np.where(
        (distances > 0.0)[:, None], away / np.maximum(distances, 1e-300)[:, None], anywhere
    )
    # From 0 to twice the least becomes from the least to twice the least.
    moved = np.maximum(distances, least + 0.5 * distances)
    return Positions(homes + moved[:, None] * ways, places.brokers)


def around_places(
    places: Positions, broker_of: IntArray, together: IntArray, *, apart: float = _APART
) -> Positions:
    """Return the places with those moved aside where several users stand, or one at a broker.

    Users of one place who belong to different brokers stand around it, those of each broker
    towards it. Whoever has a place of its own stays there. `apart` is how far they are moved, as a
    share of the whole picture.
    """
    everything = np.concatenate([places.users, places.brokers])
    extent = float(np.ptp(everything, axis=0).max())
    aside = apart * (extent if extent > 0.0 else 1.0)
    moved = places.users.copy()
    taken = {tuple(point) for point in places.brokers.tolist()}
    here: dict[tuple[float, ...], int] = {}
    for i, point in enumerate(places.users.tolist()):
        turn = here[tuple(point)] = here.get(tuple(point), 0) + 1
        if together[i] == 1 and turn == 1 and tuple(point) not in taken:
            continue
        way = places.brokers[broker_of[i]] - places.users[i]
        # At its own broker a group stands below: names are written to the right.
        angle = math.atan2(way[1], way[0]) if way.any() else -0.5 * math.pi
        moved[i] += aside * np.array([math.cos(angle), math.sin(angle)])
    return Positions(moved, places.brokers)


def metric_places(prices: FloatArray) -> FloatArray:
    """Return a place on the plane for every row of a metric."""
    count = len(prices)
    chosen = np.unique(np.linspace(0, count - 1, min(count, _LANDMARKS_MAX)).astype(np.int64))
    squared = prices[np.ix_(chosen, chosen)] ** 2
    means = squared.mean(axis=0)
    centred = -0.5 * (squared - means[:, None] - means[None, :] + means.mean())
    values, vectors = np.linalg.eigh(centred)
    values, vectors = values[::-1][:2], vectors[:, ::-1][:, :2]
    # The sign of an eigenvector is arbitrary: its largest entry is made positive.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    roots = np.sqrt(np.maximum(values, 0.0))
    # Without a second dimension everything stands on a line.
    apart = roots > 1e-6 * max(float(roots.max()), 1e-300)
    inverse = np.where(apart, signs / np.where(apart, roots, 1.0), 0.0)
    places = -0.5 * (prices[:, chosen] ** 2 - means) @ (vectors * inverse)
    if places.shape[1] < 2:
        places = np.column_stack([places, np.zeros(count)])
    return np.asarray(places - places.mean(axis=0), dtype=np.float64)
