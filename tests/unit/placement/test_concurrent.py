"""Publications that share brokers and links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from distributary.content import AdaptationGraph
from distributary.errors import BadInput
from distributary.placement.concurrent import place_concurrently, shared_cost
from distributary.placement.exact import exact_plan
from distributary.placement.generate import generate_problem
from distributary.placement.plan import check
from distributary.placement.problem import PlacementProblem
from distributary.topology import DisseminationTree, TreeNode

GRAPH = AdaptationGraph.from_conversions([("a", 4.0), ("b", 4.0)], [("a", "b", 1.0)])


def problem_of(*nodes: TreeNode, alpha: float = 1.0, beta: float = 1.0) -> PlacementProblem:
    """Everybody but the root wants b, and the root holds a."""
    tree = DisseminationTree.from_nodes(nodes)
    wants = np.zeros((tree.node_count, 2), dtype=np.bool_)
    wants[1:, 1] = True
    return PlacementProblem(GRAPH, tree, wants, np.array([True, False]), alpha, beta)


R, S = TreeNode("r", None), TreeNode("s", "r", node_cost=1.5)


def test_a_publication_moves_its_conversion_away_from_a_loaded_broker() -> None:
    """Alone both convert at r; together one goes to s, which is dearer but free."""
    problem = problem_of(R, S)
    result = place_concurrently([problem, problem], growth=1.0)
    where = sorted(int(np.flatnonzero(p.plan.made_from[:, 1] >= 0)[0]) for p in result.placements)
    assert where == [0, 1]
    # Links: 4 + 4 + 4 * 4; conversions 1 at r and 1.5 at s, or 1 + 1 + 1 at r.
    assert result.total_cost == pytest.approx(24.0 + 2.5)
    assert result.separate_total_cost == pytest.approx(24.0 + 3.0)
    assert all(p.optimal for p in result.placements)


def test_each_placement_reports_its_cost_under_the_final_load() -> None:
    problem = problem_of(R, S)
    first, second = place_concurrently([problem, problem], growth=1.0).placements
    for placement in (first, second):
        assert placement.transmission_cost == pytest.approx(4.0 * (1.0 + 4.0))
        assert placement.lower_bound == pytest.approx(placement.total_cost)
    assert sorted([first.conversion_cost, second.conversion_cost]) == pytest.approx([1.0, 1.5])


def test_without_growth_the_plans_are_those_of_each_alone() -> None:
    shared = generate_problem("video", seed=2, brokers=32)
    problems = [shared, replace(shared, wants=np.roll(shared.wants, 1, axis=1))]
    result = place_concurrently(problems, growth=0.0)
    assert result.total_cost == result.separate_total_cost
    for problem, placement in zip(problems, result.placements, strict=True):
        alone = exact_plan(problem)
        np.testing.assert_array_equal(placement.plan.receives, alone.receives)
        np.testing.assert_array_equal(placement.plan.made_from, alone.made_from)


def test_publications_that_share_nothing_do_not_affect_each_other() -> None:
    other = problem_of(TreeNode("x", None), TreeNode("y", "x", node_cost=1.5))
    result = place_concurrently([problem_of(R, S), other], growth=100.0)
    assert [p.total_cost for p in result.placements] == [5.0, 5.0]
    assert result.total_cost == result.separate_total_cost == 10.0


def test_a_link_is_shared_only_when_both_its_ends_are() -> None:
    """Broker s hangs below r in one tree and below t in the other: two links, one processor."""
    other = problem_of(TreeNode("t", None), TreeNode("s", "t", node_cost=1.5))
    result = place_concurrently([problem_of(R, S), other], growth=100.0)
    assert result.total_cost == 10.0


def test_a_single_publication_is_planned_as_alone() -> None:
    result = place_concurrently([problem_of(R, S)], growth=3.0)
    assert result.total_cost == result.separate_total_cost == 5.0
    assert result.rounds == 1


def test_video_publications_on_one_tree_gain_by_avoiding_each_other() -> None:
    shared = generate_problem("video", seed=3, brokers=64)
    problems = [replace(shared, wants=np.roll(shared.wants, k, axis=1)) for k in range(4)]
    result = place_concurrently(problems, growth=0.05)
    assert result.total_cost < 0.98 * result.separate_total_cost
    plans = [placement.plan for placement in result.placements]
    assert result.total_cost == shared_cost(problems, plans, growth=0.05)
    for problem, plan in zip(problems, plans, strict=True):
        check(problem, plan)


def test_with_no_time_left_the_separate_plans_stand_with_a_valid_bound() -> None:
    problem = problem_of(R, S)
    result = place_concurrently([problem, problem], growth=1.0, time_limit=1e-9)
    assert result.rounds == 0
    assert result.total_cost == result.separate_total_cost
    for placement in result.placements:
        assert placement.total_cost == 22.0
        # Against the other's load at r it would be best to convert at s.
        assert placement.lower_bound <= 21.5
        assert not placement.optimal


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (problem_of(R, replace(S, node_cost=2.0)), "node 's': node_cost is 1.5 in one"),
        (problem_of(R, replace(S, link_cost=2.0)), "node 's': link_cost is 1 in one"),
        (problem_of(R, S, alpha=2.0), "node 's': alpha is 1 in one"),
        (problem_of(R, S, beta=2.0), "node 'r': beta is 1 in one"),
    ],
)
def test_shared_resources_must_be_seen_alike(other: PlacementProblem, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        place_concurrently([problem_of(R, S), other], growth=1.0)


@pytest.mark.parametrize("growth", [-0.1, np.inf, np.nan])
def test_growth_must_be_a_finite_number_of_at_least_zero(growth: float) -> None:
    with pytest.raises(BadInput, match=r"^growth: "):
        place_concurrently([problem_of(R, S)], growth=growth)


def test_growth_that_no_factor_can_hold_is_refused() -> None:
    problem = problem_of(R, S)
    with pytest.raises(BadInput, match="too large for a number"):
        place_concurrently([problem, problem], growth=1e308)


def test_there_must_be_a_problem() -> None:
    with pytest.raises(BadInput, match=r"^problems: "):
        place_concurrently([], growth=1.0)
