"""What a wiring costs, and the compiled trees under it, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import wiring as reference
from tests.strategies_wiring import random_wiring_problem, wiring_problems

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.topology.prices import shortest_prices
from distributary.wiring._core_kernels import grow_tree, insertion_weight
from distributary.wiring._steiner_kernels import subset_weights
from distributary.wiring.core import STEINER_EXACT_MAX, broker_tree, core_costs, reach, traffic
from distributary.wiring.cost import cost
from distributary.wiring.problem import WiringProblem
from distributary.wiring.wiring import CORES, loads

SEEDS = st.integers(0, 2**32)


def random_prices(seed: int, count: int, *, whole: bool = False) -> FloatArray:
    """Return distances on a plane, or cheapest paths between random whole prices."""
    rng = np.random.default_rng(seed)
    if whole:
        drawn = np.triu(rng.integers(0, 6, (count, count)), 1).astype(np.float64)
        return shortest_prices(drawn + drawn.T)
    points = rng.random((count, 2))
    return np.asarray(np.linalg.norm(points[:, None] - points[None], axis=2))


def random_sets(seed: int, channels: int, count: int) -> BoolArray:
    """Return sets of brokers of every size, empty ones among them."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.random((channels, count)) < rng.random((channels, 1)))


def random_wiring(problem: WiringProblem, seed: int) -> IntArray:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.integers(problem.broker_count, size=problem.user_count), dtype=np.int64)


def grown(prices: FloatArray, members: IntArray) -> tuple[float, IntArray, IntArray, FloatArray]:
    """Return the weight of the tree of some brokers, and the tree."""
    count = len(members)
    parents, order = np.empty(count, dtype=np.int64), members.copy()
    edges = np.empty(count)
    return grow_tree(count, prices, parents, edges, order), order, parents, edges


@settings(max_examples=150)
@given(wiring_problems(users_max=7, brokers_max=5), SEEDS)
def test_cost_equals_the_definition(problem: WiringProblem, seed: int) -> None:
    """Demands, loads, access cost and core cost in all three modes agree."""
    broker_of = random_wiring(problem, seed)
    plain = reference.instance(problem)
    chosen = broker_of.tolist()
    assert problem.demands == pytest.approx(
        np.array([reference.demand(plain, u) for u in plain.users]), rel=1e-12, abs=1e-12
    )
    assert loads(problem, broker_of) == pytest.approx(
        np.array([reference.load(plain, chosen, b) for b in plain.brokers]), rel=1e-12, abs=1e-12
    )
    for core in CORES:
        found = cost(problem, broker_of, core=core)
        assert found.access == pytest.approx(reference.access_cost(plain, chosen), abs=1e-9)
        expected = reference.core_cost(plain, chosen, reference.weigher(problem, core))
        assert found.core == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=60)
@given(wiring_problems(users_max=7, brokers_max=5), SEEDS)
def test_what_enters_and_who_listens_are_counted_by_broker(
    problem: WiringProblem, seed: int
) -> None:
    broker_of = random_wiring(problem, seed)
    entering, subscribers = traffic(problem, broker_of)
    for c, b in np.ndindex(entering.shape):
        here = broker_of == b
        assert entering[c, b] == pytest.approx(problem.publishes[here, c].sum())
        assert subscribers[c, b] == problem.subscribes[here, c].sum()
    assert core_costs(problem, broker_of).sum() == pytest.approx(cost(problem, broker_of).core)


@settings(max_examples=100)
@given(wiring_problems(users_max=6, brokers_max=5), SEEDS)
def test_branching_points_save_and_one_tree_costs(problem: WiringProblem, seed: int) -> None:
    """No tree is cheaper than the best, and none within a given tree than that."""
    broker_of = random_wiring(problem, seed)
    spanning, steiner, one_tree = (cost(problem, broker_of, core=core).core for core in CORES)
    assert steiner <= spanning + 1e-9
    assert steiner <= one_tree + 1e-9


@settings(max_examples=100)
@given(SEEDS, st.integers(1, 12), st.booleans())
def test_a_grown_tree_weighs_as_much_as_kruskals(seed: int, count: int, whole: bool) -> None:
    """It is a tree of the members, every edge has its price, and none is lighter."""
    prices = random_prices(seed, count, whole=whole)
    rng = np.random.default_rng(seed)
    members = rng.permutation(count)[: rng.integers(1, count + 1)].astype(np.int64)
    weight, order, parents, edges = grown(prices, members)
    assert sorted(order.tolist()) == sorted(members.tolist())
    assert order[0] == members[0]
    assert parents[0] == -1
    for i in range(1, len(members)):
        assert 0 <= parents[i] < i
        assert edges[i] == prices[order[i], order[parents[i]]]
    expected = reference.spanning_weight(prices.tolist(), members.tolist())
    assert weight == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert edges.sum() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(max_examples=150)
