"""Random local moves, and simulated annealing with them.

Zhou, Ooi and Tan, Algorithm 3. A neighbour is one of the six moves, drawn evenly among
the kinds, around a server drawn evenly. Shapes are those of `_state_kernels`.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray, UintArray, kernel
from distributary.fidelity._move_kernels import (
    exchange,
    reparent,
    rotate,
    rotate_change,
    trade_change,
)
from distributary.fidelity._state_kernels import (
    CHILDREN,
    FIRST,
    FOLLOWING,
    NOBODY,
    PARENT,
    State,
)

__all__ = ["anneal", "draw_move", "make_move", "move_change", "time_moves"]

PROMOTE, DEMOTE, ROTATE, COUSINS, ADOPT, UNCLE = range(6)


@kernel
def draw(seed: UintArray) -> float:
    """Return a random number in [0, 1) and move the seed (1,) on: xorshift64*."""
    x = seed[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    seed[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def _other_child(
    seed: UintArray, links: IntArray, sums: FloatArray, t: int, k: int, one: int
) -> int:
    """Return a child of `k` other than `one`, drawn evenly, or -1 if there is none."""
    others = int(sums[t, k, CHILDREN])
    if one >= 0:
        others -= 1
    if others <= 0:
        return -1
    steps = int(draw(seed) * others)
    c = links[t, k, FIRST]
    if c == one:
        c = links[t, c, FOLLOWING]
    for _ in range(steps):
        c = links[t, c, FOLLOWING]
        if c == one:
            c = links[t, c, FOLLOWING]
    return int(c)


@kernel
def draw_move(
    seed: UintArray, links: IntArray, sums: FloatArray, t: int, servers: IntArray
) -> tuple[int, int, int, int]:
    """Return a random move in tree `t`: its kind, the server, the other node, and the top.

    `servers` are those of the tree. The kind is -1 when the draw fits no move.
    """
    kind = int(draw(seed) * 6.0)
    i = servers[int(draw(seed) * servers.shape[0])]
    g = links[t, i, PARENT]
    if kind == DEMOTE:
        other = _other_child(seed, links, sums, t, g, i)
        return (kind if other >= 0 else -1), i, other, g
    if g == 0:
        return -1, i, -1, -1
    k = links[t, g, PARENT]
    if kind == PROMOTE or kind == ROTATE:
        return kind, i, k, k
    h = _other_child(seed, links, sums, t, k, g)
    if h < 0:
        return -1, i, -1, -1
    if kind == COUSINS:
        h = _other_child(seed, links, sums, t, h, -1)
        return (kind if h >= 0 else -1), i, h, k
    return kind, i, h, k


@kernel
def move_change(
    links: IntArray,
    sums: FloatArray,
    tops: FloatArray,
    nodes: FloatArray,
    delays: FloatArray,
    adaptation: FloatArray,
    rows: FloatArray,
    t: int,
    kind: int,
    i: int,
    other: int,
    top: int,
) -> float:
    """Return by how much a move changes the cost."""
    if kind == ROTATE:
        return rotate_change(links, sums, tops, nodes, delays, adaptation, t, i)
    to = other
    j = NOBODY
    if kind == COUSINS or kind == UNCLE:
        to = links[t, other, PARENT]
        j = other
    return trade_change(links, sums, tops, nodes, delays, adaptation, rows, t, i, j, to, top)


@kernel
def make_move(state: State, t: int, kind: int, i: int, other: int) -> None:
    """Make a move."""
    if kind == PROMOTE or kind == DEMOTE or kind == ADOPT:
        reparent(state, t, i, other)
    elif kind == ROTATE:
        rotate(state, t, i)
    else:
        exchange(state, t, i, other)


@kernel
def anneal(
    seed: UintArray,
    state: State,
    server_start: IntArray,
    servers: IntArray,
    start_factor: float,
    cooling: float,
    moves_per_server: float,
    frozen_below: float,
    patience: int,
    evaluations_max: int,
) -> tuple[IntArray, float, int]:
    """Anneal; return the best parents (t, n) met, their cost, and the moves evaluated.

    `servers` holds the servers of tree `t` at `server_start[t]:server_start[t + 1]`. The
    temperature starts at `start_factor` times the cost and falls by `cooling` after
    `moves_per_server` moves per server of every tree. It is frozen when it is under
    `frozen_below` and the best cost unchanged for `patience` temperatures.
    """
    links, sums, tops, nodes = state.links, state.sums, state.peaks, state.nodes
    delays, adaptation, rows, total = state.delays, state.adaptation, state.rows, state.total
    trees = links.shape[0]
    best = links[:, :, PARENT].copy()
    best_cost = total[0]
    changed = np.zeros(trees, dtype=np.bool_)
    temperature = start_factor * total[0]
    evaluations = 0
    stale = 0
    while evaluations < evaluations_max:
        improved = False
        for t in range(trees):
            own = servers[server_start[t] : server_start[t + 1]]
            if own.shape[0] < 2:
                continue
            wanted = int(moves_per_server * own.shape[0])
            misses = 0
            done = 0
            while done < wanted and misses < 100 * wanted and evaluations < evaluations_max:
                kind, i, other, top = draw_move(seed, links, sums, t, own)
                if kind < 0:
                    misses += 1
                    continue
                done += 1
                evaluations += 1
                change = move_change(
                    links, sums, tops, nodes, delays, adaptation, rows, t, kind, i, other, top
                )
                if change > 0.0 and draw(seed) >= np.exp(-change / temperature):
                    continue
                make_move(state, t, kind, i, other)
                changed[t] = True
                if total[0] < best_cost * (1.0 - 1e-12):
                    best_cost = total[0]
                    improved = True
                    for u in range(trees):
                        if changed[u]:
                            best[u] = links[u, :, PARENT]
                            changed[u] = False
        temperature *= cooling
        stale = 0 if improved else stale + 1
        if temperature < frozen_below and stale >= patience:
            break
    return best, best_cost, evaluations


@kernel
def time_moves(seed: UintArray, state: State, t: int, servers: IntArray, count: int) -> float:
    """Evaluate `count` random moves without making any; return the sum, for benchmarks."""
    links, sums, tops, nodes = state.links, state.sums, state.peaks, state.nodes
    delays, adaptation, rows = state.delays, state.adaptation, state.rows
    total = 0.0
    done = 0
    while done < count:
        kind, i, other, top = draw_move(seed, links, sums, t, servers)
        if kind >= 0:
            done += 1
            total += move_change(
                links, sums, tops, nodes, delays, adaptation, rows, t, kind, i, other, top
            )
    return total
