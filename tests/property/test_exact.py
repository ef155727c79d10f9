"""The exact method against brute force, an integer program and slow twins of its kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.reference import exact_tables, placement_brute_force, placement_mip
from tests.strategies import conversion_costs, permuted, placement_problems

from distributary.arrays import BoolArray, FloatArray
from distributary.placement import PlacementProblem, check, cost, place
from distributary.placement import _exact_kernels as kernels
from distributary.placement._conversion_kernels import steiner_by_terminals
from distributary.placement.baselines import all_in_root
from distributary.placement.chains import cheapest_chains
from distributary.placement.compact import compact_plan
from distributary.placement.exact import estimate, exact_plan, table_plan
from distributary.placement.generate import generate_problem
from distributary.placement.plan import prune
from distributary.placement.useful import useful_formats


def exact_cost(problem: PlacementProblem) -> float:
    plan = exact_plan(problem)
    check(problem, plan)
    return cost(problem, plan).total


@settings(max_examples=300)
@given(placement_problems())
def test_exact_equals_brute_force(problem: PlacementProblem) -> None:
    """No enumeration of received sets and conversions finds anything cheaper."""
    assert exact_cost(problem) == pytest.approx(placement_brute_force.minimum_cost(problem))


@settings(max_examples=200)
@given(placement_problems(nodes_max=9, formats_max=7))
def test_small_and_large_problems_are_solved_alike(problem: PlacementProblem) -> None:
    """One pass over all brokers and a table for each inner broker find equally good plans."""
    assume(problem.served[0])
    usable = useful_formats(problem)
    usable[0] |= problem.held
    compact, tables = compact_plan(problem, usable), table_plan(problem, usable)
    check(problem, compact)
    check(problem, tables)
    assert cost(problem, prune(problem, compact)).total == pytest.approx(
        cost(problem, prune(problem, tables)).total
    )


def flags(shape: tuple[int, int]) -> st.SearchStrategy[BoolArray]:
    rows, columns = shape
    size = rows * columns
    return st.lists(st.booleans(), min_size=size, max_size=size).map(
        lambda drawn: np.array(drawn).reshape(shape)
    )


@settings(max_examples=100)
@given(placement_problems(), st.data())
def test_only_usable_formats_are_used(problem: PlacementProblem, data: st.DataObject) -> None:
    """Both ways keep to the same formats at each broker, and say the same of what that costs."""
    assume(problem.served[0])
    root = all_in_root(problem).available(problem)
    usable = root | (useful_formats(problem) & data.draw(flags(problem.wants.shape)))
    compact, tables = compact_plan(problem, usable), table_plan(problem, usable)
    check(problem, tables)
    check(problem, compact)
    assert not (compact.available(problem) & ~usable).any()
    assert cost(problem, prune(problem, compact)).total == pytest.approx(
        cost(problem, prune(problem, tables)).total
    )


@settings(max_examples=150)
@given(placement_problems(nodes_max=7, formats_max=6))
def test_exact_equals_an_integer_program(problem: PlacementProblem) -> None:
    """A formulation that shares nothing with the dynamic program has the same optimum."""
    assert exact_cost(problem) == pytest.approx(placement_mip.minimum_cost(problem), rel=1e-6)


@settings(max_examples=100)
@given(placement_problems(nodes_max=9, formats_max=5), st.randoms(use_true_random=False))
def test_exact_does_not_depend_on_order_or_names(problem: PlacementProblem, random: object) -> None:
    """Formats in another order and brokers under other names cost the same."""
    rng = np.random.default_rng(hash(str(random)) % 2**32)
    other = permuted(
        problem,
        format_order=rng.permutation(problem.format_count).tolist(),
        name_order=rng.permutation(problem.node_count).tolist(),
    )
    assert exact_cost(other) == pytest.approx(exact_cost(problem))


@settings(max_examples=100)
@given(placement_problems(nodes_max=6, formats_max=5))
def test_formats_left_out_as_useless_never_help(problem: PlacementProblem) -> None:
    """The plan over all formats is no cheaper than the plan over the useful ones."""
    everything: BoolArray = np.ones_like(problem.wants)
    unrestricted = cost(problem, exact_plan(problem, usable=everything)).total
    assert exact_cost(problem) == pytest.approx(unrestricted)
    assert not useful_formats(problem)[~problem.served].any()


@pytest.mark.parametrize("heterogeneity", ["none", "strong"])
def test_the_plan_does_not_depend_on_the_number_of_threads(heterogeneity: str) -> None:
    """Sums over children are taken in a fixed order, whoever computes them."""
    problem = generate_problem(
        "video", seed=3, brokers=128, formats=None, heterogeneity=heterogeneity
    )
    usable = useful_formats(problem)
    usable[0] |= problem.held
    one, two = (table_plan(problem, usable, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.receives, two.receives)
    assert np.array_equal(one.made_from, two.made_from)


def test_exact_refuses_what_it_cannot_do_before_it_starts() -> None:
    """The estimate of a large problem is out of bounds, and the message names the way out."""
    problem = generate_problem("dense", seed=1)
    need = estimate(problem)
    assert need.memory_bytes > 2**40
    with pytest.raises(Exception, match=r"about .* and .* GiB .* hint: use --method auto"):
        place(problem, method="exact")


tables = st.integers(3, 6).flatmap(
    lambda m: st.tuples(
        st.just(m),
        conversion_costs(formats=m),
        st.lists(
            st.sampled_from([0.0, 1.0, 2.5, 7.0, np.inf]), min_size=1 << m, max_size=1 << m
        ).map(np.array),
        st.lists(st.floats(0.0, 9.0, width=32), min_size=m, max_size=m).map(np.array),
        st.sampled_from([0.25, 1.0, 3.0]),
    )
)


@settings(max_examples=60)
@given(tables)
def test_conversions_relax_as_the_slow_twin_does(
    drawn: tuple[int, FloatArray, FloatArray, FloatArray, float],
) -> None:
    """The blocked pass equals one loop over sets from large to small."""
    _, costs, table, _, weight = drawn
    expected = exact_tables.relaxed(table, costs, weight)
    high, low = kernels.cheapest_inputs(costs)
    kernels.relax(table, high, low, weight)
    np.testing.assert_allclose(table, expected)


@settings(max_examples=60)
@given(tables)
def test_the_best_subset_is_received(
    drawn: tuple[int, FloatArray, FloatArray, FloatArray, float],
) -> None:
    """The transform equals the minimum over all subsets, set by set."""
    _, _, table, sizes, weight = drawn
    out = np.empty_like(table)
    kernels.receive(table, kernels.set_sizes(sizes), weight, out)
    expected = exact_tables.received(table, sizes, weight)
    np.testing.assert_allclose(out, expected)
    for offered in (0, 5, len(table) - 1):
        best = kernels.best_received(table, kernels.set_sizes(sizes), weight, offered)
        assert best & ~offered == 0
        price = table[best] + weight * sum(sizes[k] for k in exact_tables.members(best))
        assert price == pytest.approx(expected[offered]) or expected[offered] == np.inf


@settings(max_examples=60)
@given(tables, st.data())
def test_a_leaf_with_few_wishes_needs_no_table(
    drawn: tuple[int, FloatArray, FloatArray, FloatArray, float], data: st.DataObject
) -> None:
    """Groups of wishes made from single formats cost what the leaf's own table says."""
    m, costs, _, sizes, weight = drawn
    wishes = sorted(data.draw(st.sets(st.integers(0, m - 1), min_size=1, max_size=4)))
    own = np.zeros(1 << m)
    kernels.require(own, sum(1 << k for k in wishes))
    high, low = kernels.cheapest_inputs(costs)
    kernels.relax(own, high, low, 1.0)
    expected = exact_tables.received(own, sizes, weight)
    chains = cheapest_chains(costs).costs
    reached = steiner_by_terminals(
        chains, np.empty(0, dtype=np.int64), np.empty(0), np.array(wishes, dtype=np.int64)
    )[0][:, :m]
    total = np.zeros(1 << m)
    kernels.accumulate_leaf(total, np.ascontiguousarray(reached), sizes * weight)
    np.testing.assert_allclose(total, expected)


@settings(max_examples=60)
@given(st.integers(3, 6), st.data())
def test_a_child_that_knows_fewer_formats_is_projected(m: int, data: st.DataObject) -> None:
    """Formats the child does not know make no difference to it."""
    known = sorted(data.draw(st.sets(st.integers(0, m - 1))))
    part = np.arange(1 << len(known), dtype=np.float64)
    position = np.full(m, -1, dtype=np.int64)
    position[known] = np.arange(len(known))
    total = np.zeros(1 << m)
    kernels.accumulate_projected(total, part, position)
    for x in range(1 << m):
        assert total[x] == sum(1 << bit for bit, k in enumerate(known) if x >> k & 1)
