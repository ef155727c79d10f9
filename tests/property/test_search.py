"""Dual ascent, the path heuristic and local search, against certificates and optima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import placement_mip
from tests.strategies import placement_problems

from distributary.arrays import IntArray
from distributary.placement import PlacementProblem, Plan, check, cost, place
from distributary.placement._search_kernels import arborescence_of, improve
from distributary.placement.exact import exact_plan
from distributary.placement.generate import generate_problem
from distributary.placement.multilayer import multilayer_graph
from distributary.placement.search import _Search, dual_bound, search

problems = placement_problems(nodes_max=8, formats_max=6)


def left_on(
    problem: PlacementProblem, plan: Plan, conversions: object, transmissions: object
) -> float:
    """Return the reduced costs of the arcs that a plan uses."""
    graph = multilayer_graph(problem)
    m = problem.format_count
    conversion_left, transmission_left = np.asarray(conversions), np.asarray(transmissions)
    total = 0.0
    for u, before in enumerate(plan.arborescence(problem).ravel()):
        if before < 0:
            continue
        if before // m == u // m:
            arc = graph.arc_of[before % m, u % m]
            total += float(conversion_left[(u // m) * len(graph.in_from) + arc])
        else:
            total += float(transmission_left[u])
    return total


@settings(max_examples=150)
@given(problems, st.booleans())
def test_dual_ascent_ends_with_a_certificate(problem: PlacementProblem, guided: bool) -> None:
    """Weak duality holds arc by arc, and free arcs connect every wish.

    Every plan costs at least the bound plus the reduced costs of its arcs; that is the
    proof of the bound, and it fails if a single arc is lowered too far.
    """
    if not problem.served[0]:
        return
    run = _Search(problem, seed=0)
    best = exact_plan(problem)
    result = run.ascend(best.arborescence(problem).ravel() if guided else None)
    assert (result.conversion_left >= 0.0).all()
    assert (result.transmission_left >= 0.0).all()
    for plan in (best, place(problem, method="all-in-leaves").plan):
        left = left_on(problem, plan, result.conversion_left, result.transmission_left)
        assert result.bound + left <= cost(problem, plan).total * (1.0 + 1e-7) + 1e-7
    tree = run._connect(result)
    check(problem, run.plan(tree))


@settings(max_examples=100)
@given(problems)
def test_bound_and_plan_enclose_the_optimum(problem: PlacementProblem) -> None:
    """The bound is never above the integer program's optimum, the plan never below."""
    optimum = placement_mip.minimum_cost(problem)
    found = search(problem, rounds=6)
    check(problem, found.plan)
    price = cost(problem, found.plan).total
    assert found.lower_bound <= optimum * (1.0 + 1e-6) + 1e-6
    assert dual_bound(problem) <= optimum * (1.0 + 1e-6) + 1e-6
    assert price >= optimum * (1.0 - 1e-6) - 1e-6
    assert price <= optimum * 1.1 + 1e-6


@settings(max_examples=100)
@given(problems, st.integers(0, 2**32 - 1))
def test_local_search_gains_what_it_says(problem: PlacementProblem, seed: int) -> None:
    """The tree stays a plan, and its cost falls by exactly the reported gain."""
    if not problem.served[0]:
        return
    graph = multilayer_graph(problem)
    start = place(problem, method="all-in-leaves").plan
    tree = arborescence_of(graph, start.arborescence(problem).ravel())
    order: IntArray = np.random.default_rng(seed).permutation(len(tree.before))
    gain = improve(graph, tree, order, 20)
    plan = Plan.from_arborescence(tree.before.reshape(problem.wants.shape))
    check(problem, plan)
    before, after = (cost(problem, p).total for p in (start, plan))
    assert gain >= 0.0
    assert after == pytest.approx(before - gain, rel=1e-9, abs=1e-9)


@settings(max_examples=50)
@given(problems)
def test_a_plan_survives_the_way_through_the_multilayer_graph(problem: PlacementProblem) -> None:
    """Plan to tree to plan changes nothing."""
    plan = exact_plan(problem)
    again = Plan.from_arborescence(plan.arborescence(problem))
    assert np.array_equal(plan.receives, again.receives)
    assert np.array_equal(plan.made_from, again.made_from)


def test_search_replays_from_its_seed() -> None:
    """Same seed, same plan; the time that passes does not matter."""
    problem = generate_problem("sparse", seed=2, brokers=48, formats=24)
    one, two = (search(problem, seed=5, rounds=6) for _ in range(2))
    assert np.array_equal(one.plan.receives, two.plan.receives)
    assert np.array_equal(one.plan.made_from, two.plan.made_from)
    assert one.lower_bound == two.lower_bound


@pytest.mark.parametrize("kind", ["dense", "sparse", "few-wants"])
def test_large_graphs_get_a_small_certified_gap(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 formats: what is not proven necessary is at most three per cent, even in few rounds."""
    monkeypatch.setattr("distributary.placement.search._ARCS_PER_SEARCH", 0)
    problem = generate_problem(kind, seed=4, brokers=64)
    result = place(problem)
    check(problem, result.plan)
    assert result.chosen == "search"
    assert 0.0 <= result.gap <= 0.03


@pytest.mark.parametrize(("formats", "wants"), [(50, 10), (200, 10), (300, 11)])
def test_steiner_trees_come_out_optimal(formats: int, wants: int) -> None:
    """One broker: the search finds what the exact program over wishes proves optimal."""
    problem = generate_problem("steiner", seed=2, formats=formats, wants=wants)
    optimum = cost(problem, exact_plan(problem)).total
    found = search(problem, rounds=400)
    assert found.lower_bound <= optimum
    assert cost(problem, found.plan).total <= optimum * 1.01
