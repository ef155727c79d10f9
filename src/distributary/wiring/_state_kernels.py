"""Compiled: a wiring under change, and what a change of a few users costs.

A change is evaluated from what it touches: the access of its users, the channels they
publish on, and those channels for which a broker gains its first subscriber or loses its
last. Only the trees of the latter are grown anew; no other user is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import inner_kernel, kernel
from distributary.wiring._core_kernels import grow_tree, insertion_weight, reach_in_tree

__all__ = ["WiringState", "extra_moves", "fill", "fits", "spanning_tree", "try_change"]

# Below this share of a channel's traffic, what is left at a broker is rounding.
_NOTHING = 1e-12


class WiringState(NamedTuple):
    """A wiring, everything derived from it that a change needs, and room for evaluating one.

    Channels come before brokers in every table, so that the numbers of one channel stand
    together.
    """

    # The problem, which never changes.
    publish_start: IntArray
    publish_channel: IntArray
    publish_rate: FloatArray
    interest_start: IntArray
    interest_channel: IntArray
    channel_rates: FloatArray
    access: FloatArray
    demands: FloatArray
    capacities: FloatArray
    prices: FloatArray
    # One tree for everything, or empty.
    tree_order: IntArray
    tree_parents: IntArray
    tree_edges: FloatArray
    # Where each user comes from if it may not move freely, else -1.
    home: IntArray

    broker_of: IntArray
    loads: FloatArray
    # Of each channel at each broker: subscribers, what enters, and the weight of the tree
    # that a message entering there needs.
    subscribers: IntArray
    entering: FloatArray
    reach: FloatArray
    # Of each channel: the weight of the tree of its brokers, and the cost.
    weights: FloatArray
    core: FloatArray
    # total[0] is the whole cost.
    total: FloatArray
    # Users of each broker in a ring: any one of them, the next and the one before.
    ring: IntArray
    next_user: IntArray
    last_user: IntArray
    # How many users are away from home, and how many may be.
    moves: IntArray

    # The users of a change and their new brokers.
    users: IntArray
    targets: IntArray
    # Channels whose set of brokers the change may alter, by channel its position among them
    # or -1, and their new weights by that position.
    touched: IntArray
    touched_at: IntArray
    rows: FloatArray
    # A spanning tree as `grow_tree` makes it, and room for adding a broker to it.
    parents: IntArray
    order: IntArray
    edges: FloatArray
    ways: FloatArray
    inside: BoolArray
    # By broker, about what it would change to move a user there.
    scores: FloatArray
    # steps[0] counts steps of about a nanosecond.
    steps: IntArray


@kernel
def fill(state: WiringState) -> None:
    """Derive everything from `broker_of`."""
    state.loads[:] = 0.0
    state.subscribers[:] = 0
    state.entering[:] = 0.0
    state.ring[:] = -1
    state.moves[0] = 0
    access = 0.0
    for u in range(len(state.broker_of)):
        b = state.broker_of[u]
        access += state.demands[u] * state.access[u, b]
        state.loads[b] += state.demands[u]
        if state.home[u] >= 0 and state.home[u] != b:
            state.moves[0] += 1
        _join(state, u, b)
        for k in range(state.publish_start[u], state.publish_start[u + 1]):
            state.entering[state.publish_channel[k], b] += state.publish_rate[k]
        for k in range(state.interest_start[u], state.interest_start[u + 1]):
            state.subscribers[state.interest_channel[k], b] += 1
    core = 0.0
    for c in range(len(state.core)):
        _refresh(state, c)
        core += state.core[c]
    state.total[0] = access + core


@inner_kernel
def _join(state: WiringState, u: int, b: int) -> None:
    """Enter user `u` into the ring of broker `b`."""
    first = state.ring[b]
    if first < 0:
        state.ring[b] = u
        state.next_user[u] = u
        state.last_user[u] = u
    else:
        last = state.last_user[first]
        state.next_user[last] = u
        state.last_user[u] = last
        state.next_user[u] = first
        state.last_user[first] = u


@inner_kernel
def _leave(state: WiringState, u: int, b: int) -> None:
    """Take user `u` out of the ring of broker `b`."""
    following = state.next_user[u]
    if following == u:
        state.ring[b] = -1
        return
    before = state.last_user[u]
    state.next_user[before] = following
    state.last_user[following] = before
    if state.ring[b] == u:
        state.ring[b] = following


@inner_kernel
def fits(state: WiringState, b: int, more: float) -> bool:
    """Has broker `b` room for so much more?"""
    return bool(state.loads[b] + more <= state.capacities[b])


@inner_kernel
def extra_moves(state: WiringState, u: int, to: int) -> int:
    """Return how many more users are away from home when `u` goes to `to`."""
    home = state.home[u]
    if home < 0:
        return 0
    return int(to != home) - int(state.broker_of[u] != home)


@inner_kernel
def spanning_tree(state: WiringState, c: int, without: int) -> tuple[int, float]:
    """Grow the tree of the brokers of channel `c` but one; return how many, and its weight."""
    count = 0
    for b in range(len(state.loads)):
        if state.subscribers[c, b] > 0 and b != without:
            state.order[count] = b
            count += 1
    weight = grow_tree(count, state.prices, state.parents, state.edges, state.order)
    state.steps[0] += count * count
    return count, weight


@inner_kernel
def _fill_reach(state: WiringState, c: int, row: FloatArray, changes: int) -> float:
    """Fill the weights that channel `c` has with the subscribers as they are now.

    For a change of so many users only where something enters and at their targets; with -1
    everywhere. Returns the weight of the tree of the channel's brokers.
    """
    brokers = len(state.loads)
    if len(state.tree_order) > 0:
        for b in range(brokers):
            state.inside[b] = state.subscribers[c, b] > 0
        state.steps[0] += 4 * brokers
        return reach_in_tree(
            state.inside,
            state.tree_order,
            state.tree_parents,
            state.tree_edges,
            state.order,
            state.ways,
            row,
        )
    count, weight = spanning_tree(state, c, -1)
    for place in range(brokers + max(changes, 0)):
        if place < brokers:
            b = place
            needed = changes < 0 or state.entering[c, b] > 0.0
        else:
            b = state.targets[place - brokers]
            needed = state.entering[c, b] == 0.0
        if state.subscribers[c, b] > 0:
            row[b] = weight
        elif needed:
            row[b] = insertion_weight(
                count, state.order, state.parents, state.edges, state.prices[b], state.ways
            )
            state.steps[0] += 2 * count
    return weight


@inner_kernel
def _refresh(state: WiringState, c: int) -> None:
    """Find the weights and the cost of channel `c` anew, for every broker."""
    state.weights[c] = _fill_reach(state, c, state.reach[c], -1)
    cost = 0.0
    nothing = _NOTHING * state.channel_rates[c]
    for b in range(len(state.loads)):
        if state.entering[c, b] <= nothing:
            state.entering[c, b] = 0.0
        cost += state.entering[c, b] * state.reach[c, b]
    state.core[c] = cost


@kernel
def try_change(state: WiringState, changes: int, most: float) -> float:
    """Return by how much a change alters the cost, and make it if that is at most `most`.

    The first `changes` of `state.users` go to `state.targets`, no user twice.
    """
    delta = 0.0
    touched = 0
    state.steps[0] += 100
    for i in range(changes):
        u, to = state.users[i], state.targets[i]
        at = state.broker_of[u]
        delta += state.demands[u] * (state.access[u, to] - state.access[u, at])
        for k in range(state.interest_start[u], state.interest_start[u + 1]):
            c = state.interest_channel[k]
            state.subscribers[c, at] -= 1
            state.subscribers[c, to] += 1
            altered = state.subscribers[c, at] == 0 or state.subscribers[c, to] == 1
            if altered and state.touched_at[c] < 0:
                state.touched_at[c] = touched
                state.touched[touched] = c
                touched += 1
    for t in range(touched):
        c = state.touched[t]
        _fill_reach(state, c, state.rows[t], changes)
        cost = 0.0
        for b in range(len(state.loads)):
            if state.entering[c, b] > 0.0:
                cost += state.entering[c, b] * state.rows[t, b]
        state.steps[0] += len(state.loads)
        delta += cost - state.core[c]
    for i in range(changes):
        u, to = state.users[i], state.targets[i]
        at = state.broker_of[u]
        for k in range(state.publish_start[u], state.publish_start[u + 1]):
            c = state.publish_channel[k]
            t = state.touched_at[c]
            if t < 0:
                delta += state.publish_rate[k] * (state.reach[c, to] - state.reach[c, at])
            else:
                delta += state.publish_rate[k] * (state.rows[t, to] - state.rows[t, at])
        state.steps[0] += 3 * (state.publish_start[u + 1] - state.publish_start[u])
        state.steps[0] += 8 * (state.interest_start[u + 1] - state.interest_start[u])
    if delta > most:
        for i in range(changes):
            u, to = state.users[i], state.targets[i]
            at = state.broker_of[u]
            for k in range(state.interest_start[u], state.interest_start[u + 1]):
                c = state.interest_channel[k]
                state.subscribers[c, at] += 1
                state.subscribers[c, to] -= 1
        for t in range(touched):
            state.touched_at[state.touched[t]] = -1
        return delta
    for i in range(changes):
        u, to = state.users[i], state.targets[i]
        at = state.broker_of[u]
        for k in range(state.publish_start[u], state.publish_start[u + 1]):
            c, rate = state.publish_channel[k], state.publish_rate[k]
            left = state.entering[c, at] - rate
            state.entering[c, at] = left if left > _NOTHING * state.channel_rates[c] else 0.0
            state.entering[c, to] += rate
            if state.touched_at[c] < 0:
                state.core[c] += rate * (state.reach[c, to] - state.reach[c, at])
        state.loads[at] -= state.demands[u]
        state.loads[to] += state.demands[u]
        state.moves[0] += extra_moves(state, u, to)
        _leave(state, u, at)
        _join(state, u, to)
        state.broker_of[u] = to
    for t in range(touched):
        c = state.touched[t]
        state.touched_at[c] = -1
        _refresh(state, c)
    state.total[0] += delta
    return delta
