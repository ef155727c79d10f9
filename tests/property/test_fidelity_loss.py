"""The compiled cost model against the equations, and what must not change the cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.reference import fidelity_loss as reference
from tests.strategies_fidelity import permuted, problems_with_forests, random_problem

from distributary.fidelity.forest import Forest, check
from distributary.fidelity.loss import loss
from distributary.fidelity.problem import FidelityProblem


def decided(problem: FidelityProblem, forest: Forest) -> bool:
    """Say whether every node is clearly overloaded or clearly not, whatever the rounding."""
    return bool(np.all(np.abs(loss(problem, forest).loads - 1.0) > 1e-9))


@settings(max_examples=250)
@given(problems_with_forests())
def test_loss_equals_the_equations(drawn: tuple[FidelityProblem, Forest]) -> None:
    """Average, loss of every server, load of every node and the overloaded ones agree."""
    problem, forest = drawn
    check(problem, forest)
    found = loss(problem, forest)
    expected = reference.reference_loss(problem, forest)
    loads = [expected.loads[name] for name in problem.names]
    assert found.loads == pytest.approx(np.array(loads), rel=1e-9, abs=1e-12)
    assume(decided(problem, forest))
    assert found.average == pytest.approx(expected.average, rel=1e-9)
    assert found.servers == pytest.approx(
        np.array([expected.servers.get(name, 0.0) for name in problem.names]), rel=1e-9
    )
    assert found.overloaded == tuple(name for name in problem.names if expected.loads[name] >= 1)
    assert np.isinf(found.average) == bool(found.overloaded)


@settings(max_examples=120)
@given(problems_with_forests(approach="one-tree", objects_max=1))
def test_all_three_forms_agree_on_one_object(drawn: tuple[FidelityProblem, Forest]) -> None:
    """One tree for all objects, a tree for each and equations (2) to (6) are then the same."""
    problem, forest = drawn
    each = Forest("tree-each", forest.parents)
    check(problem, each)
    assert loss(problem, each).loads == pytest.approx(loss(problem, forest).loads, rel=1e-12)
    assume(decided(problem, forest))
    assert loss(problem, each).average == pytest.approx(loss(problem, forest).average, rel=1e-9)
    assert loss(problem, each).servers == pytest.approx(loss(problem, forest).servers, rel=1e-9)
    assume(problem.served.any())
    (parents,) = reference.parents_by_name(problem, forest)
    single = reference.single_object(reference.instance(problem), parents)
    assert loss(problem, forest).average == pytest.approx(single.average, rel=1e-9)


@settings(max_examples=120)
@given(problems_with_forests(), st.data())
def test_loss_does_not_depend_on_names_or_order(
    drawn: tuple[FidelityProblem, Forest], data: st.DataObject
) -> None:
    """Servers and objects under other names, and so in another order, lose the same."""
    problem, forest = drawn
    names = data.draw(st.permutations(range(1, problem.node_count)))
    objects = data.draw(st.permutations(range(problem.object_count)))
    other, moved = permuted(problem, forest, names=names, objects=objects)
    check(other, moved)
    assume(decided(problem, forest))
    found, again = loss(problem, forest), loss(other, moved)
    assert again.average == pytest.approx(found.average, rel=1e-9)
    server = [0, *(other.names.index(problem.names[i]) for i in names)]
    assert again.servers[server] == pytest.approx(found.servers, rel=1e-9)
    assert again.loads[server] == pytest.approx(found.loads, rel=1e-9)


@settings(max_examples=100)
@given(problems_with_forests(), st.integers(0, 2**32))
def test_nodes_and_objects_in_any_order_make_the_same_problem(
    drawn: tuple[FidelityProblem, Forest], seed: int
) -> None:
    """The order of the input leaves no trace at all: arrays are equal to the last bit."""
    problem, forest = drawn
    rng = np.random.default_rng(seed)
    nodes = rng.permutation(problem.node_count)
    objects = rng.permutation(problem.object_count)
    other = FidelityProblem.in_order(
        names=[problem.names[i] for i in nodes],
        source=problem.names[0],
        objects=[problem.objects[x] for x in objects],
        rates=problem.rates[np.ix_(nodes, objects)],
        filter_times=problem.filter_times[nodes],
        send_times=problem.send_times[nodes],
        delays=problem.delays[np.ix_(nodes, nodes)],
        adaptation=problem.adaptation,
    )
    assert (other.names, other.objects) == (problem.names, problem.objects)
    assert np.array_equal(other.rates, problem.rates)
    assert loss(other, forest).average == loss(problem, forest).average


@settings(max_examples=100)
@given(problems_with_forests())
def test_a_server_that_wants_nothing_changes_nothing(
    drawn: tuple[FidelityProblem, Forest],
) -> None:
    """One more such server, however slow, leaves the average and all loads as they were."""
    problem, forest = drawn
    count = problem.node_count
    delays = np.full((count + 1, count + 1), 7.0)
    delays[:count, :count] = problem.delays
    other = FidelityProblem(
        (*problem.names, "zzz"),
        problem.objects,
        np.vstack([problem.rates, np.zeros(problem.object_count)]),
        np.append(problem.filter_times, 9.0),
        np.append(problem.send_times, 9.0),
        delays,
        problem.adaptation,
    )
    outside = np.full((len(forest.parents), 1), -2)
    wider = Forest(forest.approach, np.hstack([forest.parents, outside]))
    check(other, wider)
    assert loss(other, wider).average == loss(problem, forest).average
    assert np.array_equal(loss(other, wider).loads, np.append(loss(problem, forest).loads, 0.0))


def test_a_node_that_is_busy_all_the_time_is_overloaded() -> None:
    """A load of exactly 1 is too much, one just below is not."""
    problem = FidelityProblem(
        ("s", "a", "b"),
        ("o",),
        np.array([[1.0], [1.0], [1.0]]),
        np.array([0.5, 0.0, 0.0]),
        np.zeros(3),
        np.zeros((3, 3)),
    )
    both = loss(problem, Forest("one-tree", np.array([[-1, 0, 0]])))
    assert both.loads[0] == 1.0
    assert both.average == np.inf
    assert both.overloaded == ("s",)
    chain = loss(problem, Forest("one-tree", np.array([[-1, 0, 1]])))
    assert chain.overloaded == ()
    assert chain.average == pytest.approx(1.0)


def test_nothing_wanted_loses_nothing() -> None:
    problem = random_problem(1, servers=3)
    nothing = FidelityProblem(
        problem.names,
        problem.objects,
        np.zeros_like(problem.rates),
        problem.filter_times.copy(),
        problem.send_times.copy(),
        problem.delays.copy(),
    )
    for approach in ("one-tree", "tree-each"):
        found = loss(nothing, Forest(approach, np.array([[-1, -2, -2, -2]])))
        assert found.average == 0.0
        assert found.overloaded == ()
