"""Compiled: the cheapest set of brokers for a channel that is paid for opening them.

A channel pays its rate times the weight of a tree for its set of brokers, and gains a given
amount for every broker in the set. Here are the least costs over all sets of at least a
given number of brokers: with the weight of every set in a table, or with weights that only
see at which price two groups of brokers join (single linkage). Along a tree of brokers, the
edge between two groups costs no less than the price at which they join, so that the second
is never more than the weight of any tree, branching points or not.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel

__all__ = ["least_by_linkage", "least_by_set", "link"]


@kernel
def link(
    order: IntArray, parents: IntArray, edges: FloatArray, by_price: IntArray
) -> tuple[IntArray, FloatArray, IntArray]:
    """Join brokers along the edges of their minimum spanning tree, the cheapest first.

    The tree is as `grow_tree` makes it; `by_price` has the positions 1 and up in `order`, the
    cheapest edge first. Returns `pairs` (brokers - 1, 2): group `brokers + i` joins the groups
    `pairs[i]`, of which those below `brokers` are the brokers themselves; the prices at which they
    join; and how many brokers are in each group.
    """
    count = len(order)
    pairs = np.empty((count - 1, 2), np.int64)
    prices = np.empty(count - 1)
    sizes = np.ones(2 * count - 1, np.int64)
    above = np.full(2 * count - 1, -1, np.int64)
    for i in range(count - 1):
        edge = by_price[i]
        for side in range(2):
            group = order[edge] if side == 0 else order[parents[edge]]
            while above[group] >= 0:
                group = above[group]
            pairs[i, side] = group
        prices[i] = edges[edge]
        joined = count + i
        sizes[joined] = 0
        for side in range(2):
            above[pairs[i, side]] = joined
            sizes[joined] += sizes[pairs[i, side]]
    return pairs, prices, sizes


@kernel
def least_by_set(
    rates: FloatArray,
    counts_min: IntArray,
    gains: FloatArray,
    weights: FloatArray,
    bits: IntArray,
    opened: BoolArray,
) -> float:
    """Return the sum of the least costs of all channels, by looking at every set.

    By channel: its rate, how many brokers its set has at least, and `gains[c, b]` for every broker.
    By set of brokers: the weight of its tree, and how many they are (`bits`). `opened[c, b]` is
    filled with whether `b` is in the best set of `c`.
    """
    channels, brokers = gains.shape
    gained = np.zeros(len(weights))
    total = 0.0
    for c in range(channels):
        least, best = np.inf, 0
        for chosen in range(1, len(weights)):
            lowest = 0
            while not chosen >> lowest & 1:
                lowest += 1
            gained[chosen] = gained[chosen & (chosen - 1)] + gains[c, lowest]
            if bits[chosen] >= counts_min[c]:
                value = rates[c] * weights[chosen] - gained[chosen]
                if value < least:
                    least, best = value, chosen
        total += least
        for b in range(brokers):
            opened[c, b] = best >> b & 1 > 0
    return total


@kernel
def least_by_linkage(
    rates: FloatArray,
    counts_min: IntArray,
    gains: FloatArray,
    pairs: IntArray,
    prices: FloatArray,
    sizes: IntArray,
    opened: BoolArray,
) -> float:
    """Return the sum of the least costs of all channels, with the weights of single linkage.

    Two groups that both have brokers in the set cost the price at which they join.

    Groups are those of `link`; the others are as in `least_by_set`.
    """
    channels, brokers = gains.shape
    groups = 2 * brokers - 1
    needed_max = 0
    for c in range(channels):
        needed_max = max(needed_max, counts_min[c])
    # `table[g, j]`: the least cost within group g with j of its brokers, or at least j when
    # that is all a channel needs.
    table = np.empty((groups, needed_max + 1))
    stack, needed = np.empty(groups, np.int64), np.empty(groups, np.int64)
    total = 0.0
    for c in range(channels):
        most = counts_min[c]
        for b in range(brokers):
            table[b, 0] = 0.0
            table[b, 1] = -gains[c, b]
        for i in range(brokers - 1):
            joined = brokers + i
            table[joined, : min(sizes[joined], most) + 1] = np.inf
            for j in range(min(sizes[pairs[i, 0]], most) + 1):
                for k in range(min(sizes[pairs[i, 1]], most) + 1):
                    value = table[pairs[i, 0], j] + table[pairs[i, 1], k]
                    if j > 0 and k > 0:
                        value += rates[c] * prices[i]
                    together = min(j + k, most)
                    if value < table[joined, together]:
                        table[joined, together] = value
        total += table[groups - 1, most]
        opened[c] = False
        stack[0], needed[0] = groups - 1, most
        depth = 1
        while depth > 0:
            depth -= 1
            group, count = stack[depth], needed[depth]
            if count == 0:
                continue
            if group < brokers:
                opened[c, group] = True
                continue
            i = group - brokers
            least, best_j, best_k = np.inf, 0, 0
            for j in range(min(sizes[pairs[i, 0]], most) + 1):
                last = min(sizes[pairs[i, 1]], most)
                # Below `most` the two add up exactly.
                first = max(0, count - j)
                for k in range(first, (last if count == most else min(first, last)) + 1):
                    if count < most and j + k != count:
                        continue
                    value = table[pairs[i, 0], j] + table[pairs[i, 1], k]
                    if j > 0 and k > 0:
                        value += rates[c] * prices[i]
                    if value < least:
                        least, best_j, best_k = value, j, k
            stack[depth], needed[depth] = pairs[i, 0], best_j
            stack[depth + 1], needed[depth + 1] = pairs[i, 1], best_k
            depth += 2
    return total