@given(SEEDS, st.integers(2, 14), st.booleans())
def test_a_tree_with_one_more_broker_weighs_as_much_as_grown_anew(
    seed: int, count: int, whole: bool
) -> None:
    prices = random_prices(seed, count, whole=whole)
    rng = np.random.default_rng(seed)
    members = rng.permutation(count)[: rng.integers(1, count)].astype(np.int64)
    _, order, parents, edges = grown(prices, members)
    ways = np.empty(len(members))
    for b in range(count):
        found = insertion_weight(len(members), order, parents, edges, prices[b], ways)
        expected = reference.spanning_weight(prices.tolist(), {*members.tolist(), b})
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 9), st.booleans())
def test_spanning_trees_are_reached_from_every_broker(seed: int, count: int, whole: bool) -> None:
    prices = random_prices(seed, count, whole=whole)
    inside = random_sets(seed, 3, count)
    rows = reach(prices, inside)
    for c, b in np.ndindex(rows.shape):
        members = np.flatnonzero(inside[c]).tolist()
        expected = reference.spanning_weight(prices.tolist(), {*members, b}) if members else 0.0
        assert rows[c, b] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 30), st.booleans())
def test_one_tree_is_cut_where_an_edge_separates(seed: int, count: int, whole: bool) -> None:
    """Within one tree, a flow pays for exactly the edges with members on both sides."""
    prices = random_prices(seed, count, whole=whole)
    inside = random_sets(seed, 3, count)
    tree = broker_tree(prices)
    order = tree.order.tolist()
    edges = [
        (float(tree.edges[i]), int(order[tree.parents[i]]), int(order[i])) for i in range(1, count)
    ]
    total = sum(price for price, _, _ in edges)
    assert total == pytest.approx(reference.spanning_weight(prices.tolist(), range(count)))
    rows = reach(prices, inside, "one-tree")
    for c, b in np.ndindex(rows.shape):
        members = np.flatnonzero(inside[c]).tolist()
        expected = reference.weight_within(edges, {*members, b}) if members else 0.0
        assert rows[c, b] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(max_examples=40)
@given(SEEDS, st.integers(1, 6), st.booleans())
def test_branching_points_of_few_brokers_are_the_best(seed: int, count: int, whole: bool) -> None:
    prices = random_prices(seed, count, whole=whole)
    weights = subset_weights(prices, True)
    spanning = subset_weights(prices, False)
    for chosen in range(1 << count):
        members = [b for b in range(count) if chosen >> b & 1]
        assert weights[chosen] == pytest.approx(
            reference.steiner_weight(prices.tolist(), members) if members else 0.0, abs=1e-12
        )
        assert spanning[chosen] == pytest.approx(
            reference.spanning_weight(prices.tolist(), members), abs=1e-12
        )


@settings(max_examples=25)
@given(SEEDS, st.integers(STEINER_EXACT_MAX + 1, 12), st.booleans())
def test_branching_points_of_many_brokers_are_between_best_and_none(
    seed: int, count: int, whole: bool
) -> None:
    """A tree that is found is a tree: never lighter than the best, nor heavier than spanning."""
    prices = random_prices(seed, count, whole=whole)
    inside = random_sets(seed, 3, count)
    # All sets of a dozen brokers at once; `subset_weights` has its own comparison above.
    best = subset_weights(prices, True)
    bits = 1 << np.arange(count)
    sets = inside @ bits
    lightest = np.where(sets[:, None] == 0, 0.0, best[sets[:, None] | bits[None, :]])
    found = reach(prices, inside, "steiner")
    spanning = reach(prices, inside)
    assert np.all(found >= lightest - 1e-9)
    assert np.all(found <= spanning + 1e-9)


def test_branching_points_of_many_brokers_are_usually_the_best() -> None:
    """Where a star in the middle saves, the search for branching points finds the saving."""
    saved, possible = 0.0, 0.0
    for seed in range(20):
        prices = random_prices(seed, 12)
        inside = np.zeros((1, 12), dtype=np.bool_)
        inside[0, :5] = True
        best = subset_weights(prices, True)[31 | 1 << np.arange(12)]
        spanning = reach(prices, inside)[0]
        saved += float((spanning - reach(prices, inside, "steiner")[0]).sum())
        possible += float((spanning - best).sum())
    assert possible > 0.0
    assert saved >= 0.8 * possible


@settings(max_examples=80)
@given(SEEDS, st.integers(1, 8), st.booleans())
def test_shortest_prices_equal_taking_short_cuts(seed: int, count: int, whole: bool) -> None:
    """They are a metric, never dearer than given, and the same when shortened again."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, 9, (count, count)).astype(float) if whole else rng.random((count,) * 2)
    prices = np.triu(drawn, 1) + np.triu(drawn, 1).T
    found = shortest_prices(prices)
    assert found == pytest.approx(np.array(reference.shortest_prices(prices.tolist())), rel=1e-9)
    assert np.array_equal(found, found.T)
    assert np.all(found <= prices)
    assert np.all(found[:, :, None] <= (found[:, None, :] + found[None, :, :]) + 1e-9)
    assert np.array_equal(shortest_prices(found), found)


def test_distances_are_left_as_they_are() -> None:
    prices = random_prices(7, 40)
    assert np.array_equal(shortest_prices(prices), prices)


def test_only_users_who_may_move_do_in_the_enumeration() -> None:
    """The oracle for re-wiring: more moves never cost more, and all moves give the optimum."""
    problem = random_wiring_problem(3, users=5, brokers=3, channels=2, room="none")
    start = random_wiring(problem, 1).tolist()
    found = [reference.best(problem, "mst", start=start, moves=moves) for moves in range(6)]
    everything = reference.best(problem, "mst")
    assert everything is not None
    costs = [item[0] for item in found if item is not None]
    assert len(costs) == 6
    assert costs[0] == pytest.approx(cost(problem, np.array(start)).total)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == everything[0]
