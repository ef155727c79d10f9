"""The compiled Steiner tree approximation against the same greedy on an explicit graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import charikar as reference
from tests.reference.conversions import shortest_chain_costs
from tests.strategies import COSTS, conversion_costs

from distributary.arrays import BoolArray
from distributary.placement.chains import cheapest_chains
from distributary.placement.charikar import LayeredGraph, best_steiner_tree, steiner_tree
from distributary.placement.plan import NOT_MADE, Plan


@st.composite
def layered_graphs(draw: st.DrawFn, *, ties: bool) -> tuple[LayeredGraph, BoolArray, BoolArray]:
    """Draw a graph, sources and terminals; without ties the greedy has no choice anywhere."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m = draw(st.integers(2, 5))
    node_count = draw(st.integers(1, 6))
    if ties:
        direct = draw(conversion_costs(formats=m))
        sending = np.array([[draw(COSTS) for _ in range(m)] for _ in range(node_count)])
        weights = np.array([draw(st.sampled_from([0.0, 1.0, 2.0])) for _ in range(node_count)])
    else:
        direct = rng.uniform(1.0, 10.0, (m, m))
        direct[rng.random((m, m)) < draw(st.sampled_from([0.0, 0.4]))] = np.inf
        np.fill_diagonal(direct, np.inf)
        sending = rng.uniform(1.0, 10.0, (node_count, m))
        weights = rng.uniform(0.5, 2.0, node_count)
    parents = np.array([-1, *(int(rng.integers(v)) for v in range(1, node_count))])
    chains = cheapest_chains(direct)
    sources = np.zeros(m, dtype=np.bool_)
    sources[rng.choice(m, size=draw(st.integers(1, 2)), replace=False)] = True
    terminals = (rng.random((node_count, m)) < 0.4) & chains.makeable_from(sources)
    return LayeredGraph(chains, parents, sending, weights), sources, terminals


def require_tree(graph: LayeredGraph, tree: Plan, sources: BoolArray, terminals: BoolArray) -> None:
    """Assert that every vertex of the tree has one predecessor and leads back to a source."""
    made = tree.made_from != NOT_MADE
    assert not (tree.receives & made).any()
    assert not (tree.receives[0] | made[0])[sources].any()
    for v, k in np.argwhere(terminals | made | tree.receives).tolist():
        seen = set()
        while v > 0 or not sources[k]:
            assert (v, k) not in seen
            seen.add((v, k))
            if tree.receives[v, k]:
                v = int(graph.parents[v])
            else:
                assert np.isfinite(graph.chains.direct[tree.made_from[v, k], k])
                k = int(tree.made_from[v, k])


@pytest.mark.parametrize("level", [1, 2])
@settings(max_examples=60, deadline=None)
@given(drawn=layered_graphs(ties=False))
def test_without_ties_the_kernels_find_the_tree_of_the_explicit_greedy(
    level: int, drawn: tuple[LayeredGraph, BoolArray, BoolArray]
) -> None:
    graph, sources, terminals = drawn
    tree = steiner_tree(graph, sources=sources, terminals=terminals, level=level)
    expected = reference.steiner_cost(
        graph,
        np.flatnonzero(sources).tolist(),
        [(v, k) for v, k in np.argwhere(terminals).tolist()],
        level,
    )
    assert graph.cost(tree) == pytest.approx(expected)


@pytest.mark.parametrize("level", [1, 2])
@settings(max_examples=60, deadline=None)
@given(drawn=layered_graphs(ties=True))
def test_with_ties_and_free_edges_the_result_is_still_a_tree(
    level: int, drawn: tuple[LayeredGraph, BoolArray, BoolArray]
) -> None:
    graph, sources, terminals = drawn
    tree = steiner_tree(graph, sources=sources, terminals=terminals, level=level)
    require_tree(graph, tree, sources, terminals)


@settings(max_examples=30, deadline=None)
@given(drawn=layered_graphs(ties=True))
def test_the_better_of_both_levels_costs_no_more_than_either(
    drawn: tuple[LayeredGraph, BoolArray, BoolArray],
) -> None:
    graph, sources, terminals = drawn
    best = graph.cost(best_steiner_tree(graph, sources=sources, terminals=terminals))
    for level in (1, 2):
        tree = steiner_tree(graph, sources=sources, terminals=terminals, level=level)
        assert best <= graph.cost(tree)


@settings(max_examples=60, deadline=None)
@given(direct=st.integers(1, 6).flatmap(lambda count: conversion_costs(formats=count)))
def test_chains_cost_the_least_and_their_predecessors_lead_back_to_the_start(
    direct: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> None:
    chains = cheapest_chains(direct)
    np.testing.assert_allclose(chains.costs, shortest_chain_costs(direct))
    for i, j in np.argwhere(np.isfinite(chains.costs)).tolist():
        total, k, steps = 0.0, j, 0
        while k != i:
            assert steps < len(direct)
            before = int(chains.before[i, k])
            total, k, steps = total + direct[before, k], before, steps + 1
        assert total == pytest.approx(chains.costs[i, j])
