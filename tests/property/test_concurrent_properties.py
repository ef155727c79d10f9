"""Planning in turns lowers one common sum, and ends where nobody gains."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import placement_problems, some_formats

from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.placement.concurrent import place_concurrently, shared_cost
from distributary.placement.cost import cost
from distributary.placement.exact import exact_plan
from distributary.placement.plan import NOT_MADE, Plan, check
from distributary.placement.problem import PlacementProblem

GROWTHS = st.sampled_from([0.0, 0.01, 0.5, 3.0])
STARTS: tuple[Callable[[PlacementProblem], Plan], ...] = (
    all_in_root,
    all_in_leaves,
    single_format,
    exact_plan,
)


@st.composite
def publications(draw: st.DrawFn) -> list[PlacementProblem]:
    """Draw publications on one tree that differ in what is held and who wants what."""
    first = draw(placement_problems(nodes_max=4, formats_max=4))
    problems = [first]
    for _ in range(draw(st.integers(1, 2))):
        held = np.zeros_like(first.held)
        held[draw(st.integers(0, first.format_count - 1))] = True
        makeable = np.asarray(first.graph.makeable[held].any(axis=0))
        wants = np.array([draw(some_formats(makeable)) for _ in range(first.node_count)])
        problems.append(replace(first, wants=wants, held=held))
    return problems


def load(problem: PlacementProblem, plan: Plan) -> dict[tuple[str, ...], float]:
    """Return what a plan does at each broker and on each link, told slowly."""
    names, found = problem.tree.names, dict[tuple[str, ...], float]()
    for v, k in itertools.product(range(problem.node_count), range(problem.format_count)):
        if plan.made_from[v, k] != NOT_MADE:
            converted = float(problem.graph.costs[plan.made_from[v, k], k])
            found[names[v],] = found.get((names[v],), 0.0) + converted
        if plan.receives[v, k]:
            link = (names[problem.tree.parents[v]], names[v])
            found[link] = found.get(link, 0.0) + float(problem.graph.sizes[k])
    return found


def seen_by(
    index: int, problems: list[PlacementProblem], plans: list[Plan], growth: float
) -> PlacementProblem:
    """Return a problem with the factors that the others' plans give it."""
    problem = problems[index]
    names, tree = problem.tree.names, problem.tree
    others = [
        load(p, plan) for j, (p, plan) in enumerate(zip(problems, plans, strict=True)) if j != index
    ]
    node_costs, link_costs = tree.node_costs.copy(), tree.link_costs.copy()
    for v, name in enumerate(names):
        node_costs[v] *= 1.0 + growth * sum(other.get((name,), 0.0) for other in others)
        if v > 0:
            link = (names[tree.parents[v]], name)
            link_costs[v] *= 1.0 + growth * sum(other.get(link, 0.0) for other in others)
    return replace(problem, tree=replace(tree, node_costs=node_costs, link_costs=link_costs))


@given(publications(), GROWTHS, st.data())
@settings(max_examples=80, deadline=None)
def test_the_common_sum_changes_by_what_one_publication_saves(
    problems: list[PlacementProblem], growth: float, data: st.DataObject
) -> None:
    """So whoever takes a cheaper plan lowers the sum, and planning in turns must end."""
    plans = [data.draw(st.sampled_from(STARTS))(problem) for problem in problems]
    index = data.draw(st.integers(0, len(problems) - 1))
    seen = seen_by(index, problems, plans, growth)
    changed = list(plans)
    changed[index] = exact_plan(seen)
    saved = cost(seen, plans[index]).total - cost(seen, changed[index]).total
    before = shared_cost(problems, plans, growth=growth)
    after = shared_cost(problems, changed, growth=growth)
    assert saved >= -1e-9 * (1.0 + before)
    assert before - after == pytest.approx(saved, rel=1e-9, abs=1e-9 * (1.0 + before))


@given(publications(), GROWTHS)
@settings(max_examples=60, deadline=None)
def test_nobody_gains_by_another_plan_of_its_own(
    problems: list[PlacementProblem], growth: float
) -> None:
    result = place_concurrently(problems, growth=growth)
    plans = [placement.plan for placement in result.placements]
    assert result.total_cost <= result.separate_total_cost
    assert result.total_cost == pytest.approx(shared_cost(problems, plans, growth=growth))
    for index, placement in enumerate(result.placements):
        check(problems[index], placement.plan)
        seen = seen_by(index, problems, plans, growth)
        assert placement.total_cost == pytest.approx(cost(seen, placement.plan).total)
        assert placement.total_cost == pytest.approx(cost(seen, exact_plan(seen)).total)
        assert placement.optimal


@given(publications(), GROWTHS)
@settings(max_examples=20, deadline=None)
def test_the_same_problems_give_the_same_plans(
    problems: list[PlacementProblem], growth: float
) -> None:
    one, other = (place_concurrently(problems, growth=growth, seed=1) for _ in range(2))
    assert one.total_cost == other.total_cost
    for first, second in zip(one.placements, other.placements, strict=True):
        np.testing.assert_array_equal(first.plan.receives, second.plan.receives)
        np.testing.assert_array_equal(first.plan.made_from, second.plan.made_from)


@given(publications(), st.sampled_from([0.0, 0.01, 0.5, 3.0, 30.0]), st.sampled_from([None, 1e-9]))
@settings(max_examples=150, deadline=None)
def test_no_start_is_cheaper_than_the_result(
    problems: list[PlacementProblem], growth: float, time_limit: float | None
) -> None:
    """Whoever plans nothing at all is never better off, however short the time."""
    result = place_concurrently(problems, growth=growth, time_limit=time_limit)
    for start in STARTS:
        plans = [start(problem) for problem in problems]
        profile = shared_cost(problems, plans, growth=growth)
        assert result.total_cost <= profile * (1.0 + 1e-9)
