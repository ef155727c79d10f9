from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.sameness import same_placement

from distributary.arrays import BoolArray
from distributary.errors import BadInput
from distributary.placement.dissemination import TREES, dissemination_problem
from distributary.placement.generate import KINDS, generate_problem
from distributary.placement.plan import Plan, check
from distributary.placement.problem import PlacementProblem
from distributary.placement.scenarios import annotated_map_graph


def wanting(problem: PlacementProblem) -> dict[str, list[str]]:
    """Every broker that wants something, with what it wants."""
    return {
        broker: [name for name, wish in zip(problem.graph.names, row, strict=True) if wish]
        for broker, row in zip(problem.tree.names, problem.wants, strict=True)
        if row.any()
    }


def leaves(problem: PlacementProblem) -> BoolArray:
    is_leaf = np.ones(problem.node_count, dtype=np.bool_)
    is_leaf[problem.tree.parents[1:]] = False
    return is_leaf


def everything_made_at_the_root(problem: PlacementProblem) -> Plan:
    plan = Plan.empty(problem)
    have = problem.held.copy()
    while not have.all():
        source, target = np.argwhere(np.isfinite(problem.graph.costs) & have[:, None] & ~have)[0]
        plan.made_from[0, target] = source
        have[target] = True
    plan.receives[1:] = problem.wanted_below[1:]
    return plan


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_planned_and_repeats_with_its_seed(kind: str, tree: str) -> None:
    def make(seed: int) -> PlacementProblem:
        brokers = 1 if kind == "steiner" else 60
        return generate_problem(
            kind, seed=seed, brokers=brokers, matching=0.4, heterogeneity="weak", tree=tree
        )

    for seed in range(3):
        problem = make(seed)
        check(problem, everything_made_at_the_root(problem))
        assert problem.wants.any()
        assert same_placement(problem, make(seed))
    assert not same_placement(make(0), make(1))


@pytest.mark.parametrize(
    ("kind", "source"), [("map", "pdf"), ("video", "mp4-4"), ("sparse", "f00")]
)
def test_the_root_holds_the_source_format_alone(kind: str, source: str) -> None:
    problem = generate_problem(kind, seed=0, brokers=10)
    assert [problem.graph.names[k] for k in np.flatnonzero(problem.held)] == [source]


@pytest.mark.parametrize(
    ("kind", "conversions_min", "conversions_max"),
    [("dense", 3_800, 4_031), ("sparse", 256, 256), ("few-wants", 2_016, 2_016)],
)
def test_the_large_kinds_have_64_formats_on_a_tree_of_1024_brokers(
    kind: str, conversions_min: int, conversions_max: int
) -> None:
    problem = generate_problem(kind, seed=5)
    assert problem.format_count == 64
    assert problem.node_count == 1024
    assert conversions_min <= problem.graph.conversion_count <= conversions_max


@pytest.mark.parametrize("matching", [0.1, 0.5, 0.7, 1.0])
def test_the_matching_ratio_is_the_share_of_brokers_that_want_something(matching: float) -> None:
    problem = generate_problem("video", seed=2, brokers=200, matching=matching)
    assert len(wanting(problem)) == round(200 * matching)


def test_at_least_one_broker_matches() -> None:
    problem = generate_problem("map", seed=2, brokers=50, matching=0.001)
    assert len(wanting(problem)) == 1


def test_relays_want_nothing_and_leaves_want_something() -> None:
    problem = generate_problem("video", seed=2, brokers=300, matching=0.2)
    assert problem.node_count > len(wanting(problem)) == 60
    assert problem.wants[leaves(problem)].any(axis=1).all()


def test_brokers_want_one_to_a_quarter_of_the_formats_uniformly() -> None:
    problem = generate_problem("video", seed=2, matching=1.0)
    counts = problem.wants.sum(axis=1)
    assert sorted(set(counts.tolist())) == [1, 2, 3, 4]
    assert np.bincount(counts)[1:].min() > 200
    # 2.5 of 16 formats each: 160 wishes for every format, give or take the dice.
    wishes = problem.wants.sum(axis=0)
    assert wishes.min() > 110
    assert wishes.max() < 210


