"""Small fidelity problems and forests with every oddity the model allows."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from distributary.arrays import FloatArray, IntArray
from distributary.fidelity.forest import OUTSIDE, ROOT, Forest, members
from distributary.fidelity.problem import Adaptation, FidelityProblem

# Few values make ties; sixteenths add up without rounding, so that loads of exactly 1 occur.
RATES = st.one_of(st.sampled_from([1.0, 0.5, 2.0]), st.floats(0.0625, 4.0, width=32))
TIMES = st.one_of(st.sampled_from([0.0, 0.0625, 0.125, 0.25, 0.5]), st.floats(0.0, 0.375, width=32))
DELAYS = st.one_of(st.sampled_from([0.0, 1.0, 0.25]), st.floats(0.0, 2.0, width=32))
ADAPTATIONS = st.one_of(
    st.none(),
    st.builds(
        Adaptation,
        collect_time=st.sampled_from([0.0, 1e-3, 0.5]),
        collect_period=st.sampled_from([50.0, 1.0]),
        decide_time=st.sampled_from([0.0, 1e-3, 0.25]),
        decide_period=st.sampled_from([200.0, 1.0]),
    ),
)
# How busy the source is when it serves everybody itself: idle, busy, about to be
# overloaded, overloaded, and so much that only few trees, or none, can be served.
BUSY = (0.05, 0.5, 0.95, 1.05, 2.0, 4.0)


def server_names(count: int) -> tuple[str, ...]:
    """Return the name of the source and those of `count` servers, in the order of a problem."""
    return ("s", *(f"n{i:03d}" for i in range(1, count + 1)))


@st.composite
def drawn_problems(draw: st.DrawFn, *, servers_max: int, objects_max: int) -> FidelityProblem:
    """Draw a problem number by number, so that a failing one shrinks well.

    Among them: servers and objects nobody wants anything of, ties, times and delays of
    zero, a source whose own rate is zero, the largest, or in between, and loads from
    nothing to many times what a node can do.
    """
    servers = draw(st.sampled_from(range(servers_max, 0, -1)))
    objects = draw(st.sampled_from(range(objects_max, 0, -1)))
    rates = np.zeros((servers + 1, objects))
    for i, x in np.ndindex(rates.shape):
        if draw(st.sampled_from([True, True, False])):
            rates[i, x] = draw(RATES)
    source = draw(st.sampled_from(["zero", "largest", "any"]))
    if source == "zero":
        rates[0] = 0.0
    elif source == "largest":
        rates[0] = rates.max(axis=0)
    count = servers + 1
    return FidelityProblem(
        server_names(servers),
        tuple(f"o{x}" for x in range(objects)),
        rates,
        np.array([draw(TIMES) for _ in range(count)]),
        np.array([draw(TIMES) for _ in range(count)]),
        np.array([[0.0 if i == j else draw(DELAYS) for j in range(count)] for i in range(count)]),
        draw(ADAPTATIONS),
    )


def random_problem(
    seed: int,
    *,
    servers: int,
    objects: int = 1,
    busy: float = 0.5,
    whole: bool = False,
    adapted: bool = False,
) -> FidelityProblem:
    """Return a problem that is rarely degenerate, of a chosen load.

    Parameters
    ----------
    seed
        Decides everything that the other arguments leave open.
    servers, objects
        How many there are of each.
    busy
        About the load of a node that serves everybody itself.
    whole
        Equal rates and times, so that there are ties, or any.
    adapted
        Whether adapting the trees has a cost.
    """
    rng = np.random.default_rng(seed)
    count = servers + 1

    def amounts(low: float, high: float, *shape: int) -> FloatArray:
        drawn = rng.uniform(low, high, shape)
        return np.round(drawn) if whole else drawn

    rates = amounts(0.5, 2.0, count, objects) + (0.5 if whole else 0.0)
    if objects > 1:
        rates *= rng.random((count, objects)) < rng.choice([0.4, 0.8, 1.0])
    if rng.random() < 0.3:
        rates[1:][rng.random(servers) < 0.2] = 0.0
    rates[0] = {0: 0.0, 1: rates.max(axis=0)}.get(int(rng.integers(3)), rates[0])
    speeds = amounts(0.5, 2.0, count) + (0.5 if whole else 0.0)
    share = rng.choice([0.0, 0.3, 0.8, 1.0])
    message = busy / (servers * objects * 1.25)
    points = rng.random((count, 2))
    delays = np.linalg.norm(points[:, None] - points[None], axis=2) * 0.05
    return FidelityProblem(
        server_names(servers),
        tuple(f"o{x:03d}" for x in range(objects)),
        rates,
        speeds * message * (1.0 - share),
        speeds * message * share,
        np.round(delays, 2) if whole else delays,
        Adaptation(1e-6, 50.0, 1e-6, 200.0) if adapted else None,
    )


def fidelity_problems(
    *, servers_max: int = 8, objects_max: int = 4, busy: tuple[float, ...] = BUSY
) -> st.SearchStrategy[FidelityProblem]:
    """Return a strategy for problems, odd ones and ordinary ones."""
    seeded = st.builds(
        random_problem,
        st.integers(0, 2**32),
        servers=st.sampled_from(range(servers_max, 0, -1)),
        objects=st.sampled_from(range(objects_max, 0, -1)),
        busy=st.sampled_from(busy),
        whole=st.booleans(),
        adapted=st.booleans(),
    )
    drawn = drawn_problems(servers_max=servers_max, objects_max=objects_max)
    return st.integers(0, 2).flatmap(lambda choice: drawn if choice == 0 else seeded)


def random_forest(problem: FidelityProblem, approach: str, *, seed: int) -> Forest:
    """Return a valid forest of any shape, from paths to stars.

    Every server goes below one of those already in the tree, among the first, the last or
    any of them.
    """
    rng = np.random.default_rng(seed)
    inside = members(problem, approach)
    parents: IntArray = np.full(inside.shape, OUTSIDE, dtype=np.int64)
    parents[:, 0] = ROOT
    for tree, row in enumerate(inside):
        order = np.concatenate([[0], rng.permutation(np.flatnonzero(row[1:]) + 1)])
        shape = int(rng.integers(4))
        for index in range(1, len(order)):
            low, high = {0: (0, min(index, 2)), 1: (index - 1, index)}.get(shape, (0, index))
            parents[tree, order[index]] = order[rng.integers(low, high)]
    return Forest(approach, parents)


@st.composite
def problems_with_forests(
    draw: st.DrawFn,
    *,
    approach: str | None = None,
    servers_max: int = 8,
    objects_max: int = 4,
    busy: tuple[float, ...] = BUSY,
) -> tuple[FidelityProblem, Forest]:
    """Draw a problem and a valid forest for it, of the given approach or of any."""
    problem = draw(fidelity_problems(servers_max=servers_max, objects_max=objects_max, busy=busy))
    chosen = approach or draw(st.sampled_from(["one-tree", "tree-each"]))
    return problem, random_forest(problem, chosen, seed=draw(st.integers(0, 2**32)))


def permuted(
    problem: FidelityProblem, forest: Forest, *, names: list[int], objects: list[int]
) -> tuple[FidelityProblem, Forest]:
    """Return the same problem and forest under other names, which puts them in another order.

    Server `i` (1 and up) takes the name of server `names[i - 1]`, object `x` the name of
    `objects[x]`.
    """
    renamed = [problem.names[0], *(problem.names[i] for i in names)]
    things = [problem.objects[x] for x in objects]
    other = FidelityProblem.in_order(
        names=renamed,
        source=problem.names[0],
        objects=things,
        rates=problem.rates,
        filter_times=problem.filter_times,
        send_times=problem.send_times,
        delays=problem.delays,
        adaptation=problem.adaptation,
    )
    place = np.array([other.names.index(name) for name in renamed])
    parents = np.empty_like(forest.parents)
    for tree, row in enumerate(forest.parents):
        new_tree = 0 if forest.approach == "one-tree" else other.objects.index(things[tree])
        parents[new_tree, place] = np.where(row >= 0, place[np.maximum(row, 0)], row)
    return other, Forest(forest.approach, parents)
