"""Hypothesis strategies for small problems with every oddity the model allows."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from distributary.arrays import BoolArray, FloatArray
from distributary.content import AdaptationGraph
from distributary.placement.problem import PlacementProblem
from distributary.topology import DisseminationTree, TreeNode

# Whole numbers make ties, zeros make free edges, the others make neither.
COSTS = st.one_of(
    st.sampled_from([1.0, 2.0, 3.0, 0.0]),
    st.floats(0.125, 50.0, width=32),
)
FACTORS = st.one_of(st.just(1.0), st.sampled_from([0.0, 0.5, 2.0, 10.0]))


@st.composite
def conversion_costs(draw: st.DrawFn, *, formats: int) -> FloatArray:
    """Draw a matrix of conversion costs; some graphs are complete, some fall apart."""
    missing_one_in = draw(st.sampled_from([4, 2, 1000]))
    costs = np.full((formats, formats), np.inf)
    for i, j in np.ndindex(formats, formats):
        if i != j and draw(st.integers(1, missing_one_in)) < missing_one_in:
            costs[i, j] = draw(COSTS)
    return costs


@st.composite
def adaptation_graphs(
    draw: st.DrawFn, *, formats_min: int = 1, formats_max: int = 4
) -> AdaptationGraph:
    """Draw formats with sizes and conversions."""
    # Not by size from below: most examples would have too few formats to go wrong.
    count = draw(st.sampled_from(range(formats_max, formats_min - 1, -1)))
    sizes = np.array([draw(COSTS) for _ in range(count)], dtype=np.float64)
    costs = draw(conversion_costs(formats=count))
    return AdaptationGraph(tuple(f"f{k}" for k in range(count)), sizes, costs)


@st.composite
def dissemination_trees(draw: st.DrawFn, *, nodes_max: int = 5) -> DisseminationTree:
    """Draw a tree of any shape, with equal or with unequal links and nodes."""
    count = draw(st.sampled_from(range(nodes_max, 0, -1)))
    factor = draw(st.sampled_from([st.just(1.0), FACTORS, st.floats(0.125, 8.0, width=32)]))
    return DisseminationTree.from_nodes(
        TreeNode(
            name=f"n{v:02d}",
            parent=None if v == 0 else f"n{draw(st.integers(0, v - 1)):02d}",
            link_cost=draw(factor),
            node_cost=draw(factor),
        )
        for v in range(count)
    )


@st.composite
def some_formats(draw: st.DrawFn, allowed: BoolArray, *, size_min: int = 0) -> BoolArray:
    """Draw a subset of the allowed formats."""
    chosen = np.zeros(len(allowed), dtype=np.bool_)
    options = np.flatnonzero(allowed).tolist()
    size = draw(st.sampled_from(range(len(options), min(size_min, len(options)) - 1, -1)))
    chosen[draw(st.permutations(options))[:size]] = True
    return chosen


@st.composite
def drawn_problems(
    draw: st.DrawFn, *, nodes_max: int, formats_max: int, held_max: int
) -> PlacementProblem:
    """Draw a problem number by number, so that a failing one shrinks well.

    Among them: relays that want nothing, whole branches that want nothing, nodes that want
    what is held, formats that cannot be made or lead nowhere, ties, free conversions and
    transmissions, factors of zero, alpha or beta of zero, and several formats held.
    """
    graph = draw(adaptation_graphs(formats_max=formats_max))
    tree = draw(dissemination_trees(nodes_max=nodes_max))
    held = np.zeros(graph.format_count, dtype=np.bool_)
    held_count = min(draw(st.sampled_from([1, 1, 1, held_max])), graph.format_count)
    held[draw(st.permutations(range(graph.format_count)))[:held_count]] = True
    makeable = np.asarray(graph.makeable[held].any(axis=0))
    wants = np.array(
        [
            draw(some_formats(makeable))
            if draw(st.sampled_from([True, True, False]))
            else np.zeros_like(held)
            for _ in range(tree.node_count)
        ]
    )
    weight = st.sampled_from([1.0, 1.0, 1.0, 0.1, 10.0, 0.0])
    return PlacementProblem(graph, tree, wants, held, draw(weight), draw(weight))


def random_problem(
    seed: int, *, nodes: int, formats: int, held_count: int, whole: bool, equal: bool
) -> PlacementProblem:
    """Return a problem that is rarely degenerate: most brokers want something to be made.

    Parameters
    ----------
    seed
        Decides everything that the other arguments leave open.
    nodes, formats, held_count
        How many there are of each.
    whole
        Small whole costs, so that there are ties and zeros, or any costs.
    equal
        Whether all links and all nodes have the same factor.
    """
    rng = np.random.default_rng(seed)

    def amounts(*shape: int) -> FloatArray:
        drawn = rng.integers(0, 6, shape) if whole else rng.uniform(0.1, 30.0, shape)
        return drawn.astype(np.float64)

    costs = amounts(formats, formats)
    costs[rng.random((formats, formats)) < rng.choice([0.0, 0.2, 0.5])] = np.inf
    np.fill_diagonal(costs, np.inf)
    graph = AdaptationGraph(tuple(f"f{k}" for k in range(formats)), amounts(formats), costs)
    factors = np.ones((2, nodes)) if equal else rng.uniform(0.1, 10.0, (2, nodes))
    tree = DisseminationTree.from_nodes(
        TreeNode(
            name=f"n{v:02d}",
            parent=None if v == 0 else f"n{rng.integers(v):02d}",
            link_cost=float(factors[0, v]),
            node_cost=float(factors[1, v]),
        )
        for v in range(nodes)
    )
    held = np.zeros(formats, dtype=np.bool_)
    held[rng.choice(formats, size=min(held_count, formats), replace=False)] = True
    makeable = np.asarray(graph.makeable[held].any(axis=0))
    wants = (rng.random((nodes, formats)) < rng.choice([0.3, 0.6])) & makeable
    alpha, beta = rng.choice([1.0, 1.0, 0.1, 10.0], size=2)
    return PlacementProblem(graph, tree, wants, held, float(alpha), float(beta))


def placement_problems(
    *, nodes_max: int = 4, formats_max: int = 4, held_max: int = 3
) -> st.SearchStrategy[PlacementProblem]:
    """Return a strategy for problems whose wishes can all be met, odd ones and ordinary ones.

    Left to draw every number, Hypothesis mostly finds problems in which nothing has to be
    converted or nothing costs anything; most of the problems come from a seed instead.
    """
    seeded = st.builds(
        random_problem,
        st.integers(0, 2**32),
        nodes=st.sampled_from(range(nodes_max, 0, -1)),
        formats=st.sampled_from(range(formats_max, 1, -1)),
        held_count=st.sampled_from([1, 1, min(2, held_max)]),
        whole=st.booleans(),
        equal=st.booleans(),
    )
    drawn = drawn_problems(nodes_max=nodes_max, formats_max=formats_max, held_max=held_max)
    return st.integers(0, 2).flatmap(lambda choice: drawn if choice == 0 else seeded)


def permuted(
    problem: PlacementProblem, *, format_order: list[int], name_order: list[int]
) -> PlacementProblem:
    """Return the same problem with formats in another order and brokers under other names."""
    tree = problem.tree
    order = np.asarray(format_order)
    names = [f"m{name_order[v]:02d}" for v in range(tree.node_count)]
    renamed = DisseminationTree.from_nodes(
        TreeNode(
            name=names[v],
            parent=None if v == 0 else names[int(tree.parents[v])],
            link_cost=float(tree.link_costs[v]),
            node_cost=float(tree.node_costs[v]),
        )
        for v in range(tree.node_count)
    )
    position = np.array([names.index(name) for name in renamed.names])
    return PlacementProblem(
        problem.graph.restricted_to(format_order),
        renamed,
        problem.wants[np.ix_(position, order)],
        problem.held[order],
        problem.alpha,
        problem.beta,
    )
