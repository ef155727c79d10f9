"""Compiled: the best wiring by trying brokers for one user after the other.

A branch is left as soon as what it costs at least is no less than the best wiring known.
Whatever else its users do, a branch costs at least:

- what its users so far pay, with trees that reach the subscribers so far;
- for every other user the cheapest broker with room, counting access, what the user itself
  publishes to the subscribers so far, and a share of what it costs the publishers so far to
  reach it. Subscribers who come later share a channel's tree, which costs no less with all
  of them than with any one of them, and so no less than the mean over them.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel

__all__ = ["branch_and_bound"]

# A branch must promise a saving that is more than rounding.
_SAVING = 1e-12


@kernel
def branch_and_bound(
    access: FloatArray,
    demands: FloatArray,
    capacities: FloatArray,
    rates: FloatArray,
    wants: BoolArray,
    weights: FloatArray,
    least_weights: FloatArray,
    nodes_max: int,
    best_of: IntArray,
    best_cost: float,
) -> tuple[float, float, int]:
    """Search all wirings, users in the order given.

    Parameters
    ----------
    access
        `access[u, b]`: what user `u` pays for access at broker `b`.
    demands, capacities
        By user, and by broker.
    rates, wants
        `rates[u, c]` and `wants[u, c]`: what a user publishes and wants.
    weights
        Of the trees that connect each set of brokers, by its bits.
    least_weights
        The same; where a larger set is cheaper, its weight instead.
    nodes_max
        Give up after so many branches.
    best_of, best_cost
        The best wiring known, improved in place, and its cost (infinite for none).

    Returns
    -------
    best_cost
        Of `best_of`.
    bound
        No wiring costs less. It is `best_cost` when all branches were looked at.
    nodes
        How many branches were looked at.
    """
    users, brokers = access.shape
    channels = rates.shape[1]
    masks = np.zeros((users + 1, channels), np.int64)
    entering = np.zeros((users + 1, channels, brokers))
    room = capacities.copy()
    paid = np.zeros(users + 1)
    chosen = np.full(users, -1, np.int64)
    estimates = np.zeros((users, brokers))
    others = np.zeros(users)
    later = np.zeros((users + 1, channels))
    for u in range(users - 1, -1, -1):
        later[u] = later[u + 1] + wants[u]
    reach, opening = np.empty((channels, brokers)), np.empty((channels, brokers))
    nodes = 0
    depth = 0
    entered = True
    while depth >= 0:
        if entered:
            nodes += 1
            if nodes >= nodes_max:
                break
            if depth == users:
                total = paid[depth]
                for c in range(channels):
                    mask = masks[depth, c]
                    if mask > 0:
                        for b in range(brokers):
                            if entering[depth, c, b] > 0.0:
                                total += entering[depth, c, b] * weights[mask | 1 << b]
                if total < best_cost:
                    best_cost = total
                    best_of[:] = chosen
                depth -= 1
                entered = False
                continue
            others[depth] = _estimate(
                depth,
                access,
                demands,
                room,
                rates,
                wants,
                least_weights,
                masks[depth],
                entering[depth],
                later[depth],
                reach,
                opening,
                estimates[depth],
            )
            others[depth] += paid[depth]
            chosen[depth] = -1
        elif chosen[depth] >= 0:
            room[chosen[depth]] += demands[depth]
            estimates[depth, chosen[depth]] = np.inf
        # The most promising broker that has not been tried.
        b = int(np.argmin(estimates[depth]))
        if others[depth] + estimates[depth, b] >= best_cost * (1.0 - _SAVING) or np.isinf(
            estimates[depth, b]
        ):
            depth -= 1
            entered = False
            continue
        chosen[depth] = b
        room[b] -= demands[depth]
        paid[depth + 1] = paid[depth] + access[depth, b]
        for c in range(channels):
            masks[depth + 1, c] = masks[depth, c] | (1 << b if wants[depth, c] else 0)
            entering[depth + 1, c] = entering[depth, c]
            entering[depth + 1, c, b] += rates[depth, c]
        depth += 1
        entered = True
    # What was left open: branches not tried, and the one that was being tried.
    bound = np.inf
    for at in range(min(depth, users - 1), -1, -1):
        tried = chosen[at] if at < depth else -1
        open_cost = np.inf
        for b in range(brokers):
            value = others[at] + estimates[at, b]
            if b == tried:
                value = max(value, bound)
            open_cost = min(open_cost, value)
        bound = open_cost
    return best_cost, min(bound, best_cost), nodes


@inner_kernel
def _estimate(
    first: int,
    access: FloatArray,
    demands: FloatArray,
    room: FloatArray,
    rates: FloatArray,
    wants: BoolArray,
    weights: FloatArray,
    masks: IntArray,
    entering: FloatArray,
    later: FloatArray,
    reach: FloatArray,
    opening: FloatArray,
    estimates: FloatArray,
) -> float:
    """Fill what the first free user costs at least at each broker; return what others do.

    `reach`, `opening` and `estimates` are filled; the others are those of
    `branch_and_bound` at one branch, with `later` the free subscribers of each channel.
    """
    users, brokers = access.shape
    total = 0.0
    for c in range(len(masks)):
        for b in range(brokers):
            reach[c, b] = weights[masks[c] | 1 << b] if masks[c] > 0 else 0.0
            opening[c, b] = 0.0
        for at in range(brokers):
            if entering[c, at] > 0.0:
                total += entering[c, at] * reach[c, at]
                if later[c] > 0.0:
                    share = entering[c, at] / later[c]
                    for b in range(brokers):
                        joined = weights[masks[c] | 1 << at | 1 << b]
                        opening[c, b] += share * (joined - reach[c, at])
    for u in range(first, users):
        least = np.inf
        for b in range(brokers):
            if demands[u] > room[b]:
                value = np.inf
            else:
                value = access[u, b]
                for c in range(len(masks)):
                    value += rates[u, c] * reach[c, b]
                    if wants[u, c]:
                        value += opening[c, b]
            if u == first:
                estimates[b] = value
            least = min(least, value)
        if u > first:
            total += least
        elif np.isinf(least):
            return np.inf
    return total
