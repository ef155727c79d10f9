"""Building a tree greedily, adapting it move by move, and searching for a better one.

Shapes are those of `_state_kernels`.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray, UintArray, kernel
from distributary.fidelity._anneal_kernels import (
    ADOPT,
    COUSINS,
    DEMOTE,
    PROMOTE,
    ROTATE,
    UNCLE,
    draw,
    draw_move,
    make_move,
    move_change,
)
from distributary.fidelity._move_kernels import (
    is_below,
    join,
    lowest_common,
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

__all__ = ["adapt_round", "cool", "descend", "grow", "nearest_nodes"]

# A move must gain at least this share of the cost; less is rounding.
_GAIN_MIN = 1e-12
# The share of moves towards near nodes; the rest are the six local ones.
_NEAR_SHARE = 0.9


@kernel
def grow(state: State, order: IntArray, member: BoolArray) -> int:
    """Add the servers one by one, each where the cost grows least; return evaluations.

    Zhou, Ooi and Tan, Algorithm 2. `order` holds the servers, `member` (t, n) says which
    trees they join; the trees have nothing but the source yet.
    """
    links, sums, tops, nodes = state.links, state.sums, state.peaks, state.nodes
    delays, adaptation, rows = state.delays, state.adaptation, state.rows
    trees, n = member.shape
    inside = np.zeros((trees, n), dtype=np.int64)
    count = np.ones(trees, dtype=np.int64)
    evaluations = 0
    for index in range(order.shape[0]):
        i = order[index]
        for t in range(trees):
            if not member[t, i]:
                continue
            best = np.inf
            parent = 0
            for at in range(count[t]):
                b = inside[t, at]
                change = trade_change(
                    links, sums, tops, nodes, delays, adaptation, rows, t, i, NOBODY, b, -1
                )
                if change < best:
                    best = change
                    parent = b
            evaluations += count[t]
            join(state, t, i, parent)
            inside[t, count[t]] = i
            count[t] += 1
    return evaluations


@kernel
def _best_below(state: State, t: int, k: int) -> tuple[float, int, int, int, int]:
    """Return the best of the six moves among the children and grandchildren of `k`.

    Its change of cost, kind, server and other node, and how many moves were weighed.
    """
    links, sums, tops, nodes = state.links, state.sums, state.peaks, state.nodes
    delays, adaptation, rows = state.delays, state.adaptation, state.rows
    best = 0.0
    best_kind = -1
    best_i = -1
    best_other = -1
    weighed = 0
    g = links[t, k, FIRST]
    while g >= 0:
        h = links[t, k, FIRST]
        while h >= 0:
            if h != g:
                change = trade_change(
                    links, sums, tops, nodes, delays, adaptation, rows, t, g, NOBODY, h, k
                )
                weighed += 1
                if change < best:
                    best, best_kind, best_i, best_other = change, DEMOTE, g, h
            h = links[t, h, FOLLOWING]
        i = links[t, g, FIRST]
        while i >= 0:
            change = trade_change(
                links, sums, tops, nodes, delays, adaptation, rows, t, i, NOBODY, k, k
            )
            if change < best:
                best, best_kind, best_i, best_other = change, PROMOTE, i, k
            change = rotate_change(links, sums, tops, nodes, delays, adaptation, t, i)
            if change < best:
                best, best_kind, best_i, best_other = change, ROTATE, i, k
            weighed += 2
            h = links[t, k, FIRST]
            seen = False
            while h >= 0:
                if h == g:
                    seen = True
                    h = links[t, h, FOLLOWING]
                    continue
                change = trade_change(
                    links, sums, tops, nodes, delays, adaptation, rows, t, i, NOBODY, h, k
                )
                if change < best:
                    best, best_kind, best_i, best_other = change, ADOPT, i, h
                change = trade_change(
                    links, sums, tops, nodes, delays, adaptation, rows, t, i, h, k, k
                )
                if change < best:
                    best, best_kind, best_i, best_other = change, UNCLE, i, h
                weighed += 2
                if seen:
                    # Each pair of cousins once: those of the children after g.
                    j = links[t, h, FIRST]
                    while j >= 0:
                        change = trade_change(
                            links, sums, tops, nodes, delays, adaptation, rows, t, i, j, h, k
                        )
                        weighed += 1
                        if change < best:
                            best, best_kind, best_i, best_other = change, COUSINS, i, j
                        j = links[t, j, FOLLOWING]
                h = links[t, h, FOLLOWING]
            i = links[t, i, FOLLOWING]
        g = links[t, g, FOLLOWING]
    return best, best_kind, best_i, best_other, weighed


@kernel
def adapt_round(state: State, evaluations_max: int) -> tuple[int, int]:
    """Pass the token once through every tree; return the moves made and weighed.

    Zhou, Ooi and Tan, Algorithm 1: each node that gets the token makes the best move among
    its children and grandchildren, and hands the token to its children that have children.
    """
    links, sums = state.links, state.sums
    trees, n, _ = links.shape
    made = 0
    weighed = 0
    queue = np.empty(n, dtype=np.int64)
    for t in range(trees):
        queue[0] = 0
        size = 1
        at = 0
        while at < size and weighed < evaluations_max:
            k = queue[at]
            at += 1
            change, kind, i, other, count = _best_below(state, t, k)
            weighed += count
            if kind >= 0 and change < -_GAIN_MIN * state.total[0]:
                make_move(state, t, kind, i, other)
                made += 1
            c = links[t, k, FIRST]
            while c >= 0:
                if sums[t, c, CHILDREN] > 0.0 and size < n:
                    queue[size] = c
                    size += 1
                c = links[t, c, FOLLOWING]
    return made, weighed


@kernel
def _improve(state: State, t: int, i: int, near: IntArray) -> tuple[bool, int]:
    """Make the best move of server `i` there is, if it gains; return whether, and the evaluations.

    It may go below any of its `near` nodes (n, c) or below its grandparent, or trade places
    with them or with its parent.
    """
    links, sums, tops, nodes = state.links, state.sums, state.peaks, state.nodes
    delays, adaptation, rows = state.delays, state.adaptation, state.rows
    parent = links[t, i, PARENT]
    best = -_GAIN_MIN * state.total[0]
    best_kind = -1
    best_other = -1
    weighed = 0
    if parent > 0:
        up = links[t, parent, PARENT]
        change = trade_change(
            links, sums, tops, nodes, delays, adaptation, rows, t, i, NOBODY, up, up
        )
        if change < best:
            best, best_kind, best_other = change, PROMOTE, up
        change = rotate_change(links, sums, tops, nodes, delays, adaptation, t, i)
        if change < best:
            best, best_kind, best_other = change, ROTATE, parent
        weighed += 2
    for index in range(near.shape[1]):
        c = near[i, index]
        if c == i or (c > 0 and links[t, c, PARENT] < 0) or is_below(links, t, c, i):
            continue
        top = -2
        if c != parent:
            top = lowest_common(links, t, parent, c)
            change = trade_change(
                links, sums, tops, nodes, delays, adaptation, rows, t, i, NOBODY, c, top
            )
            weighed += 1
            if change < best:
                best, best_kind, best_other = change, ADOPT, c
        if c > 0 and not is_below(links, t, i, c):
            other = links[t, c, PARENT]
            if other != parent:
                # Below c and at c meet at the same node, unless c itself is that node.
                if top == c or top < 0:
                    top = lowest_common(links, t, parent, other)
                change = trade_change(
                    links, sums, tops, nodes, delays, adaptation, rows, t, i, c, other, top
                )
                weighed += 1
                if change < best:
                    best, best_kind, best_other = change, COUSINS, c
    if best_kind < 0:
        return False, weighed
    make_move(state, t, best_kind, i, best_other)
    return True, weighed


@kernel
def descend(
    state: State,
    server_start: IntArray,
    servers: IntArray,
    near: IntArray,
    evaluations_max: int,
) -> int:
    """Improve server after server until none can be; return evaluations.

    `servers` holds the servers of tree `t` at `server_start[t]:server_start[t + 1]`, `near`
    (n, c) the nodes each may go below.
    """
    evaluations = 0
    improved = True
    while improved and evaluations < evaluations_max:
        improved = False
        for t in range(server_start.shape[0] - 1):
            for index in range(server_start[t], server_start[t + 1]):
                moved, weighed = _improve(state, t, servers[index], near)
                evaluations += weighed
                improved = improved or moved
    return evaluations


@kernel
def cool(
    seed: UintArray,
    state: State,
    server_start: IntArray,
    servers: IntArray,
    near: IntArray,
    temperature: float,
    evaluations_max: int,
    best: IntArray,
    best_cost: FloatArray,
) -> int:
    """Try moves at one temperature and keep the best trees met; return evaluations.

    Most moves take a server below a node near it, or let the two trade places, anywhere in
    the tree; the others are the six local ones. `temperature` is a share of the cost.
    `best` (t, n) and `best_cost` (1,) are the parents and the cost of the best trees.
    """
    links, sums, tops, nodes = state.links, state.sums, state.peaks, state.nodes
    delays, adaptation, rows, total = state.delays, state.adaptation, state.rows, state.total
    trees = links.shape[0]
    changed = np.ones(trees, dtype=np.bool_)
    evaluations = 0
    misses = 0
    while evaluations < evaluations_max and misses < 100 * evaluations_max:
        misses += 1
        position = int(draw(seed) * servers.shape[0])
        i = servers[position]
        t = 0
        if trees > 1:
            t = int(np.searchsorted(server_start, position, side="right")) - 1
        if draw(seed) < _NEAR_SHARE:
            c = near[i, int(draw(seed) * near.shape[1])]
            parent = links[t, i, PARENT]
            if c == i or (c > 0 and links[t, c, PARENT] < 0) or is_below(links, t, c, i):
                continue
            if c == 0 or draw(seed) < 0.5:
                kind, to, j = ADOPT, c, NOBODY
            else:
                kind, to, j = COUSINS, links[t, c, PARENT], c
                if is_below(links, t, i, c):
                    continue
            if to == parent:
                continue
            other = c
            top = lowest_common(links, t, parent, to)
            change = trade_change(
                links, sums, tops, nodes, delays, adaptation, rows, t, i, j, to, top
            )
        else:
            own = servers[server_start[t] : server_start[t + 1]]
            kind, i, other, top = draw_move(seed, links, sums, t, own)
            if kind < 0:
                continue
            change = move_change(
                links, sums, tops, nodes, delays, adaptation, rows, t, kind, i, other, top
            )
        evaluations += 1
        if change > 0.0 and draw(seed) >= np.exp(-change / (temperature * total[0])):
            continue
        make_move(state, t, kind, i, other)
        changed[t] = True
        if total[0] < best_cost[0] * (1.0 - _GAIN_MIN):
            best_cost[0] = total[0]
            for u in range(trees):
                if changed[u]:
                    best[u] = links[u, :, PARENT]
                    changed[u] = False
    return evaluations


@kernel
def nearest_nodes(base: FloatArray, delays: FloatArray, count: int) -> IntArray:
    """Return the nodes with the smallest `base` plus delay to each node, (n, count), in order.

    `base` (n,). Rows of `delays` (n, n) are read as they lie in memory.
    """
    n = base.shape[0]
    near = np.zeros((n, count), dtype=np.int64)
    score = np.full((n, count), np.inf)
    for b in range(n):
        for i in range(n):
            value = base[b] + delays[b, i]
            if i == b or value >= score[i, count - 1]:
                continue
            at = count - 1
            while at > 0 and score[i, at - 1] > value:
                score[i, at] = score[i, at - 1]
                near[i, at] = near[i, at - 1]
                at -= 1
            score[i, at] = value
            near[i, at] = b
    return near
