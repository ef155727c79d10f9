"""What a move costs, without making it, and making it.

Three moves contain the paper's six. *Reparenting* takes a node with its subtree to
another parent: promotion, demotion and nephew adoption. *Exchanging* lets two nodes trade
places with their subtrees: cousin swap and uncle-nephew swap. *Rotating* lets a node
trade places with its parent, both keeping their other children: parent-child swap.

Nothing changes above the lowest node that both ends of a move have above them (`top`),
because the set of nodes below it stays the same. For the six local moves that is at most
two steps up, so their cost takes constant time; a move between far ends walks up to it.

Shapes are those of `_state_kernels`. `rows` (4, x) is room for the peak rates, before and
after, of the child through which a change comes up on either side. The arrays are handed
over one by one, and the small helpers take numbers only, because this is the innermost
loop of everything here.
"""

from __future__ import annotations

from distributary.arrays import FloatArray, IntArray
from distributary.fidelity._state_kernels import (
    BELOW,
    BELOW_TOTAL,
    CHILDREN,
    FILTER,
    GRANDCHILDREN,
    LOAD,
    LOCAL,
    NOBODY,
    OWNER,
    PARENT,
    PASSED,
    PEAK,
    PEAK_TOTAL,
    PEAKS,
    QUEUE,
    RECEIVERS,
    SECOND,
    SEND,
    SQUARES,
    WANTED,
    WEIGHT,
    WORK,
    PackedForest,
    link,
    queueing,
    refresh,
    serving,
    unlink,
)
from distributary.kernels import inner_kernel, kernel

__all__ = [
    "delta_of_relocation",
    "delta_of_rotation",
    "exchange",
    "is_below",
    "join",
    "lowest_common",
    "reparent",
    "rotate",
]


@kernel
def lowest_common(links: IntArray, t: int, a: int, b: int) -> int:
    """Return the lowest node that is at or above both `a` and `b`."""
    up = a
    depth_a = 0
    while up > 0:
        up = links[t, up, PARENT]
        depth_a += 1
    up = b
    depth_b = 0
    while up > 0:
        up = links[t, up, PARENT]
        depth_b += 1
    while depth_a > depth_b:
        a = links[t, a, PARENT]
        depth_a -= 1
    while depth_b > depth_a:
        b = links[t, b, PARENT]
        depth_b -= 1
    while a != b:
        a = links[t, a, PARENT]
        b = links[t, b, PARENT]
    return a


@kernel
def is_below(links: IntArray, t: int, i: int, above: int) -> bool:
    """Is `above` on the way from the source to `i`, `i` itself included?"""
    while i > 0 and i != above:
        i = links[t, i, PARENT]
    return i == above


@inner_kernel
def _node_cost(
    fixed: float,
    work: float,
    load: float,
    peak_total: float,
    below_total: float,
    below: float,
    peaks: float,
    wanted: float,
    children: float,
    grandchildren: float,
    squares: float,
    collecting: float,
    deciding: float,
) -> float:
    """Return what a node's delay costs: in one tree, and by queueing in all of them."""
    return below * serving(
        fixed, collecting, deciding, children, work, peaks, wanted, grandchildren, squares
    ) + below_total * queueing(load, peak_total)


@inner_kernel
def _grandchildren_delta(
    sums: FloatArray,
    nodes: FloatArray,
    adaptation: FloatArray,
    t: int,
    k: int,
    had: float,
    has: float,
) -> float:
    """Return what it changes at `k`, by adapting, that a child has other children than it had."""
    delay = serving(
        nodes[k, FILTER] + nodes[k, SEND],
        adaptation[0],
        adaptation[1],
        sums[t, k, CHILDREN],
        sums[t, k, WORK],
        sums[t, k, PEAKS],
        sums[t, k, WANTED],
        sums[t, k, GRANDCHILDREN] + has - had,
        sums[t, k, SQUARES] + has * has - had * had,
    )
    return float(sums[t, k, BELOW] * delay - sums[t, k, LOCAL])


