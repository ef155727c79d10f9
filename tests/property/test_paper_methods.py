"""The papers' methods against brute force and against a mixed-integer program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import placement_brute_force, placement_mip
from tests.strategies import permuted, placement_problems

from distributary.placement.baselines import all_in_leaves, all_in_root, single_format
from distributary.placement.bounds import conversion_bound, paper_bound, transmission_bounds
from distributary.placement.conversions import ConversionPlanner
from distributary.placement.cost import cost
from distributary.placement.iterative import iterative
from distributary.placement.optimal import optimal
from distributary.placement.plan import NOT_MADE, Plan, check
from distributary.placement.problem import PlacementProblem

SLACK = 1e-9
BASELINES: list[Callable[[PlacementProblem], Plan]] = [all_in_root, all_in_leaves, single_format]

few = settings(max_examples=25, deadline=None)
some = settings(max_examples=50, deadline=None)


def at_least(value: float, bound: float) -> bool:
    """Is `value` no less than `bound`, but for rounding?"""
    return value >= bound - SLACK * max(1.0, abs(bound))


@some
@given(problem=placement_problems())
def test_brute_force_and_the_integer_program_agree(problem: PlacementProblem) -> None:
    plan = placement_brute_force.cheapest_plan(problem)
    check(problem, plan)
    expected = placement_brute_force.minimum_cost(problem)
    assert cost(problem, plan).total == pytest.approx(expected)
    assert placement_mip.minimum_cost(problem) == pytest.approx(expected, abs=1e-6)


@some
@given(problem=placement_problems())
def test_the_optimal_algorithm_is_optimal(problem: PlacementProblem) -> None:
    plan = optimal(problem)
    check(problem, plan)
    assert cost(problem, plan).total == pytest.approx(placement_brute_force.minimum_cost(problem))


@few
@given(problem=placement_problems(nodes_max=7, formats_max=5))
def test_the_optimal_algorithm_agrees_with_the_integer_program(problem: PlacementProblem) -> None:
    plan = optimal(problem)
    check(problem, plan)
    found = cost(problem, plan).total
    assert found == pytest.approx(placement_mip.minimum_cost(problem), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("method", BASELINES)
@some
@given(problem=placement_problems())
def test_a_simple_plan_is_valid_and_costs_at_least_the_optimum(
    method: Callable[[PlacementProblem], Plan], problem: PlacementProblem
) -> None:
    plan = method(problem)
    check(problem, plan)
    assert at_least(cost(problem, plan).total, placement_brute_force.minimum_cost(problem))


@pytest.mark.parametrize("method", [*BASELINES, optimal])
@some
@given(problem=placement_problems(nodes_max=6))
def test_a_broker_receives_something_exactly_when_something_is_wanted_below(
    method: Callable[[PlacementProblem], Plan], problem: PlacementProblem
) -> None:
    plan = method(problem)
    assert (plan.receives[1:].any(axis=1) == problem.served[1:]).all()
    assert not (plan.made_from != NOT_MADE)[~problem.served].any()


@some
@given(problem=placement_problems(nodes_max=6, held_max=1))
def test_simple_plans_are_what_their_names_say(problem: PlacementProblem) -> None:
    root = all_in_root(problem)
    assert (root.receives[1:] == problem.wanted_below[1:]).all()
    assert not (root.made_from[1:] != NOT_MADE).any()
    leaves = all_in_leaves(problem)
    assert (leaves.receives[1:] == problem.served[1:, None] & problem.held).all()
    single = single_format(problem)
    assert (single.receives.sum(axis=1)[1:] == problem.served[1:]).all()


@some
@given(problem=placement_problems(nodes_max=6, held_max=1))
def test_a_single_format_link_carries_the_smallest_format_that_will_do(
    problem: PlacementProblem,
) -> None:
    plan = single_format(problem)
    makeable, sizes = problem.graph.makeable, problem.graph.sizes
    for v in np.flatnonzero(problem.served[1:]) + 1:
        parent = problem.tree.parents[v]
        above = problem.held if parent == 0 else plan.receives[parent]
        will_do = makeable[above].any(axis=0) & makeable[:, problem.wanted_below[v]].all(axis=1)
        assert sizes[plan.receives[v]] == sizes[will_do].min()


@some
@given(problem=placement_problems())
def test_the_bounds_hold_for_the_optimum(problem: PlacementProblem) -> None:
    best = placement_brute_force.cheapest_plan(problem)
    total = placement_brute_force.minimum_cost(problem)
    assert at_least(total, paper_bound(problem))
    sent = problem.link_weights * np.where(best.receives, problem.graph.sizes, 0.0).sum(axis=1)
    assert at_least(float((sent - transmission_bounds(problem)).min()), 0.0)
    assert at_least(problem.beta * cost(problem, best).conversion, conversion_bound(problem))


@some
@given(problem=placement_problems(nodes_max=3))
def test_the_conversion_bound_holds_where_the_steiner_tree_is_out_of_reach(
    problem: PlacementProblem,
) -> None:
    without_tree = conversion_bound(problem, ConversionPlanner(problem.graph.costs, steps_max=0.0))
    assert at_least(conversion_bound(problem), without_tree)
    assert without_tree > 0.0 or conversion_bound(problem) == 0.0


@pytest.mark.parametrize("steiner", ["charikar", "exact"])
@pytest.mark.parametrize("select", ["slack", "random"])
@few
@given(problem=placement_problems(nodes_max=5), depth=st.integers(1, 3), seed=st.integers(0, 99))
def test_every_iteration_is_valid_and_never_costs_more(
    select: str, steiner: str, problem: PlacementProblem, depth: int, seed: int
) -> None:
    observed: list[tuple[str, int, int]] = []
    run = iterative(
        problem,
        iterations=12,
        select=select,
        steiner=steiner,
        depth=depth,
        seed=seed,
        observe=lambda *progress: observed.append(progress),
    )
    check(problem, run.plan)
    assert (np.diff(run.costs) <= 0.0).all()
    assert len(run.costs) == run.iterations + 1 <= 13
    assert observed == [("iterative", done, 12) for done in range(1, run.iterations + 1)]
    total = cost(problem, run.plan).total
    assert total == pytest.approx(run.costs[-1])
    assert run.costs[0] == pytest.approx(min(cost(problem, f(problem)).total for f in BASELINES))
    assert at_least(total, placement_brute_force.minimum_cost(problem))
    for iterations in range(run.iterations):
        earlier = iterative(
            problem,
            iterations=iterations,
            select=select,
            steiner=steiner,
            depth=depth,
            seed=seed,
        )
        check(problem, earlier.plan)
        assert (earlier.costs == run.costs[: iterations + 1]).all()
        assert cost(problem, earlier.plan).total == pytest.approx(earlier.costs[-1])


@few
@given(problem=placement_problems(nodes_max=5))
def test_a_stump_as_deep_as_the_tree_planned_exactly_gives_the_optimum(
    problem: PlacementProblem,
) -> None:
    run = iterative(problem, steiner="exact", depth=problem.node_count)
    assert run.costs[-1] == pytest.approx(placement_brute_force.minimum_cost(problem))


@few
@given(problem=placement_problems(nodes_max=6))
def test_what_is_received_is_used(problem: PlacementProblem) -> None:
    run = iterative(problem, select="slack")
    plan = run.plan
    assert not (plan.receives & (plan.made_from != NOT_MADE)).any()
    if run.costs[-1] < run.costs[0]:
        for v in range(1, problem.node_count):
            used = problem.wants[v] | plan.receives[problem.tree.children(v)].any(axis=0)
            used[plan.made_from[v][plan.made_from[v] != NOT_MADE]] = True
            assert used[plan.receives[v]].all()


@few
@given(problem=placement_problems(nodes_max=5), data=st.data())
def test_names_and_orders_do_not_change_the_optimum_or_the_bound(
    problem: PlacementProblem, data: st.DataObject
) -> None:
    other = permuted(
        problem,
        format_order=data.draw(st.permutations(range(problem.format_count))),
        name_order=data.draw(st.permutations(range(problem.node_count))),
    )
    assert cost(other, optimal(other)).total == pytest.approx(cost(problem, optimal(problem)).total)
    assert paper_bound(other) == pytest.approx(paper_bound(problem))
