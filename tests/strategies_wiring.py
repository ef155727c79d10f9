"""Hypothesis strategies for small wiring problems with every oddity the model allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from distributary.arrays import FloatArray
from distributary.wiring.problem import WiringProblem

# Whole numbers make ties, zeros make users without traffic and free links.
_AMOUNTS = st.one_of(
    st.sampled_from([1.0, 2.0, 0.0, 3.0]),
    st.floats(0.125, 20.0, width=32),
)


@st.composite
def drawn_wiring_problems(
    draw: st.DrawFn, *, users_max: int, brokers_max: int, channels_max: int
) -> WiringProblem:
    """Draw a problem number by number, so that a failing one shrinks well.

    Among them: users who neither publish nor subscribe, users who want what they publish,
    channels that nobody publishes or nobody wants, one broker, free links, ties, and core
    prices that break the triangle inequality.
    """
    # Not by size from below: most examples would be too small to go wrong.
    users = draw(st.sampled_from(range(users_max, 0, -1)))
    brokers = draw(st.sampled_from(range(brokers_max, 0, -1)))
    channels = draw(st.sampled_from(range(channels_max, 0, -1)))

    def amounts(rows: int, columns: int) -> FloatArray:
        cells = st.lists(_AMOUNTS, min_size=rows * columns, max_size=rows * columns)
        return np.array(draw(cells), dtype=np.float64).reshape(rows, columns)

    publishes = amounts(users, channels)
    subscribes = np.array(
        draw(st.lists(st.booleans(), min_size=users * channels, max_size=users * channels)),
        dtype=np.bool_,
    ).reshape(users, channels)
    for user in draw(st.sets(st.integers(0, users - 1), max_size=2)):
        publishes[user] = 0.0
        subscribes[user] = False
    core = np.triu(amounts(brokers, brokers), 1)
    return _with_capacities(
        WiringProblem.in_order(
            users=[f"u{u}" for u in range(users)],
            brokers=[f"b{b}" for b in range(brokers)],
            publishes=publishes,
            subscribes=subscribes,
            access_prices=amounts(users, brokers),
            core_prices=core + core.T,
        ),
        draw(st.sampled_from(["none", "loose", "tight", "mixed"])),
        draw(st.integers(0, 2**16)),
    )


def random_wiring_problem(
    seed: int,
    *,
    users: int,
    brokers: int,
    channels: int,
    whole: bool = False,
    metric: bool = True,
    room: str = "loose",
) -> WiringProblem:
    """Return a problem in which every method has something to weigh.

    Parameters
    ----------
    seed
        Decides everything that the other arguments leave open.
    users, brokers, channels
        How many there are of each.
    whole
        Small whole numbers, so that there are ties and zeros, or any numbers.
    metric
        Whether core prices are distances, or any symmetric prices: shortest paths then
        replace some of them.
    room
        The capacities: "none" (unlimited), "loose" (twice the demand), "tight" (just what
        one random assignment needs, so that there is a feasible one) or "mixed" (some
        unlimited, some loose).
    """
    rng = np.random.default_rng(seed)

    def amounts(*shape: int) -> FloatArray:
        drawn = rng.integers(0, 5, shape) if whole else rng.uniform(0.1, 10.0, shape)
        return drawn.astype(np.float64)

    publishes = amounts(users, channels) * (rng.random((users, channels)) < 0.5)
    subscribes = rng.random((users, channels)) < rng.choice([0.2, 0.5])
    if metric:
        points = rng.integers(0, 5, (brokers, 2)) if whole else rng.random((brokers, 2)) * 10.0
        core = np.abs(points[:, None, :] - points[None, :, :]).sum(axis=2).astype(np.float64)
    else:
        core = np.triu(amounts(brokers, brokers), 1)
        core = core + core.T
    problem = WiringProblem.in_order(
        users=[f"u{u:03d}" for u in range(users)],
        brokers=[f"b{b:03d}" for b in range(brokers)],
        publishes=publishes,
        subscribes=subscribes,
        access_prices=amounts(users, brokers),
        core_prices=core,
    )
    return _with_capacities(problem, room, seed)


def wiring_problems(
    *, users_max: int = 6, brokers_max: int = 4, channels_max: int = 3
) -> st.SearchStrategy[WiringProblem]:
    """Return a strategy for feasible problems, odd ones and ordinary ones.

    Capacities are unlimited, loose, or so tight that one assignment just fits: there is
    always a feasible assignment, though a greedy method need not find it.
    """
    seeded = st.builds(
        random_wiring_problem,
        st.integers(0, 2**32 - 1),
        users=st.integers(1, users_max),
        brokers=st.integers(1, brokers_max),
        channels=st.integers(1, channels_max),
        whole=st.booleans(),
        metric=st.booleans(),
        room=st.sampled_from(["none", "loose", "tight", "mixed"]),
    )
    drawn = drawn_wiring_problems(
        users_max=users_max, brokers_max=brokers_max, channels_max=channels_max
    )
    return st.one_of(seeded, drawn)


def _with_capacities(problem: WiringProblem, room: str, seed: int) -> WiringProblem:
    """Return the problem with capacities under which at least one assignment is feasible."""
    rng = np.random.default_rng(seed)
    brokers = problem.broker_count
    # What one random assignment needs: whatever is added, that assignment remains feasible.
    chosen = rng.integers(brokers, size=problem.user_count)
    needed = np.bincount(chosen, weights=problem.demands, minlength=brokers)
    capacities: FloatArray = needed.astype(np.float64)
    if room == "none":
        capacities = np.full(brokers, np.inf)
    elif room in ("loose", "mixed"):
        capacities = np.maximum(capacities, 2.0 * float(problem.demands.sum()) / brokers)
        if room == "mixed":
            capacities[rng.random(brokers) < 0.5] = np.inf
    return replace(problem, capacities=capacities)
