"""Trees under change: all sums that the cost of a move needs, kept up to date.

One form serves all three cost models. A forest has `t` trees over `n` nodes, each for
`x` objects: one tree for all objects, or as many trees as objects with one object each.
In tree `t`, node `k` has a peak rate per object (the largest in its subtree), and

    work(t, k) = filter_time * sum over objects of receivers * peak
               + send_time * sum over objects and children of the child's peak
    load(k)    = sum of work over the trees
    g(t, k)    = load / (1 - load) * load / (sum of peaks over all trees)
               + work(t, k) / (sum of its peaks) / 2 * (1 - 1 / children)
               + filter_time + send_time + what adapting costs

The average loss is then the sum over edges of (weight below the edge) * delay, plus the
sum over trees and nodes of (weight below the node) * g. The weight of a server is by how
much a second of delay there raises the average loss.

Beyond a load of `LOAD_LINEAR` the queueing term goes on as a straight line, so that
overloaded trees are very dear but comparable, and a search finds its way out of them.
"""

from __future__ import annotations

from typing import NamedTuple

from distributary.arrays import FloatArray, IntArray
from distributary.fidelity._cost_kernels import adaptation_delay, top_down_order
from distributary.kernels import inner_kernel, kernel

__all__ = [
    "LOAD_LINEAR",
    "PackedForest",
    "fill",
    "link",
    "queueing",
    "refresh",
    "serving",
    "unlink",
]

LOAD_LINEAR = 0.999
NOBODY = -3


# Columns of `links`: the parent, and the list of a node's children.
PARENT, FIRST, FOLLOWING, PREVIOUS = range(4)
# Columns of `sums`: how many children and grandchildren, the squares of the children's
# children, the sum of the children's peaks and of the node's own, how many objects have a
# peak, the node's own weight and the weight below it, its work, the cost of its `g` but
# for queueing, and of the edge into it.
CHILDREN, GRANDCHILDREN, SQUARES, PASSED, PEAKS, WANTED, WEIGHT, BELOW, WORK, LOCAL, EDGE = range(
    11
)
# Rows of `peaks`, by object: the peak, the second largest rate, the child that has the
# peak (-1 for the node itself), and how many children want the object.
PEAK, SECOND, OWNER, RECEIVERS = range(4)
# Columns of `nodes`: filter and send time; over all trees the load, the sum of peaks, the
# weight below, and the cost of queueing.
FILTER, SEND, LOAD, PEAK_TOTAL, BELOW_TOTAL, QUEUE = range(6)


class PackedForest(NamedTuple):
    """The trees of a search and their sums, packed so that a move finds what it needs together.

    `links` (t, n, 4), `sums` (t, n, 11), `peaks` (t, n, 4, x) and `nodes` (n, 6) have the
    columns named above; `rates` (t, n, x), `delays` (n, n) and `adaptation` (2,), the
    shares of time for collecting and deciding, do not change. `total` (1,) is the cost of
    it all, `rows` (4, x) room for the moves. Without adaptation grandchildren and squares
    do not matter and are not kept up to date.
    """

    links: IntArray
    sums: FloatArray
    peaks: FloatArray
    nodes: FloatArray
    rates: FloatArray
    delays: FloatArray
    adaptation: FloatArray
    total: FloatArray
    rows: FloatArray


@kernel
def queueing(load: float, peak_total: float) -> float:
    """Return the time a message waits at a node."""
    if load <= 0.0:
        return 0.0
    if load <= LOAD_LINEAR:
        return load * load / ((1.0 - load) * peak_total)
    rest = 1.0 - LOAD_LINEAR
    value = LOAD_LINEAR * LOAD_LINEAR / rest
    slope = (2.0 * LOAD_LINEAR - LOAD_LINEAR * LOAD_LINEAR) / (rest * rest)
    return (value + slope * (load - LOAD_LINEAR)) / peak_total


@inner_kernel
def serving(
    fixed: float,
    collecting: float,
    deciding: float,
    children: float,
    work: float,
    peaks: float,
    wanted: float,
    grandchildren: float,
    squares: float,
) -> float:
    """Return `g` of a node in one tree but for queueing; 0 without children.

    `fixed` is the time to filter and send. Like all the small helpers of the moves it takes
    numbers only: a call that is handed arrays counts references to each of them, and in a
    loop of some dozens of nanoseconds that is most of the time.
    """
    if children <= 0.0:
        return 0.0
    delay = 0.5 * work * (children - 1.0) / (peaks * children) + fixed
    if collecting > 0.0 or deciding > 0.0:
        delay += wanted * adaptation_delay(collecting, deciding, children, grandchildren, squares)
    return delay


