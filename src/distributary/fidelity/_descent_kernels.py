"""Building a tree greedily, adapting it move by move, and searching for a better one.

Shapes are those of `_state_kernels`.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray, UintArray
from distributary.fidelity._anneal_kernels import (
    ADOPT,
    COUSINS,
    DEMOTE,
    GAIN_MIN,
    PROMOTE,
    ROTATE,
    UNCLE,
    delta_of_move,
    draw_move,
    keep_best,
    make_move,
)
from distributary.fidelity._move_kernels import (
    delta_of_relocation,
    delta_of_rotation,
    is_below,
    join,
    lowest_common,
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

__all__ = ["adapt_round", "best_below", "cool", "descend", "grow", "nearest_nodes"]

# The share of moves towards near nodes; the rest are the six local ones.
_NEAR_SHARE = 0.9


@kernel
def grow(state: PackedForest, order: IntArray, member: BoolArray) -> int:
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
                change = delta_of_relocation(
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
def best_below(state: PackedForest, t: int, k: int) -> tuple[float, int, int, int, int]:
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
                change = delta_of_relocation(
                    links, sums, tops, nodes, delays, adaptation, rows, t, g, NOBODY, h, k
                )
                weighed += 1
                if change < best:
                    best, best_kind, best_i, best_other = change, DEMOTE, g, h
            h = links[t, h, FOLLOWING]
        i = links[t, g, FIRST]
        while i >= 0:
            change = delta_of_relocation(
                links, sums, tops, nodes, delays, adaptation, rows, t, i, NOBODY, k, k
            )
            if change < best:
                best, best_kind, best_i, best_other = change, PROMOTE, i, k
            change = delta_of_rotation(links, sums, tops, nodes, delays, adaptation, t, i)
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
                change = delta_of_relocation(
                    links, sums, tops, nodes, delays, adaptation, rows, t, i, NOBODY, h, k
                )
                if change < best:
                    best, best_kind, best_i, best_other = change, ADOPT, i, h
                change = delta_of_relocation(
                    links, sums, tops, nodes, delays, adaptation, rows, t, i, h, k, k
                )
                if change < best:
                    best, best_kind, best_i, best_other = change, UNCLE, i, h
                weighed += 2
                if seen:
                    # Each pair of cousins once: those of the children after g.
                    j = links[t, h, FIRST]
                    while j >= 0:
                        change = delta_of_relocation(
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
def adapt_round(state: PackedForest, first: int, last: int) -> tuple[int, int]:
    """Pass the token once through trees `first` to `last` - 1; return the moves made and weighed.

    Zhou, Ooi and Tan, Algorithm 1: each node that gets the token makes the best move among
    its children and grandchildren, and hands the token to its children that have children.
    """
    links, sums = state.links, state.sums
    n = links.shape[1]
    made = 0
    weighed = 0
    queue = np.empty(n, dtype=np.int64)
    for t in range(first, last):
        queue[0] = 0
        size = 1
        at = 0
        while at < size:
            k = queue[at]
            at += 1
            change, kind, i, other, count = best_below(state, t, k)
            weighed += count
            if kind >= 0 and change < -GAIN_MIN * state.total[0]:
                make_move(state, t, kind, i, other)
                made += 1
            c = links[t, k, FIRST]
            while c >= 0:
                if sums[t, c, CHILDREN] > 0.0 and size < n:
                    queue[size] = c
                    size += 1
                c = links[t, c, FOLLOWING]
    return made, weighed


@inner_kernel
def _improve(state: PackedForest, t: int, i: int, near: IntArray) -> tuple[bool, int]:
    """Make the best move of server `i` there is, if it gains; return whether, and the evaluations.

    It may go below any of its `near` nodes (t, n, c) or below its grandparent, or trade places
    with them or with its parent.
    """
    links, sums, tops, nodes = state.links, state.sums, state.peaks, state.nodes
    delays, adaptation, rows = state.delays, state.adaptation, state.rows
    parent = links[t, i, PARENT]
    best = -GAIN_MIN * state.total[0]
    best_kind = -1
    best_other = -1
    weighed = 0
    if parent > 0:
        up = links[t, parent, PARENT]
        change = delta_of_relocation(
            links, sums, tops, nodes, delays, adaptation, rows, t, i, NOBODY, up, up
        )
        if change < best:
            best, best_kind, best_other = change, PROMOTE, up
        change = delta_of_rotation(links, sums, tops, nodes, delays, adaptation, t, i)
        if change < best:
            best, best_kind, best_other = change, ROTATE, parent
        weighed += 2
    for index in range(near.shape[2]):
        c = near[t, i, index]
        if c < 0:
            break
        if is_below(links, t, c, i):
            continue
        top = -2
        if c != parent:
            top = lowest_common(links, t, parent, c)
            change = delta_of_relocation(
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
                change = delta_of_relocation(
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
    state: PackedForest,
    server_start: IntArray,
    servers: IntArray,
    near: IntArray,
    evaluations_max: int,
) -> int:
    """Improve server after server until none can be; return evaluations.

    `servers` holds the servers of tree `t` at `server_start[t]:server_start[t + 1]`, `near`
    (t, n, c) the nodes each may go below. Tree after tree, each with its share of the
    evaluations: what a tree needs then stays in the cache.
    """
    evaluations = 0
    for t in range(server_start.shape[0] - 1):
        first, last = server_start[t], server_start[t + 1]
        share = evaluations_max * (last - first) // max(servers.shape[0], 1)
        improved = True
        spent = 0
        while improved and spent < share:
            improved = False
            for index in range(first, last):
                moved, weighed = _improve(state, t, servers[index], near)
                spent += weighed
                improved = improved or moved
        evaluations += spent
    return evaluations


@kernel
def cool(
    seed: UintArray,
    state: PackedForest,
    server_start: IntArray,
    servers: IntArray,
    near: IntArray,
    temperature: float,
    evaluations_max: int,
    best: IntArray,
    best_cost: FloatArray,
    changed: BoolArray,
) -> int:
    """Try moves at one temperature and keep the best trees met; return evaluations.

    Most moves take a server below a node near it, or let the two trade places, anywhere in
    the tree; the others are the six local ones. `temperature` is a share of the cost.
    `best` (t, n) and `best_cost` (1,) are the parents and the cost of the best trees,
    `changed` (t,) says which were moved since. Tree after tree, each with its share of the
    evaluations: moves here and there among hundreds of trees would wait for memory.
    """
    links, sums, tops, nodes = state.links, state.sums, state.peaks, state.nodes
    delays, adaptation, rows, total = state.delays, state.adaptation, state.rows, state.total
    evaluations = 0
    for t in range(server_start.shape[0] - 1):
        own = servers[server_start[t] : server_start[t + 1]]
        share = evaluations_max * own.shape[0] // max(servers.shape[0], 1)
        spent = 0
        misses = 0
        while spent < share and misses < 100 * share:
            misses += 1
            i = own[int(uniform(seed) * own.shape[0])]
            if uniform(seed) < _NEAR_SHARE:
                c = near[t, i, int(uniform(seed) * near.shape[2])]
                parent = links[t, i, PARENT]
                if c < 0 or is_below(links, t, c, i):
                    continue
                if c == 0 or uniform(seed) < 0.5:
                    kind, to, j = ADOPT, c, NOBODY
                else:
                    kind, to, j = COUSINS, links[t, c, PARENT], c
                    if is_below(links, t, i, c):
                        continue
                if to == parent:
                    continue
                other = c
                top = lowest_common(links, t, parent, to)
                change = delta_of_relocation(
                    links, sums, tops, nodes, delays, adaptation, rows, t, i, j, to, top
                )
            else:
                kind, i, other, top = draw_move(seed, links, sums, t, own)
                if kind < 0:
                    continue
                change = delta_of_move(
                    links, sums, tops, nodes, delays, adaptation, rows, t, kind, i, other, top
                )
            spent += 1
            if change > 0.0 and uniform(seed) >= np.exp(-change / (temperature * total[0])):
                continue
            make_move(state, t, kind, i, other)
            changed[t] = True
            if total[0] < best_cost[0] * (1.0 - GAIN_MIN):
                keep_best(state, best, best_cost, changed)
        evaluations += spent
    return evaluations


@kernel
def nearest_nodes(
    base: FloatArray, delays: FloatArray, server_start: IntArray, servers: IntArray, count: int
) -> IntArray:
    """Return the nodes of a tree with the smallest `base` plus delay to each, (t, n, count).

    In order, and -1 where the tree has no more. `base` is (t, n). Rows of `delays` (n, n)
    are read as they lie in memory.
    """
    trees, n = base.shape
    near = np.full((trees, n, count), -1, dtype=np.int64)
    score = np.empty((n, count))
    for t in range(trees):
        score[:] = np.inf
        own = servers[server_start[t] : server_start[t + 1]]
        for index in range(-1, own.shape[0]):
            b = own[index] if index >= 0 else 0
            for i in own:
                value = base[t, b] + delays[b, i]
                if i == b or value >= score[i, count - 1]:
                    continue
                at = count - 1
                while at > 0 and score[i, at - 1] > value:
                    score[i, at] = score[i, at - 1]
                    near[t, i, at] = near[t, i, at - 1]
                    at -= 1
                score[i, at] = value
                near[t, i, at] = b
    return near