def test_a_quarter_of_four_formats_is_one() -> None:
    problem = generate_problem("map", seed=2, brokers=100)
    assert set(problem.wants.sum(axis=1).tolist()) == {0, 1}


def test_the_number_of_wishes_can_be_chosen() -> None:
    problem = generate_problem("video", seed=2, brokers=300, matching=1.0, wants=7)
    assert sorted(set(problem.wants.sum(axis=1).tolist())) == [1, 2, 3, 4, 5, 6, 7]


def test_few_wants_is_one_popular_format_for_each_broker() -> None:
    problem = generate_problem("few-wants", seed=2)
    assert set(problem.wants.sum(axis=1).tolist()) == {1}
    assert problem.wants.any(axis=0).sum() == 8
    assert not problem.wants[:, problem.held].any()


def test_identical_brokers_cost_one() -> None:
    problem = generate_problem("map", seed=1, brokers=100)
    assert set(problem.tree.link_costs.tolist()) == {1.0}
    assert set(problem.tree.node_costs.tolist()) == {1.0}


def test_weak_heterogeneity_has_six_fast_links_in_ten() -> None:
    problem = generate_problem("map", seed=1, matching=1.0, heterogeneity="weak")
    bandwidths = 10.0 / problem.tree.link_costs[1:]
    fast = bandwidths >= 10.0
    assert fast.sum() == round(0.6 * 1023)
    assert bandwidths.max() <= 100.0
    assert bandwidths.min() >= 0.1 - 1e-12
    assert bandwidths[fast].mean() == pytest.approx(55.0, abs=4.0)
    assert bandwidths[~fast].mean() == pytest.approx(5.05, abs=0.6)


def test_weak_heterogeneity_has_processors_that_cost_at_most_a_quarter_more() -> None:
    node_costs = generate_problem("map", seed=1, heterogeneity="weak").tree.node_costs
    assert node_costs.min() >= 1.0
    assert node_costs.max() <= 1.25
    assert (100.0 / node_costs).mean() == pytest.approx(90.0, abs=1.0)


def test_strong_heterogeneity_is_uniform_from_1_to_100_for_links_and_processors() -> None:
    tree = generate_problem("map", seed=1, matching=1.0, heterogeneity="strong").tree
    for factors in (tree.link_costs[1:], tree.node_costs):
        assert factors.min() >= 1.0
        assert factors.max() <= 100.0
        assert factors.mean() == pytest.approx(50.5, abs=4.0)
    assert not np.array_equal(tree.link_costs[1:], tree.node_costs[1:])


@pytest.mark.parametrize("heterogeneity", ["weak", "strong"])
def test_heterogeneity_changes_neither_tree_nor_wishes(heterogeneity: str) -> None:
    plain = generate_problem("video", seed=9, brokers=100)
    mixed = generate_problem("video", seed=9, brokers=100, heterogeneity=heterogeneity)
    assert mixed.tree.names == plain.tree.names
    assert np.array_equal(mixed.tree.parents, plain.tree.parents)
    assert np.array_equal(mixed.wants, plain.wants)
    assert np.array_equal(mixed.graph.costs, plain.graph.costs)
    assert mixed.tree.link_costs[0] == 1.0


@pytest.mark.parametrize("tree", TREES)
def test_brokers_keep_their_wishes_when_more_brokers_match(tree: str) -> None:
    few = wanting(generate_problem("video", seed=9, brokers=100, matching=0.6, tree=tree))
    many = wanting(generate_problem("video", seed=9, brokers=100, matching=0.9, tree=tree))
    assert len(few) < len(many)
    assert {broker: many.get(broker) for broker in few} == few


