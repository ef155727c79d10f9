"""What the story begins with: tables of a day, of people, of brokers and of prices.

Publications and devices are those of `distributary pipeline sample`. Two things are as they
have to be for the wiring to matter, and everywhere else the nearest broker is as good as any
plan: interests are narrow, and links between brokers are dear. Nobody follows more than three
of 256 places, wherever in the country they are, and traffic between brokers costs four times as
much over the same distance as traffic to a user.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from distributary.content import ContentSpace
from distributary.pipeline.sample.devices import user_profiles
from distributary.pipeline.sample.events import PLACE_SHARES, SOURCES
from distributary.pipeline.sample.network import (
    access_costs_block,
    brokers_block,
    core_costs_block,
    overlay_block,
    users_block,
)
from distributary.pipeline.sample.publications import EXCHANGE, publications_block
from distributary.pipeline.sample.quotes import object_quotes
from distributary.pipeline.sample.sizes import SampleSizes
from distributary.pipeline.sample.subscriptions import subscriptions_block
from distributary.pipeline.sample.texts import user_names
from distributary.pipeline.store import Store

__all__ = ["CORE_PRICE", "PLACES_MAX", "SIZES", "SPACE", "write_tables"]

SIZES = SampleSizes(
    publications=5_000, subscriptions=600, users=300, brokers=8, objects=8, seconds=900
)
SPACE = ContentSpace.parse({"dimensions": [{"name": "source", "buckets": 256}]})
"""Publications come from places, and so does what people are interested in."""

PLACES_MAX = 3
CORE_PRICE = 4.0


def write_tables(data: Path, *, seed: int) -> None:
    """Write the tables that the pipeline begins with.

    Parameters
    ----------
    data
        The folder.
    seed
        The same seed gives the same rows.
    """
    users, brokers = np.arange(SIZES.users), np.arange(SIZES.brokers)
    tables = {
        "publications": publications_block(SIZES, seed, np.arange(SIZES.publications)),
        "subscriptions": _subscriptions(seed),
        "users": users_block(SIZES, seed, users),
        "brokers": brokers_block(SIZES, seed, brokers),
        "access_costs": access_costs_block(SIZES, seed, users),
        "core_costs": _dear(core_costs_block(SIZES, seed, brokers)),
        "overlay": overlay_block(SIZES, seed, brokers),
    }
    quotes = [batch for k in range(SIZES.objects) for batch in object_quotes(SIZES, seed, k)]
    for name, batches in {**{k: [v] for k, v in tables.items()}, "quotes": quotes}.items():
        Store(str(data)).write(name, pa.Table.from_batches(batches))


def _subscriptions(seed: int) -> pa.RecordBatch:
    """Return what people are interested in, and the followers of quotes of the sample."""
    sample = subscriptions_block(SIZES, seed, np.arange(SIZES.subscriptions))
    followers = sample.filter(compute.is_valid(sample["tolerance"])).to_pylist()
    for row in followers:
        filters = json.loads(row["filters"])
        row["filters"] = json.dumps([{"exact": {"source": EXCHANGE}}, *filters])
    rng = np.random.default_rng(seed)
    users = np.arange(SIZES.users)
    people = zip(user_names(users).to_pylist(), user_profiles(seed, users).to_pylist(), strict=True)
    rows: list[dict[str, object]] = []
    for user, profile in people:
        # Some places are far more popular than others.
        count = int(rng.integers(1, PLACES_MAX + 1))
        for place in rng.choice(len(SOURCES), count, replace=False, p=PLACE_SHARES):
            rows.append(
                {
                    "subscription_id": f"place-{len(rows):04d}",
                    "user": user,
                    "filters": json.dumps(_filters(SOURCES[place], len(rows))),
                    "profile": profile,
                    "tolerance": None,
                }
            )
    return pa.RecordBatch.from_pylist(rows + followers, schema=sample.schema)


def _filters(source: str, number: int) -> list[object]:
    """Return what somebody wants to know about a place; people differ in that."""
    place: dict[str, object] = {"exact": {"source": source}}
    severe: dict[str, object] = {"not": {"exact": {"severity": "1"}}}
    kinds: tuple[list[object], ...] = (
        [place],
        [place, {"prefix": {"type": "notice."}}],
        [{"sql": f"source = '{source}' AND severity >= 2"}],
        [place, {"any": [{"suffix": {"type": ".flood"}}, severe]}],
    )
    return kinds[number % len(kinds)]


def _dear(core_costs: pa.RecordBatch) -> pa.RecordBatch:
    costs = [[CORE_PRICE * cost for cost in row] for row in core_costs["costs"].to_pylist()]
    return core_costs.set_column(1, "costs", pa.array(costs, core_costs.schema.field(1).type))
