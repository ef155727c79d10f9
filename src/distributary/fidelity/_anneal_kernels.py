"""Random local moves, and simulated annealing with them.

Zhou, Ooi and Tan, Algorithm 3. A neighbour is one of the six moves, drawn evenly among
the kinds, around a server drawn evenly. Shapes are those of `_state_kernels`.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray, UintArray
from distributary.fidelity._move_kernels import (
    delta_of_relocation,
    delta_of_rotation,
    exchange,
    reparent,
    rotate,
)
from distributary.fidelity._state_kernels import (
    CHILDREN,
    FIRST,
    FOLLOWING,
    NOBODY,
    PARENT,
    PackedForest,
)
from distributary.kernels import inner_kernel, kernel
from distributary.xorshift import uniform

__all__ = ["anneal_trees", "delta_of_move", "draw_move", "keep_best", "make_move"]

PROMOTE, DEMOTE, ROTATE, COUSINS, ADOPT, UNCLE = range(6)
# A move must gain at least this share of the cost; less is rounding.
GAIN_MIN = 1e-12


@inner_kernel
def _other_child(
    seed: UintArray, links: IntArray, sums: FloatArray, t: int, k: int, one: int
) -> int:
    """Return a child of `k` other than `one`, drawn evenly, or -1 if there is none."""
    others = int(sums[t, k, CHILDREN])
    if one >= 0:
        others -= 1
    if others <= 0:
        return -1
    steps = int(uniform(seed) * others)
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
    kind = int(uniform(seed) * 6.0)
    i = servers[int(uniform(seed) * servers.shape[0])]
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
def delta_of_move(
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
        return delta_of_rotation(links, sums, tops, nodes, delays, adaptation, t, i)
    to = other
    j = NOBODY
    if kind == COUSINS or kind == UNCLE:
        to = links[t, other, PARENT]
        j = other
    return delta_of_relocation(links, sums, tops, nodes, delays, adaptation, rows, t, i, j, to, top)


@kernel
def make_move(state: PackedForest, t: int, kind: int, i: int, other: int) -> None:
    """Carry out a move that `delta_of_move` has weighed, and refresh the sums."""
    if kind == PROMOTE or kind == DEMOTE or kind == ADOPT:
        reparent(state, t, i, other)
    elif kind == ROTATE:
        rotate(state, t, i)
    else:
        exchange(state, t, i, other)


@inner_kernel
def keep_best(
    state: PackedForest, best: IntArray, best_cost: FloatArray, changed: BoolArray
) -> None:
    """Enter the trees as they are into `best`.

    Only those that `changed` since are copied, because hundreds may stand as they were.
    """
    best_cost[0] = state.total[0]
    for t in range(changed.shape[0]):
        if changed[t]:
            best[t] = state.links[t, :, PARENT]
            changed[t] = False


@kernel
def anneal_trees(
    seed: UintArray,
    state: PackedForest,
    server_start: IntArray,
    servers: IntArray,
    first: int,
    last: int,
    temperature: float,
    moves_per_server: float,
    evaluations_max: int,
    best: IntArray,
    best_cost: FloatArray,
    changed: BoolArray,
) -> int:
    """Anneal trees `first` to `last` - 1 at one temperature; return the moves evaluated.

    `servers` holds the servers of tree `t` at `server_start[t]:server_start[t + 1]`, and
    each tree gets `moves_per_server` moves per server of it. `best` (t, n) and `best_cost`
    (1,) are the parents and the cost of the best trees met so far; `changed` (t,) says which
    trees were moved since they were entered there.
    """
    links, sums, tops, nodes = state.links, state.sums, state.peaks, state.nodes
    delays, adaptation, rows, total = state.delays, state.adaptation, state.rows, state.total
    evaluations = 0
    for t in range(first, last):
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
            change = delta_of_move(
                links, sums, tops, nodes, delays, adaptation, rows, t, kind, i, other, top
            )
            if change > 0.0 and uniform(seed) >= np.exp(-change / temperature):
                continue
            make_move(state, t, kind, i, other)
            changed[t] = True
            if total[0] < best_cost[0] * (1.0 - GAIN_MIN):
                keep_best(state, best, best_cost, changed)
    return evaluations
