"""Comparing methods: every method has a row, with a plan or with the reason for none."""

from __future__ import annotations

import json

import pytest

from distributary.placement.comparison import compare_methods, comparison_document
from distributary.placement.generate import generate_problem
from distributary.placement.plan import check
from distributary.placement.planner import METHODS
from distributary.placement.problem import PlacementProblem
from distributary.placement.problem_file import parse_problem


def map_problem() -> PlacementProblem:
    return generate_problem("map", seed=5, brokers=24)


def test_every_method_has_a_row_with_a_valid_plan() -> None:
    problem = map_problem()
    results = compare_methods(problem, iterations=50)
    assert [result.method for result in results] == list(METHODS)
    for result in results:
        assert result.placement is not None
        check(problem, result.placement.plan)


def test_savings_are_shares_of_the_baselines() -> None:
    results = {result.method: result for result in compare_methods(map_problem(), iterations=50)}
    assert results["all-in-root"].saving_all_in_root == 0.0
    assert results["all-in-leaves"].saving_all_in_leaves == 0.0
    exact, root = results["exact"].placement, results["all-in-root"].placement
    assert exact is not None
    assert root is not None
    assert results["exact"].saving_all_in_root == pytest.approx(
        1.0 - exact.total_cost / root.total_cost
    )


def test_the_cheapest_plans_are_marked_and_no_others() -> None:
    results = compare_methods(map_problem(), iterations=50)
    costs = {r.method: r.placement.total_cost for r in results if r.placement is not None}
    for result in results:
        assert result.best == (costs[result.method] <= min(costs.values()) * (1 + 1e-9))
    assert next(result for result in results if result.method == "exact").best


def test_a_free_baseline_has_no_savings() -> None:
    problem = parse_problem(
        {
            "formats": [{"name": "pdf", "size": 1}],
            "conversions": [],
            "source_format": "pdf",
            "tree": [{"node": "N1", "parent": None, "wants": ["pdf"]}],
        }
    ).problem
    for result in compare_methods(problem):
        assert result.saving_all_in_root is None
        assert result.best


def test_a_method_that_cannot_run_says_why() -> None:
    """The published optimal algorithm gives up long before sixteen formats."""
    problem = generate_problem("video", seed=1, brokers=6)
    results = {result.method: result for result in compare_methods(problem, iterations=10)}
    assert results["optimal"].placement is None
    assert results["optimal"].skipped
    assert not results["optimal"].best
    assert results["auto"].placement is not None


def test_an_observer_is_told_every_method() -> None:
    told: list[tuple[str, int, int]] = []
    compare_methods(map_problem(), iterations=1, observe=lambda *stage: told.append(stage))
    assert told == [(method, index, len(METHODS)) for index, method in enumerate(METHODS)]


def test_a_comparison_can_be_written_as_json() -> None:
    results = compare_methods(map_problem(), iterations=10, seed=3)
    document = json.loads(json.dumps(comparison_document(results, seed=3), allow_nan=False))
    assert document["seed"] == 3
    assert [entry["method"] for entry in document["methods"]] == list(METHODS)
