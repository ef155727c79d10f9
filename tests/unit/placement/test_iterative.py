from __future__ import annotations

import numpy as np
import pytest

from distributary.content import AdaptationGraph
from distributary.errors import BadInput, TooLarge
from distributary.placement.baselines import single_format
from distributary.placement.cost import cost
from distributary.placement.generate import generate_problem
from distributary.placement.iterative import iterative
from distributary.placement.optimal import optimal
from distributary.placement.plan import NOT_MADE, check
from distributary.placement.problem import PlacementProblem
from distributary.topology import DisseminationTree, TreeNode


def small_problem(*, link_cost: float = 1.0) -> PlacementProblem:
    """A source of size 10 at the root; below a relay, two brokers want the small `a` and `b`."""
    graph = AdaptationGraph.from_conversions(
        [("raw", 10.0), ("a", 4.0), ("b", 5.0)],
        [("raw", "a", 3.0), ("raw", "b", 8.0), ("a", "b", 2.0)],
    )
    tree = DisseminationTree.from_nodes(
        [
            TreeNode("root", None),
            TreeNode("relay", "root", link_cost=link_cost),
            TreeNode("x", "relay"),
            TreeNode("y", "relay"),
            TreeNode("z", "root"),
        ]
    )
    index = {name: k for k, name in enumerate(graph.names)}
    wants = np.zeros((5, 3), dtype=np.bool_)
    wants[tree.names.index("x"), index["a"]] = True
    wants[tree.names.index("y"), index["b"]] = True
    return PlacementProblem(graph, tree, wants, np.arange(3) == index["raw"])


def test_one_format_crosses_the_shared_link_and_nothing_goes_where_nothing_is_wanted() -> None:
    problem = small_problem(link_cost=5.0)
    plan = single_format(problem)
    check(problem, plan)
    relay, z = problem.tree.names.index("relay"), problem.tree.names.index("z")
    assert plan.receives[relay].tolist() == [True, False, False]
    assert not plan.receives[z].any()
    # Making a at the root 3, sending it over links of 5, 1 and 1 times 4, making b at y 2.
    assert cost(problem, plan).total == 3.0 + 4.0 * 7.0 + 2.0
    assert cost(problem, optimal(problem)).total == 33.0


def test_where_no_single_format_will_do_a_link_carries_several() -> None:
    graph = AdaptationGraph.from_conversions(
        [("left", 3.0), ("right", 2.0), ("l", 1.0), ("r", 1.0)],
        [("left", "l", 1.0), ("right", "r", 1.0)],
    )
    tree = DisseminationTree.from_nodes([TreeNode("root", None), TreeNode("leaf", "root")])
    wanted = np.array([name in ("l", "r") for name in graph.names])
    held = np.array([name in ("left", "right") for name in graph.names])
    problem = PlacementProblem(graph, tree, np.array([np.zeros_like(wanted), wanted]), held)
    plan = single_format(problem)
    check(problem, plan)
    assert (plan.receives[1] == wanted).all()
    assert cost(problem, plan).total == 4.0


def test_the_run_ends_when_no_broker_is_left_to_refine() -> None:
    run = iterative(small_problem(), iterations=1000)
    assert run.iterations < 20
    assert run.costs[-1] == cost(small_problem(), optimal(small_problem())).total


def test_no_iterations_give_the_best_simple_plan() -> None:
    run = iterative(small_problem(), iterations=0)
    assert run.iterations == 0
    assert len(run.costs) == 1


def test_a_time_limit_of_nothing_stops_at_once_with_a_valid_plan() -> None:
    problem = generate_problem("map", seed=3, brokers=40)
    run = iterative(problem, time_limit=0.0)
    check(problem, run.plan)
    assert run.iterations == 0


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    problem = generate_problem("video", seed=5, brokers=60)
    runs = [iterative(problem, iterations=40, select="random", seed=seed) for seed in (1, 1, 2)]
    assert (runs[0].costs == runs[1].costs).all()
    assert (runs[0].plan.receives == runs[1].plan.receives).all()
    assert (runs[0].plan.made_from == runs[1].plan.made_from).all()
    assert not np.array_equal(runs[0].costs, runs[2].costs)


@pytest.mark.parametrize("depth", [1, 2])
def test_hundreds_of_brokers_with_sixteen_formats_are_refined_validly(depth: int) -> None:
    problem = generate_problem("video", seed=1, brokers=256)
    run = iterative(problem, iterations=200, depth=depth)
    check(problem, run.plan)
    assert cost(problem, run.plan).total == pytest.approx(run.costs[-1])
    assert run.costs[-1] < run.costs[0]
    assert not (run.plan.receives & (run.plan.made_from != NOT_MADE)).any()


def test_slack_falls_faster_than_random() -> None:
    """Paper 000, figure 11, in small: after the same number of iterations."""
    problem = generate_problem("video", seed=2, brokers=256)
    slack = iterative(problem, iterations=30)
    random = iterative(problem, iterations=30, select="random")
    assert slack.costs[-1] < random.costs[-1]


@pytest.mark.parametrize(
    ("option", "value"), [("select", "best"), ("steiner", "greedy"), ("depth", 0)]
)
def test_an_unknown_option_is_named(option: str, value: object) -> None:
    with pytest.raises(BadInput) as caught:
        iterative(small_problem(), **{option: value})  # type: ignore[arg-type]
    assert caught.value.place == option


def test_the_optimal_algorithm_refuses_what_would_take_hours_and_names_exact() -> None:
    problem = generate_problem("video", seed=1, brokers=64)
    with pytest.raises(TooLarge, match="hint: method 'exact' finds the same plan") as caught:
        optimal(problem)
    assert caught.value.seconds > 60.0
    assert "\n" not in str(caught.value)
