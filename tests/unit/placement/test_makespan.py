"""When transmissions and conversions run, on examples small enough to follow by hand."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from tests.commands import untraced

from distributary.content import AdaptationGraph
from distributary.errors import InvalidPlan
from distributary.placement.baselines import all_in_leaves, all_in_root
from distributary.placement.exact import exact_plan
from distributary.placement.makespan import (
    fastest_plan,
    latest_delivery,
    latest_delivery_bound,
    schedule,
)
from distributary.placement.plan import Plan, check
from distributary.placement.problem import PlacementProblem
from distributary.topology import DisseminationTree, TreeNode

# Format a is large, b and c are small and made from a.
GRAPH = AdaptationGraph.from_conversions(
    [("a", 8.0), ("b", 2.0), ("c", 1.0)], [("a", "b", 3.0), ("a", "c", 5.0)]
)
HELD = np.array([True, False, False])


def problem_of(
    nodes: list[TreeNode], wants: dict[str, str], graph: AdaptationGraph = GRAPH
) -> PlacementProblem:
    """Build a problem from who wants which one-letter formats."""
    tree = DisseminationTree.from_nodes(nodes)
    wanted = np.array(
        [[name in wants.get(node, "") for name in graph.names] for node in tree.names]
    )
    held = np.zeros(graph.format_count, dtype=np.bool_)
    held[0] = True
    return PlacementProblem(graph, tree, wanted, held)


ROOT = TreeNode("r", None)
LEAF = TreeNode("s", "r")


def test_formats_on_one_link_go_one_after_another() -> None:
    problem = problem_of([ROOT, LEAF], {"s": "abc"})
    found = schedule(problem, all_in_root(problem))
    # b is made by 3 and c by 8; a travels until 8, b until 10, c until 11.
    assert found.arrivals[1].tolist() == [8.0, 10.0, 11.0]
    assert found.starts[1].tolist() == [0.0, 8.0, 10.0]
    assert found.latest_delivery == found.finish == 11.0


def test_conversions_at_one_broker_run_one_after_another() -> None:
    problem = problem_of([ROOT, LEAF], {"s": "bc"})
    found = schedule(problem, all_in_leaves(problem))
    assert found.arrivals[1].tolist() == [8.0, 11.0, 16.0]


def test_links_of_one_broker_work_at_the_same_time() -> None:
    problem = problem_of([ROOT, LEAF, TreeNode("t", "r")], {"s": "a", "t": "a"})
    assert schedule(problem, all_in_root(problem)).arrivals[1:, 0].tolist() == [8.0, 8.0]


def test_the_longer_way_goes_first() -> None:
    """Broker t is one link farther and wants c, so c is made before b."""
    problem = problem_of([ROOT, LEAF, TreeNode("t", "s")], {"r": "b", "t": "c"})
    found = schedule(problem, all_in_root(problem))
    assert found.arrivals[0].tolist() == [0.0, 8.0, 5.0]
    assert found.latest_delivery == 8.0


def test_a_link_pauses_for_a_format_that_many_wait_for() -> None:
    """The link is free at 0 and could send a until 8; but b comes at 3 and has far to go."""
    nodes = [ROOT, LEAF, TreeNode("t", "s", bandwidth=0.1)]
    problem = problem_of(nodes, {"s": "a", "t": "b"})
    found = schedule(problem, all_in_root(problem))
    assert found.starts[1, 1] == 3.0
    assert found.starts[1, 0] == 5.0
    assert found.latest_delivery == 25.0


def test_bandwidth_and_node_factor_stretch_time_but_weights_do_not() -> None:
    tree = DisseminationTree.from_nodes([ROOT, TreeNode("s", "r", node_cost=2.0, bandwidth=4.0)])
    wants = np.array([[False, False, False], [False, True, False]])
    problem = PlacementProblem(GRAPH, tree, wants, HELD, alpha=7.0, beta=9.0)
    assert latest_delivery(problem, all_in_leaves(problem)) == 8.0 / 4.0 + 2.0 * 3.0


def test_a_link_without_cost_takes_no_time() -> None:
    problem = problem_of([ROOT, TreeNode("s", "r", link_cost=0.0)], {"s": "a"})
    assert latest_delivery(problem, all_in_root(problem)) == 0.0
    assert latest_delivery_bound(problem) == 0.0
    check(problem, fastest_plan(problem))


def test_nothing_wanted_is_delivered_at_once() -> None:
    problem = problem_of([ROOT, LEAF], {})
    found = schedule(problem, Plan.empty(problem))
    assert (found.latest_delivery, found.finish) == (0.0, 0.0)
    assert not fastest_plan(problem).receives.any()


def test_what_is_held_is_delivered_at_once() -> None:
    problem = problem_of([ROOT, LEAF], {"r": "a"})
    assert latest_delivery(problem, fastest_plan(problem)) == 0.0


def test_useless_work_is_done_last_and_takes_its_time() -> None:
    problem = problem_of([ROOT], {"r": "c"})
    plan = all_in_root(problem)
    plan.made_from[0, 1] = 0
    found = schedule(problem, plan)
    assert found.latest_delivery == 5.0
    assert found.finish == 8.0


def test_an_invalid_plan_has_no_schedule() -> None:
    problem = problem_of([ROOT, LEAF], {"s": "b"})
    with pytest.raises(InvalidPlan, match="'s': wants 'b'"):
        schedule(problem, Plan.empty(problem))


def test_a_broker_cannot_have_its_wishes_before_link_and_processor_can_be_done() -> None:
    """Alone b takes 5 and c takes 6, but the root has only one processor for both."""
    problem = problem_of([ROOT], {"r": "bc"})
    assert latest_delivery_bound(problem) == pytest.approx(8.0)
    assert latest_delivery(problem, fastest_plan(problem)) == 8.0


def test_the_fastest_plan_spreads_work_that_the_cheapest_plan_does_once() -> None:
    """Over fast links the cheapest plan converts once at the root, one format after another."""
    nodes = [ROOT, *(TreeNode(name, "r", link_cost=0.1, bandwidth=100.0) for name in "st")]
    problem = problem_of(nodes, {"s": "b", "t": "c"})
    cheapest, fastest = exact_plan(problem), fastest_plan(problem)
    assert latest_delivery(problem, cheapest) > latest_delivery(problem, fastest)
    assert latest_delivery(problem, fastest) == pytest.approx(5.01)


def test_of_equally_fast_plans_the_cheaper_is_taken() -> None:
    """Broker t waits for c until 6 anyway, so s need not have its own copy of a for b."""
    nodes = [ROOT, LEAF, TreeNode("t", "r", bandwidth=0.01)]
    problem = problem_of(nodes, {"s": "b", "t": "c"})
    plan = fastest_plan(problem)
    assert latest_delivery(problem, plan) == latest_delivery_bound(problem) == 105.0
    assert plan.receives[1].tolist() == [False, True, False]


def test_a_time_limit_only_cuts_the_search() -> None:
    problem = problem_of([ROOT, LEAF, TreeNode("t", "s")], {"s": "bc", "t": "abc"})
    plan = fastest_plan(problem, time_limit=1e-9)
    check(problem, plan)
    assert latest_delivery(problem, plan) >= latest_delivery_bound(problem)


def test_progress_is_reported_in_order() -> None:
    nodes = [ROOT, LEAF, TreeNode("t", "s")]
    problem = problem_of(nodes, {"r": "bc", "s": "bc", "t": "abc"})
    seen: list[tuple[str, int, int]] = []
    fastest_plan(problem, rounds=5, observe=lambda *progress: seen.append(progress))
    assert seen == [("fastest", done, 5) for done in range(1, len(seen) + 1)]


INTERRUPTED = """
import signal
import numpy as np
from distributary.cli import _was_interrupted
from distributary.placement._makespan_kernels import list_schedule
from distributary.placement.baselines import single_format
from distributary.placement.generate import generate_problem
from distributary.placement.makespan import jobs_of

def interrupt(*_):
    raise KeyboardInterrupt

problem = generate_problem("map", seed=1, brokers=12)
jobs, before = jobs_of(problem), single_format(problem).arborescence(problem)
list_schedule(jobs, before, np.inf)
signal.signal(signal.SIGALRM, interrupt)
interrupted = 0
while interrupted < 300:
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-3)
        while True:
            list_schedule(jobs, before, np.inf)
    except (KeyboardInterrupt, SystemError) as error:
        assert _was_interrupted(error)
        interrupted += 1
"""


def test_an_interrupt_at_any_moment_ends_a_schedule_and_not_the_process() -> None:
    """A named tuple that Numba was building for Python then took the process with it."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, check=False, env=untraced()
    )
    assert done.returncode == 0, done.stderr
