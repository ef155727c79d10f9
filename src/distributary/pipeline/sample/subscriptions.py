"""Subscriptions: filters, devices, and tolerances for those who follow quotes."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np

from distributary.arrays import BoolArray, IntArray
from distributary.pipeline.sample.counter_rng import CounterRng, picked
from distributary.pipeline.sample.devices import user_profiles
from distributary.pipeline.sample.events import KIND_NAMES, KIND_SHARES, QUOTE
from distributary.pipeline.sample.interests import INTERESTS, interest_filters
from distributary.pipeline.sample.network import homeless
from distributary.pipeline.sample.sizes import SampleSizes
from distributary.pipeline.sample.texts import joined, object_names, subscription_names, user_names

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["follower_count", "subscriptions_block"]

_INTEREST_SHARES = np.array([0.25, 0.25, 0.15, 0.15, 0.10, 0.10])
# Followers are at most this share of subscriptions, of pairs of a server and an object, and
# of the matches that are asked for: the rest is for the other filters.
_FOLLOWERS_MAX = 0.2
_PAIRS_MAX = 0.5
_MATCHES_MAX = 0.8
_PRICE = "/price"


def follower_count(sizes: SampleSizes) -> int:
    """Return how many subscriptions follow a quoted object."""
    by_matches = _MATCHES_MAX * sizes.matches * sizes.objects / float(KIND_SHARES[QUOTE])
    by_pairs = _PAIRS_MAX * sizes.server_count * sizes.objects
    return math.floor(min(_FOLLOWERS_MAX * sizes.subscriptions, by_pairs, by_matches))


def subscriptions_block(sizes: SampleSizes, seed: int, rows: IntArray) -> pa.RecordBatch:
    """Return some rows of the table `subscriptions`.

    About `sizes.matches` of all of them match an event, on average: the more there are, the
    narrower they are.
    """
    import pyarrow as pa

    rng = CounterRng(seed, "subscriptions")
    followers = follower_count(sizes)
    # Followers are spread evenly among the rows, and each knows which of them it is.
    before = rows * followers // sizes.subscriptions
    follows = (rows + 1) * followers // sizes.subscriptions > before
    servers, objects = _pairs(sizes, before)
    users = np.where(
        follows,
        _users_at(sizes, seed, rng, rows, servers),
        rng.below("user", rows, sizes.users),
    )
    return pa.record_batch(
        {
            "subscription_id": subscription_names(rows),
            "user": user_names(users),
            "filters": _filters(sizes, seed, rng, rows, follows, objects),
            "profile": user_profiles(seed, users),
            "tolerance": _tolerances(rng, rows, follows),
        }
    )


def _filters(
    sizes: SampleSizes,
    seed: int,
    rng: CounterRng,
    rows: IntArray,
    follows: BoolArray,
    objects: IntArray,
) -> pa.Array:
    import pyarrow as pa

    followers = follower_count(sizes)
    followed = followers * float(KIND_SHARES[QUOTE]) / sizes.objects
    wanted = (sizes.matches - followed) / (sizes.subscriptions - followers)
    kinds = np.where(follows, -1, picked(rng.uniform("kind", rows), _INTEREST_SHARES))
    placed = [rows[follows]]
    written = [
        joined(
            f'[{{"exact":{{"type":"{KIND_NAMES[QUOTE]}","subject":"',
            object_names(objects[follows]),
            '"}}]',
        )
    ]
    for number, kind in enumerate(INTERESTS):
        some, filters = interest_filters(seed, rng, kind, rows[kinds == number], wanted=wanted)
        placed.append(some)
        written.append(filters)
    order = np.argsort(np.concatenate(placed), kind="stable")
    return pa.concat_arrays(written).take(pa.array(order))


def _pairs(sizes: SampleSizes, followers: IntArray) -> tuple[IntArray, IntArray]:
    """Return a server and an object for each follower; no two have the same."""
    count = sizes.server_count * sizes.objects
    # Steps of about the golden section, without a common divisor, visit all pairs evenly.
    step = max(1, round(count * 0.618))
    while math.gcd(step, count) > 1:
        step += 1
    pairs = followers * step % count
    return pairs % sizes.server_count, pairs // sizes.server_count


def _users_at(
    sizes: SampleSizes, seed: int, rng: CounterRng, rows: IntArray, servers: IntArray
) -> IntArray:
    """Return a user at home at each of the servers."""
    present = (sizes.users - servers - 1) // sizes.brokers + 1
    users = servers + sizes.brokers * rng.below("user", rows, present)
    return np.where(homeless(sizes, seed, users), servers, users)


def _tolerances(rng: CounterRng, rows: IntArray, follows: BoolArray) -> pa.Array:
    """Return tolerances of some cents, or of some thousandths; null for who follows nothing."""
    import pyarrow as pa
    import pyarrow.compute as compute

    amounts = [("absolute", cents / 100) for cents in range(1, 100)]
    amounts += [("relative", parts / 1000) for parts in range(1, 21)]
    known = pa.array(
        [
            json.dumps({"value": _PRICE, "divergence": name, "amount": amount})
            for name, amount in amounts
        ]
    )
    chosen = known.take(pa.array(rng.below("tolerance", rows, len(amounts))))
    return compute.if_else(follows, chosen, pa.scalar(None, pa.string()))