@kernel
def delta_of_relocation(
    links: IntArray,
    sums: FloatArray,
    tops: FloatArray,
    nodes: FloatArray,
    delays: FloatArray,
    adaptation: FloatArray,
    rows: FloatArray,
    t: int,
    i: int,
    j: int,
    to: int,
    top: int,
) -> float:
    """Return by how much the cost changes when `i` moves below `to` and `j` to where `i` was.

    With `j` = `NOBODY` only `i` moves, and `to` must not be below it. Otherwise `to` is the
    parent of `j`, and neither may be above the other. `top` is the lowest node at or above
    both `to` and the parent of `i`; with `top` = -1 the move is that of an `i` outside the
    tree, which joins it.

    The change is carried up on both sides: each node on the way loses or gains weight below
    it, and a child whose peaks may change its own. At `top` both sides meet.
    """
    objects = rows.shape[1]
    collecting = adaptation[0]
    deciding = adaptation[1]
    source = links[t, i, PARENT]
    joining = top < 0
    weight = sums[t, i, BELOW] + sums[t, i, WEIGHT]
    change = weight * (delays[to, i] if joining else delays[to, i] - delays[source, i])
    # What `to` gains, and the old parent of `i` loses.
    children = 1.0
    grandchildren = sums[t, i, CHILDREN]
    squares = grandchildren * grandchildren
    if j != NOBODY:
        weight_j = sums[t, j, BELOW] + sums[t, j, WEIGHT]
        change += weight_j * (delays[source, j] - delays[to, j])
        weight -= weight_j
        children = 0.0
        grandchildren -= sums[t, j, CHILDREN]
        squares -= sums[t, j, CHILDREN] * sums[t, j, CHILDREN]
    for x in range(objects):
        peak_j = tops[t, j, PEAK, x] if j != NOBODY else 0.0
        rows[0, x] = tops[t, i, PEAK, x]
        rows[1, x] = peak_j
        rows[2, x] = peak_j
        rows[3, x] = tops[t, i, PEAK, x]
    top_children = 0.0
    top_grandchildren = 0.0
    top_squares = 0.0
    for side in range(1 if joining else 0, 2):
        old = 2 * side
        new = old + 1
        k = to if side == 1 else source
        gone = j if side == 1 else i
        sign = 1.0 if side == 1 else -1.0
        more_weight = sign * weight
        more_children = sign * children
        more_grandchildren = sign * grandchildren
        more_squares = sign * squares
        while k != top:
            products = 0.0
            passed = sums[t, k, PASSED]
            peaks = 0.0
            wanted = 0.0
            for x in range(objects):
                before = rows[old, x]
                after = rows[new, x]
                peak = tops[t, k, PEAK, x]
                rows[old, x] = peak
                if tops[t, k, OWNER, x] == gone:
                    peak = tops[t, k, SECOND, x]
                peak = after if after > peak else peak
                rows[new, x] = peak
                receivers = tops[t, k, RECEIVERS, x]
                receivers -= 1.0 if before > 0.0 else 0.0
                receivers += 1.0 if after > 0.0 else 0.0
                products += receivers * peak
                peaks += peak
                wanted += 1.0 if peak > 0.0 else 0.0
                passed += after - before
            had = sums[t, k, CHILDREN]
            has = had + more_children
            work = nodes[k, FILTER] * products + nodes[k, SEND] * passed
            below = sums[t, k, BELOW] + more_weight
            change += (
                _node_cost(
                    nodes[k, FILTER] + nodes[k, SEND],
                    work,
                    nodes[k, LOAD] - sums[t, k, WORK] + work,
                    nodes[k, PEAK_TOTAL] - sums[t, k, PEAKS] + peaks,
                    nodes[k, BELOW_TOTAL] + more_weight,
                    below,
                    peaks,
                    wanted,
                    has,
                    sums[t, k, GRANDCHILDREN] + more_grandchildren,
                    sums[t, k, SQUARES] + more_squares,
                    collecting,
                    deciding,
                )
                - sums[t, k, LOCAL]
                - nodes[k, QUEUE]
            )
            parent = links[t, k, PARENT]
            if parent >= 0:
                change += more_weight * delays[parent, k]
            more_grandchildren = more_children
            more_squares = has * has - had * had
            more_children = 0.0
            gone = k
            k = parent
        top_children += more_children
        top_grandchildren += more_grandchildren
        top_squares += more_squares
    if joining:
        return float(change)
    products = 0.0
    passed = sums[t, top, PASSED]
    for x in range(objects):
        receivers = tops[t, top, RECEIVERS, x]
        receivers -= 1.0 if rows[0, x] > 0.0 else 0.0
        receivers += 1.0 if rows[1, x] > 0.0 else 0.0
        receivers -= 1.0 if rows[2, x] > 0.0 else 0.0
        receivers += 1.0 if rows[3, x] > 0.0 else 0.0
        products += receivers * tops[t, top, PEAK, x]
        passed += rows[1, x] - rows[0, x] + rows[3, x] - rows[2, x]
    had = sums[t, top, CHILDREN]
    has = had + top_children
    work = nodes[top, FILTER] * products + nodes[top, SEND] * passed
    change += (
        _node_cost(
            nodes[top, FILTER] + nodes[top, SEND],
            work,
            nodes[top, LOAD] - sums[t, top, WORK] + work,
            nodes[top, PEAK_TOTAL],
            nodes[top, BELOW_TOTAL],
            sums[t, top, BELOW],
            sums[t, top, PEAKS],
            sums[t, top, WANTED],
            has,
            sums[t, top, GRANDCHILDREN] + top_grandchildren,
            sums[t, top, SQUARES] + top_squares,
            collecting,
            deciding,
        )
        - sums[t, top, LOCAL]
        - nodes[top, QUEUE]
    )
    if has != had and top > 0 and collecting + deciding > 0.0:
        # The parent of top counts the children of its children.
        p = links[t, top, PARENT]
        change += _grandchildren_delta(sums, nodes, adaptation, t, p, had, has)
    return float(change)


