"""The root of a key, found without tables, is where every walk over tables ends."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.broker_overlays import hops_max
from tests.reference import prefix_routing as reference

from distributary.broker.membership.membership import Routes
from distributary.topology import RoutingTables, root_among

# Three digits from few values make long shared prefixes and empty entries common.
_IDENTIFIERS = st.lists(
    st.text(alphabet="01237af", min_size=3, max_size=3), min_size=1, max_size=24, unique=True
).map(sorted)
_KEYS = st.text(alphabet=reference.DIGITS, min_size=3, max_size=3)


@given(_IDENTIFIERS, _KEYS)
def test_it_is_the_root_that_tables_and_the_definition_give(
    identifiers: list[str], key: str
) -> None:
    tables = RoutingTables.build(identifiers, np.zeros((len(identifiers),) * 2))
    root = root_among(identifiers, key)
    assert root == tables.root_of_key(key)
    assert root == reference.root_of_key(identifiers, key)


@given(_IDENTIFIERS, _KEYS, st.integers(0, 2**32))
def test_every_walk_ends_there_within_the_promised_hops(
    identifiers: list[str], key: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    routes = {
        owner: Routes(
            owner,
            tuple(identifiers),
            {other: int(rng.integers(4)) for other in identifiers},
        )
        for owner in identifiers
    }
    bound = hops_max(identifiers)
    for start in identifiers:
        here, hops = start, 0
        while (following := routes[here].next_hop(key)) is not None:
            here, hops = following, hops + 1
            assert hops <= bound
        assert here == root_among(identifiers, key)


@given(_IDENTIFIERS, _KEYS, st.integers(0, 2**32))
def test_routes_are_those_of_a_routing_table(identifiers: list[str], key: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    owner = identifiers[int(rng.integers(len(identifiers)))]
    delays = {other: int(rng.integers(4)) for other in identifiers if other != owner}
    routes = Routes(owner, tuple(identifiers), delays)
    table = reference.table(owner, {owner: 0.0, **delays})
    for target in (key, *identifiers):
        expected = reference.next_hop(owner, table, target)
        assert routes.next_hop(target) == expected
        assert routes.next_hop(target) == expected, "remembered"
        assert routes.root_of(target) == root_among(identifiers, target)


@given(_IDENTIFIERS, _KEYS, st.integers(0, 2**32))
def test_one_that_leaves_passes_on_to_the_root_among_the_others(
    identifiers: list[str], key: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    leaver = "123"
    others = tuple(identifier for identifier in identifiers if identifier != leaver)
    if not others:
        return
    delays = {other: int(rng.integers(4)) for other in others}
    routes = Routes(leaver, others, delays)
    following = routes.next_hop(key)
    assert following in others
    assert routes.root_of(key) == root_among(others, key)
    # The hop settles at least the digits that the leaver shares with the root.
    walk = Routes(following, others, dict.fromkeys(others, 0))
    assert walk.root_of(key) == routes.root_of(key)
