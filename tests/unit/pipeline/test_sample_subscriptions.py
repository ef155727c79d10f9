"""Sampled subscriptions: sound, of every kind, and about as many per event as asked for."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distributary.content.subscription import Subscription
from distributary.filters.filter import Filter
from distributary.filters.index import Index
from distributary.pipeline.sample import SampleSizes
from distributary.pipeline.sample.devices import DEVICES
from distributary.pipeline.sample.ladders import Ladder
from distributary.pipeline.sample.network import users_block
from distributary.pipeline.sample.publications import publications_block
from distributary.pipeline.sample.subscriptions import follower_count, subscriptions_block

EVENTS = 4_000


def table(sizes: SampleSizes, seed: int = 3) -> pa.Table:
    blocks = range(0, sizes.subscriptions, 8_192)
    return pa.Table.from_batches(
        subscriptions_block(sizes, seed, np.arange(first, min(first + 8_192, sizes.subscriptions)))
        for first in blocks
    )


def kind_of(filters: str) -> str:
    signs = {
        '"quote"': "follower",
        '"sql"': "sql",
        '"any"': "mixed",
        "/category": "reading",
        '"range"': "area",
        '"prefix"': "tile",
    }
    return next((kind for sign, kind in signs.items() if sign in filters), "exact")


KINDS = {"follower", "sql", "mixed", "reading", "area", "tile", "exact"}


def matches_by_kind(subscriptions: int, seed: int) -> Counter[str]:
    sizes = SampleSizes(publications=EVENTS, subscriptions=subscriptions)
    made = table(sizes, seed)
    found = Index.from_arrow(made).match_batch(publications_block(sizes, seed, np.arange(EVENTS)))
    kinds = {
        name: kind_of(filters)
        for name, filters in zip(
            made["subscription_id"].to_pylist(), made["filters"].to_pylist(), strict=True
        )
    }
    return Counter(kinds[name] for name in found["subscription_id"].to_pylist())


@pytest.mark.parametrize(
    "subscriptions",
    [200, 1_000, 10_000, pytest.param(100_000, marks=pytest.mark.full)],
)
def test_an_event_matches_as_many_as_asked_for_whatever_their_number(subscriptions: int) -> None:
    matches = matches_by_kind(subscriptions, seed=5)
    assert matches.total() / EVENTS == pytest.approx(10.0, rel=0.2)
    assert set(matches) == KINDS
    assert min(matches.values()) > 50


def test_every_subscription_is_one_that_could_have_been_sent() -> None:
    rows = table(SampleSizes(subscriptions=1_500)).to_pylist()
    for row in rows:
        document = {
            "id": row["subscription_id"],
            "user": row["user"],
            "filters": json.loads(row["filters"]),
            "profile": json.loads(row["profile"] or "null"),
            "tolerance": json.loads(row["tolerance"] or "null"),
        }
        subscription = Subscription.parse(document)
        Filter.parse(list(subscription.filters))
        assert (subscription.tolerance is not None) == (kind_of(row["filters"]) == "follower")
    assert {kind_of(row["filters"]) for row in rows} == KINDS
    assert len({row["subscription_id"] for row in rows}) == len(rows)
    assert len({row["profile"] for row in rows}) == len(DEVICES)


def test_rows_do_not_depend_on_the_rows_made_with_them() -> None:
    sizes = SampleSizes(subscriptions=900)
    parts = [
        subscriptions_block(sizes, 1, np.arange(begin, end))
        for begin, end in ((0, 1), (1, 417), (417, 418), (418, 900))
    ]
    whole = subscriptions_block(sizes, 1, np.arange(900))
    whole.validate(full=True)
    assert pa.Table.from_batches(parts).combine_chunks().to_batches()[0].equals(whole)


@pytest.mark.parametrize(
    "sizes",
    [
        SampleSizes(subscriptions=3_000, brokers=32, servers=8, objects=10),
        SampleSizes(subscriptions=500, brokers=64, users=20, objects=7),
        SampleSizes(subscriptions=40, brokers=1, users=1, objects=1),
    ],
)
def test_followers_are_at_home_at_servers_and_no_pair_is_followed_twice(
    sizes: SampleSizes,
) -> None:
    homes = users_block(sizes, 3, np.arange(sizes.users))
    home_of = dict(zip(homes["user"].to_pylist(), homes["broker"].to_pylist(), strict=True))
    pairs = [
        (home_of[row["user"]], json.loads(row["filters"])[0]["exact"]["subject"])
        for row in table(sizes).to_pylist()
        if row["tolerance"] is not None
    ]
    assert len(pairs) == follower_count(sizes) == len(set(pairs))
    servers = {f"broker-{number:04d}" for number in range(sizes.server_count)}
    assert {server for server, _ in pairs} <= servers
    if len(pairs) > 50:
        assert {server for server, _ in pairs} == servers
        assert len({name for _, name in pairs}) == sizes.objects


@given(st.floats(1e-7, 1.0), st.booleans())
def test_the_rungs_of_a_ladder_have_the_mean_that_is_wanted(wanted: float, shrinks: bool) -> None:
    ladder = Ladder((0.5, 0.1, 0.004), shrinks=shrinks)
    evenly = (np.arange(1_000) + 0.5) / 1_000
    rungs = ladder.rungs(wanted, evenly)
    shares = np.array(ladder.shares)[rungs] * np.where(rungs == 2, ladder.width(wanted), 1.0)
    reachable = min(0.5, wanted if shrinks else max(wanted, 0.004))
    assert shares.mean() == pytest.approx(reachable, rel=0.05, abs=5e-4 if wanted > 0.004 else 0)