def test_a_recursive_tree_has_exactly_the_brokers_asked_for_and_leaves_that_match() -> None:
    problem = generate_problem("video", seed=4, brokers=300, matching=0.1, tree="recursive")
    assert problem.node_count == 300
    assert problem.tree.depths.max() > 5
    assert np.array_equal(problem.wants.any(axis=1), leaves(problem))
    assert problem.served.all()


def test_a_recursive_tree_matches_beyond_its_leaves_when_asked_to() -> None:
    problem = generate_problem("video", seed=4, brokers=300, matching=0.9, tree="recursive")
    assert len(wanting(problem)) == 270


@pytest.mark.parametrize(("formats", "wants"), [(50, 10), (200, None), (500, 250)])
def test_a_steiner_problem_is_one_broker_with_whole_costs(formats: int, wants: int | None) -> None:
    problem = generate_problem("steiner", seed=3, formats=formats, wants=wants)
    assert problem.node_count == 1
    assert problem.graph.conversion_count == 4 * formats
    assert problem.wants.sum() == (formats // 4 if wants is None else wants)
    assert not problem.wants[:, problem.held].any()
    costs = problem.graph.costs[np.isfinite(problem.graph.costs)]
    assert np.array_equal(costs, np.round(costs))


def test_one_broker_alone_is_a_problem_too() -> None:
    for tree in TREES:
        problem = generate_problem("sparse", seed=1, brokers=1, formats=2, tree=tree)
        assert problem.node_count == 1
        assert problem.wants.sum() == 1


def test_weights_are_passed_on() -> None:
    problem = generate_problem("map", seed=1, brokers=5, alpha=0.5, beta=2.0)
    assert (problem.alpha, problem.beta) == (0.5, 2.0)


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        ("maps", {}, "kind: 'maps' is not one of map, video, dense, sparse, few-wants, steiner"),
        ("map", {"seed": -1}, "seed: must be at least 0, not -1"),
        ("map", {"formats": 5}, "formats: is 5, but a map has 4 formats"),
        ("dense", {"formats": 1}, "formats: is 1, and must be from 2 to 2,000"),
        ("dense", {"formats": 2001}, "formats: is 2,001, and must be from 2 to 2,000"),
        ("map", {"brokers": 0}, "brokers: is 0, and must be from 1 to 8,192"),
        ("map", {"brokers": 8193}, "brokers: is 8,193, and must be from 1 to 8,192"),
        ("map", {"matching": 0.0}, "matching: is 0, and must be above 0 and at most 1"),
        ("map", {"matching": 1.5}, "matching: is 1.5, and must be above 0 and at most 1"),
        ("map", {"matching": float("nan")}, "matching: is nan, and must be above 0 and at most 1"),
        ("video", {"wants": 0}, "wants: is 0, and must be from 1 to 16"),
        ("video", {"wants": 17}, "wants: is 17, and must be from 1 to 16"),
        ("few-wants", {"wants": 9}, "wants: is 9, and must be from 1 to 8"),
        ("steiner", {"wants": 200}, "wants: is 200, and must be from 1 to 199"),
        ("steiner", {"brokers": 2}, "brokers: is 2, but a steiner problem has one broker"),
        ("map", {"alpha": -0.1}, "alpha: is -0.1, and must be finite and not negative"),
        ("map", {"beta": float("inf")}, "beta: is inf, and must be finite and not negative"),
        (
            "map",
            {"heterogeneity": "mild"},
            "heterogeneity: 'mild' is not one of none, weak, strong",
        ),
        ("map", {"tree": "oak"}, "tree: 'oak' is not one of routes, recursive"),
    ],
)
def test_what_is_out_of_range_is_refused_in_a_sentence_that_names_the_option(
    kind: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadInput) as refusal:
        generate_problem(kind, **{"seed": 0, **options})
    assert str(refusal.value) == sentence


def test_a_source_that_is_no_format_is_refused() -> None:
    with pytest.raises(BadInput, match="source: 'gif' is not a format"):
        dissemination_problem(annotated_map_graph(), source="gif", rng=np.random.default_rng(0))