@kernel
def delta_of_rotation(
    links: IntArray,
    sums: FloatArray,
    tops: FloatArray,
    nodes: FloatArray,
    delays: FloatArray,
    adaptation: FloatArray,
    t: int,
    i: int,
) -> float:
    """Return by how much the cost changes when `i` and its parent trade places.

    Its parent must not be the source. What is below the two stays the same, so nothing
    changes above them but the count of grandchildren.
    """
    objects = tops.shape[3]
    collecting = adaptation[0]
    deciding = adaptation[1]
    j = links[t, i, PARENT]
    k = links[t, j, PARENT]
    own = sums[t, i, BELOW] + sums[t, i, WEIGHT]
    whole = sums[t, j, BELOW] + sums[t, j, WEIGHT]
    rest = whole - own
    had_i = sums[t, i, CHILDREN]
    has_i = had_i + 1.0
    had_j = sums[t, j, CHILDREN]
    has_j = had_j - 1.0
    passed_j = sums[t, j, PASSED]
    passed_i = sums[t, i, PASSED]
    products_j = products_i = 0.0
    peaks_j = peaks_i = 0.0
    wanted_j = wanted_i = 0.0
    for x in range(objects):
        rate = tops[t, i, PEAK, x]
        peak = tops[t, j, SECOND if tops[t, j, OWNER, x] == i else PEAK, x]
        receivers = tops[t, j, RECEIVERS, x] - (1.0 if rate > 0.0 else 0.0)
        passed_j -= rate
        products_j += receivers * peak
        peaks_j += peak
        wanted_j += 1.0 if peak > 0.0 else 0.0
        receivers = tops[t, i, RECEIVERS, x] + (1.0 if peak > 0.0 else 0.0)
        passed_i += peak
        peak = peak if peak > rate else rate
        products_i += receivers * peak
        peaks_i += peak
        wanted_i += 1.0 if peak > 0.0 else 0.0
    work = nodes[j, FILTER] * products_j + nodes[j, SEND] * passed_j
    change = _node_cost(
        nodes[j, FILTER] + nodes[j, SEND],
        work,
        nodes[j, LOAD] - sums[t, j, WORK] + work,
        nodes[j, PEAK_TOTAL] - sums[t, j, PEAKS] + peaks_j,
        nodes[j, BELOW_TOTAL] - own,
        sums[t, j, BELOW] - own,
        peaks_j,
        wanted_j,
        has_j,
        sums[t, j, GRANDCHILDREN] - had_i,
        sums[t, j, SQUARES] - had_i * had_i,
        collecting,
        deciding,
    )
    work = nodes[i, FILTER] * products_i + nodes[i, SEND] * passed_i
    change += _node_cost(
        nodes[i, FILTER] + nodes[i, SEND],
        work,
        nodes[i, LOAD] - sums[t, i, WORK] + work,
        nodes[i, PEAK_TOTAL] - sums[t, i, PEAKS] + peaks_i,
        nodes[i, BELOW_TOTAL] + rest,
        sums[t, i, BELOW] + rest,
        peaks_i,
        wanted_i,
        has_i,
        sums[t, i, GRANDCHILDREN] + has_j,
        sums[t, i, SQUARES] + has_j * has_j,
        collecting,
        deciding,
    )
    change -= sums[t, i, LOCAL] + nodes[i, QUEUE] + sums[t, j, LOCAL] + nodes[j, QUEUE]
    if collecting + deciding > 0.0:
        change += _grandchildren_delta(sums, nodes, adaptation, t, k, had_j, has_i)
    change += whole * (delays[k, i] - delays[k, j])
    return float(change + rest * delays[i, j] - own * delays[j, i])