@kernel
def fill(state: PackedForest, parents: IntArray) -> None:
    """Link the trees with these parents (t, n), and add up all sums."""
    for t in range(parents.shape[0]):
        order = top_down_order(parents[t])
        for index in range(order.shape[0] - 1, 0, -1):
            link(state.links, t, order[index], parents[t, order[index]])
        for index in range(order.shape[0] - 1, -1, -1):
            refresh(state, t, order[index])


@inner_kernel
def link(links: IntArray, t: int, i: int, parent: int) -> None:
    """Put `i` first among the children of `parent`; sums stay as they were."""
    links[t, i, PARENT] = parent
    head = links[t, parent, FIRST]
    links[t, i, FOLLOWING] = head
    links[t, i, PREVIOUS] = -1
    if head >= 0:
        links[t, head, PREVIOUS] = i
    links[t, parent, FIRST] = i


@inner_kernel
def unlink(links: IntArray, t: int, i: int) -> int:
    """Take `i` from its parent, and return the parent; sums stay as they were."""
    parent = links[t, i, PARENT]
    before = links[t, i, PREVIOUS]
    after = links[t, i, FOLLOWING]
    if before >= 0:
        links[t, before, FOLLOWING] = after
    else:
        links[t, parent, FIRST] = after
    if after >= 0:
        links[t, after, PREVIOUS] = before
    return int(parent)


@inner_kernel
def refresh(state: PackedForest, t: int, k: int) -> None:
    """Compute the sums of `k` in tree `t` anew from its children."""
    links, sums, peaks, nodes = state.links, state.sums, state.peaks, state.nodes
    objects = peaks.shape[3]
    children = 0.0
    grandchildren = 0.0
    squares = 0.0
    passed = 0.0
    below = 0.0
    for x in range(objects):
        peaks[t, k, PEAK, x] = state.rates[t, k, x]
        peaks[t, k, SECOND, x] = 0.0
        peaks[t, k, OWNER, x] = -1.0
        peaks[t, k, RECEIVERS, x] = 0.0
    c = links[t, k, FIRST]
    while c >= 0:
        children += 1.0
        grandchildren += sums[t, c, CHILDREN]
        squares += sums[t, c, CHILDREN] * sums[t, c, CHILDREN]
        passed += sums[t, c, PEAKS]
        below += sums[t, c, BELOW] + sums[t, c, WEIGHT]
        for x in range(objects):
            rate = peaks[t, c, PEAK, x]
            if rate > 0.0:
                peaks[t, k, RECEIVERS, x] += 1.0
            if rate > peaks[t, k, PEAK, x]:
                peaks[t, k, SECOND, x] = peaks[t, k, PEAK, x]
                peaks[t, k, PEAK, x] = rate
                peaks[t, k, OWNER, x] = c
            elif rate > peaks[t, k, SECOND, x]:
                peaks[t, k, SECOND, x] = rate
        c = links[t, c, FOLLOWING]
    sum_of_peaks = 0.0
    wanted = 0.0
    products = 0.0
    for x in range(objects):
        peak = peaks[t, k, PEAK, x]
        sum_of_peaks += peak
        products += peaks[t, k, RECEIVERS, x] * peak
        if peak > 0.0:
            wanted += 1.0
    work = nodes[k, FILTER] * products + nodes[k, SEND] * passed
    nodes[k, LOAD] += work - sums[t, k, WORK]
    nodes[k, PEAK_TOTAL] += sum_of_peaks - sums[t, k, PEAKS]
    nodes[k, BELOW_TOTAL] += below - sums[t, k, BELOW]
    sums[t, k, CHILDREN] = children
    sums[t, k, GRANDCHILDREN] = grandchildren
    sums[t, k, SQUARES] = squares
    sums[t, k, PASSED] = passed
    sums[t, k, PEAKS] = sum_of_peaks
    sums[t, k, WANTED] = wanted
    sums[t, k, BELOW] = below
    sums[t, k, WORK] = work
    local = below * serving(
        nodes[k, FILTER] + nodes[k, SEND],
        state.adaptation[0],
        state.adaptation[1],
        children,
        work,
        sum_of_peaks,
        wanted,
        grandchildren,
        squares,
    )
    queue = nodes[k, BELOW_TOTAL] * queueing(nodes[k, LOAD], nodes[k, PEAK_TOTAL])
    gained = local - sums[t, k, LOCAL] + queue - nodes[k, QUEUE]
    sums[t, k, LOCAL] = local
    nodes[k, QUEUE] = queue
    if k > 0:
        edge = (below + sums[t, k, WEIGHT]) * state.delays[links[t, k, PARENT], k]
        gained += edge - sums[t, k, EDGE]
        sums[t, k, EDGE] = edge
    state.total[0] += gained
