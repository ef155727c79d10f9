"""What Zhou, Ooi and Tan prove of the greedy method: Theorem 1 of section 3.3.1.

Let `d_i` be the delay from the source to server `i` plus the time that `i` takes to filter
and to send. In a greedy tree of height `h`, and with delays that satisfy the triangle
inequality, the delay on the way to `i` is at most `2 * d_i * h`. With at most `C` children
and rates of at most `r`, waiting and being served adds at most
`h * ((1 + r*C*d_i) / (2 * (1 - r*C*d_i)) * C * d_i + d_i)`, as long as `r*C*d_i` is below 1.

The proof takes it for granted that no server is quicker than the source is, even from next
to it; the bound on the way needs nothing of the kind.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distributary.arrays import FloatArray, IntArray
from distributary.fidelity import FidelityProblem, StreamTrees, build_trees

ROUNDING = 1.0 + 1e-9


def plane_problem(
    seed: int, *, servers: int, objects: int, rate: float, delay: float
) -> FidelityProblem:
    """Return a problem whose nodes are points in the plane, with a source as in the paper.

    Parameters
    ----------
    seed
        Decides everything that the other arguments leave open.
    servers, objects
        How many there are of each.
    rate
        The largest rate of updates, of all objects together.
    delay
        The delay across a side of the square in which the nodes stand.
    """
    rng = np.random.default_rng(seed)
    count = servers + 1
    points = delay * rng.random((count, 2))
    wanted = rng.random((count, objects)) < 0.7
    wanted[np.arange(count), rng.integers(objects, size=count)] = True
    rates = np.where(wanted, rng.uniform(0.2, 1.0, (count, objects)), 0.0) * (rate / objects)
    rates[0] = rate / objects
    times = rng.uniform(0.001, 0.01, (2, count))
    times[:, 0] = 0.001
    return FidelityProblem(
        ("s", *(f"n{i:03d}" for i in range(1, count))),
        tuple(f"o{x}" for x in range(objects)),
        rates,
        times[0],
        times[1],
        np.linalg.norm(points[:, None] - points[None], axis=2),
    )


PROBLEMS = st.builds(
    plane_problem,
    st.integers(0, 2**32),
    servers=st.integers(1, 40),
    objects=st.integers(1, 3),
    rate=st.sampled_from([0.1, 1.0, 5.0, 20.0]),
    delay=st.sampled_from([0.0, 0.001, 0.02, 1.0]),
)


def along_the_way(parents: IntArray, edges: FloatArray) -> FloatArray:
    """Return the sum of `edges`, the number at each node, on the way from the source to it."""
    sums = np.zeros(len(parents))
    for i in range(1, len(parents)):
        at = i
        while at > 0:
            sums[i] += edges[at]
            at = int(parents[at])
    return sums


def bounded(
    problem: FidelityProblem, built: StreamTrees
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return what each server waits on the way and for being served, and the bounds on both."""
    parents = built.forest.parents[0]
    servers = np.arange(1, problem.node_count)
    far = (problem.delays[0] + problem.filter_times + problem.send_times)[servers]
    height = along_the_way(parents, np.ones(problem.node_count)).max()
    edges = np.zeros(problem.node_count)
    edges[servers] = problem.delays[parents[servers], servers]
    way = along_the_way(parents, edges)[servers]
    children = np.bincount(parents[servers]).max()
    # With several objects in one tree, the rates are those of all of them together.
    busy = problem.rates.max(axis=0).sum() * children * far
    queueing = np.full(len(servers), np.inf)
    np.divide(1.0 + busy, 2.0 * (1.0 - busy), out=queueing, where=busy < 1.0)
    return {
        "way": (way, 2.0 * far * height),
        "served": (built.loss.delays[servers, 0] - way, height * (queueing * children * far + far)),
    }


@settings(max_examples=200)
@given(PROBLEMS)
def test_a_greedy_tree_keeps_to_the_bounds_of_theorem_1(problem: FidelityProblem) -> None:
    for waited, bound in bounded(problem, build_trees(problem, method="greedy")).values():
        assert np.all(waited <= bound * ROUNDING)


@pytest.mark.parametrize(("part", "rate", "delay"), [("way", 1.0, 1.0), ("served", 1.0, 0.0)])
def test_a_tree_in_another_order_breaks_them(part: str, rate: float, delay: float) -> None:
    """The bounds say something: random trees, which may put the far or slow first, exceed them."""
    broken = 0
    for seed in range(50):
        problem = plane_problem(seed, servers=30, objects=1, rate=rate, delay=delay)
        waited, bound = bounded(problem, build_trees(problem, method="random", seed=seed))[part]
        broken += bool(np.any(waited > bound * ROUNDING))
    assert broken > 0