@inner_kernel
def join(state: PackedForest, t: int, i: int, parent: int) -> None:
    """Put `i`, which is outside, below `parent`."""
    link(state.links, t, i, parent)
    _refresh_up(state, t, i, -1)


@inner_kernel
def _refresh_up(state: PackedForest, t: int, k: int, top: int) -> None:
    """Refresh from `k` up to the child of `top`."""
    while k != top:
        refresh(state, t, k)
        k = state.links[t, k, PARENT]


@inner_kernel
def _refresh_top(state: PackedForest, t: int, top: int) -> None:
    """Refresh `top`, and what counts its children."""
    refresh(state, t, top)
    if top > 0 and state.adaptation[0] + state.adaptation[1] > 0.0:
        refresh(state, t, state.links[t, top, PARENT])


@kernel
def reparent(state: PackedForest, t: int, i: int, parent: int) -> None:
    """Move `i`, with all below it, below `parent`."""
    old = unlink(state.links, t, i)
    link(state.links, t, i, parent)
    top = lowest_common(state.links, t, old, parent)
    _refresh_up(state, t, i, parent)
    _refresh_up(state, t, old, top)
    _refresh_up(state, t, parent, top)
    _refresh_top(state, t, top)


@kernel
def exchange(state: PackedForest, t: int, i: int, j: int) -> None:
    """Let `i` and `j` trade places, with all below them."""
    one = unlink(state.links, t, i)
    link(state.links, t, i, state.links[t, j, PARENT])
    two = unlink(state.links, t, j)
    link(state.links, t, j, one)
    top = lowest_common(state.links, t, one, two)
    refresh(state, t, i)
    refresh(state, t, j)
    _refresh_up(state, t, one, top)
    _refresh_up(state, t, two, top)
    _refresh_top(state, t, top)


@kernel
def rotate(state: PackedForest, t: int, i: int) -> None:
    """Let `i` and its parent trade places, both keeping their other children."""
    j = unlink(state.links, t, i)
    k = unlink(state.links, t, j)
    link(state.links, t, i, k)
    link(state.links, t, j, i)
    refresh(state, t, j)
    refresh(state, t, i)
    _refresh_top(state, t, k)
