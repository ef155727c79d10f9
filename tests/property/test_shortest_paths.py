"""Delays through a network are those of the quickest path, whatever the network."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.shortest_paths import relaxed_lengths

from distributary.topology.network import Network


@st.composite
def weighted_links(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, float]]]:
    """Draw a network that may fall apart, with loops, parallel and free links."""
    count = draw(st.integers(1, 12))
    nodes = st.integers(0, count - 1)
    lengths = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, 7.0])
    return count, draw(st.lists(st.tuples(nodes, nodes, lengths), max_size=30))


def network_of(count: int, links: list[tuple[int, int, float]]) -> Network:
    return Network(
        tuple(f"v{v}" for v in range(count)),
        np.array([link[:2] for link in links], dtype=np.int64).reshape(-1, 2),
        np.array([length for _, _, length in links], dtype=np.float64),
    )


@given(weighted_links(), st.data())
def test_delays_are_those_of_the_shortest_paths(
    drawn: tuple[int, list[tuple[int, int, float]]], data: st.DataObject
) -> None:
    count, links = drawn
    chosen = data.draw(st.lists(st.integers(0, count - 1), min_size=1, unique=True))
    delays = network_of(count, links).delays_between(np.array(chosen))
    for row, source in zip(delays, chosen, strict=True):
        lengths = relaxed_lengths(count, links, source)
        assert row.tolist() == [lengths[target] for target in chosen]


@given(weighted_links())
def test_the_largest_part_hangs_together_and_no_other_is_larger(
    drawn: tuple[int, list[tuple[int, int, float]]],
) -> None:
    count, links = drawn
    part = network_of(count, links).largest_part.tolist()
    sizes = []
    for v in range(count):
        reached = [w for w, d in enumerate(relaxed_lengths(count, links, v)) if d < np.inf]
        sizes.append(len(reached))
        if v in part:
            assert reached == part
    assert len(part) == max(sizes)
