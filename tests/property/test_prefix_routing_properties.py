"""Prefix routing against its reference, and the promises that the protocol rests on."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import prefix_routing as reference

from distributary.arrays import FloatArray
from distributary.topology import RoutingTables, shared_prefix_length

# Three digits from few values make long shared prefixes and empty entries common.
_IDENTIFIERS = st.text(alphabet="01237af", min_size=3, max_size=3)
_KEYS = st.text(alphabet=reference.DIGITS, min_size=3, max_size=3)


@st.composite
def overlays(draw: st.DrawFn) -> tuple[RoutingTables, FloatArray]:
    """Brokers with arbitrary, also asymmetric and equal, delays between them."""
    identifiers = draw(st.lists(_IDENTIFIERS, min_size=1, max_size=20, unique=True))
    count = len(identifiers)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    distinct_delays = draw(st.sampled_from([2, 5, 1000]))
    delays = rng.integers(distinct_delays, size=(count, count)).astype(np.float64)
    np.fill_diagonal(delays, 0.0)
    return RoutingTables.build(identifiers, delays), delays


def delays_from(tables: RoutingTables, delays: FloatArray, owner: str) -> dict[str, float]:
    row = delays[tables.index_of(owner)]
    return dict(zip(tables.identifiers, row.tolist(), strict=True))


def hop_count_max(tables: RoutingTables) -> int:
    pairs = combinations(tables.identifiers, 2)
    return 1 + max((shared_prefix_length(one, other) for one, other in pairs), default=-1)


@given(overlays())
def test_every_entry_is_the_closest_broker_with_the_prefix_and_digit(
    overlay: tuple[RoutingTables, FloatArray],
) -> None:
    tables, delays = overlay
    assert reference.named_entries(tables) == {
        owner: reference.table(owner, delays_from(tables, delays, owner))
        for owner in tables.identifiers
    }


@given(overlays(), st.lists(_KEYS, min_size=1, max_size=5))
def test_every_start_finds_the_one_root_of_a_key_in_few_hops(
    overlay: tuple[RoutingTables, FloatArray], keys: list[str]
) -> None:
    tables, _ = overlay
    named = reference.named_entries(tables)
    for key in keys:
        expected = reference.root_of_key(tables.identifiers, key)
        assert tables.root_of_key(key) == expected
        for start in tables.identifiers:
            path = reference.walk(named, start, key)
            assert path[-1] == expected
            assert len(path) - 1 <= hop_count_max(tables)


@given(overlays())
def test_routes_end_at_their_target_in_few_hops_and_match_the_reference(
    overlay: tuple[RoutingTables, FloatArray],
) -> None:
    tables, _ = overlay
    named = reference.named_entries(tables)
    for start in tables.identifiers:
        for end in tables.identifiers:
            path = tables.route(start=start, end=end)
            assert path == reference.route(named, start=start, end=end)
            assert len(path) - 1 <= hop_count_max(tables)


@given(overlays(), st.data())
def test_the_union_of_routes_is_a_tree_of_exactly_their_links(
    overlay: tuple[RoutingTables, FloatArray], data: st.DataObject
) -> None:
    tables, _ = overlay
    root = data.draw(st.sampled_from(tables.identifiers))
    members = data.draw(st.lists(st.sampled_from(tables.identifiers), max_size=10))
    parents = tables.tree_of(root, members)
    links: set[tuple[str, str]] = set()
    for member in members:
        path = tables.route(start=root, end=member)
        links.update(zip(path[1:], path, strict=False))
    assert {(child, parent) for child, parent in parents.items() if parent is not None} == links
    assert [broker for broker, parent in parents.items() if parent is None] == [root]
    for broker in parents:
        seen = {broker}
        here = broker
        while (above := parents[here]) is not None:
            assert above not in seen
            seen.add(above)
            here = above
        assert here == root


@given(overlays(), st.data())
def test_brokers_that_split_receivers_on_their_own_unfold_the_same_tree(
    overlay: tuple[RoutingTables, FloatArray], data: st.DataObject
) -> None:
    tables, _ = overlay
    root = data.draw(st.sampled_from(tables.identifiers))
    members = data.draw(st.lists(st.sampled_from(tables.identifiers), max_size=10))
    named = reference.named_entries(tables)
    unfolded: dict[str, str | None] = {root: None}
    waiting = [(root, set(members))]
    while waiting:
        broker, below = waiting.pop()
        shares: dict[str, set[str]] = {}
        for receiver in below - {broker}:
            child = reference.next_hop(broker, named[broker], receiver)
            assert child is not None
            shares.setdefault(child, set()).add(receiver)
        for child, receivers in shares.items():
            assert child not in unfolded
            unfolded[child] = broker
            waiting.append((child, receivers))
    assert unfolded == tables.tree_of(root, members)
