"""Compiled: a wiring under change, and what a change of a few users costs.

A change is weighed from what it touches: the access of its users, the channels they
publish on, and those channels for which a broker gains its first subscriber or loses its
last. Only the trees of the latter are grown anew; no other user is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.kernels import kernel
from distributary.wiring._core_kernels import grow_tree, insertion_weight, reach_in_tree

__all__ = ["State", "Work", "attach", "commit", "fill", "revert", "weigh"]

# Below this share of a channel's traffic, what is left at a broker is rounding.
_NOTHING = 1e-12


class State(NamedTuple):
    """A wiring and everything derived from it that a change needs.

    The first group is the problem and never changes. Channels come before brokers in every
    table, so that the numbers of one channel stand together.
    """

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


class Work(NamedTuple):
    """Room for the weighing of a change, and the count of its steps."""

    parents: IntArray
    order: IntArray
    members: IntArray
    edges: FloatArray
    ways: FloatArray
    inside: BoolArray
    # Channels whose set of brokers the change may alter, and by channel its position among
    # them or -1.
    touched: IntArray
    touched_at: IntArray
    # Their new weights, by position in `touched`.
    rows: FloatArray
    # The users of the change and their new brokers.
    users: IntArray
    targets: IntArray
    # steps[0] counts steps of about a nanosecond.
    steps: IntArray


@kernel
def fill(state: State, work: Work) -> None:
    """Derive everything from `broker_of`."""
    state.loads[:] = 0.0
    state.subscribers[:] = 0
    state.entering[:] = 0.0
    state.ring[:] = -1
    access = 0.0
    for u in range(len(state.broker_of)):
        b = state.broker_of[u]
        access += state.demands[u] * state.access[u, b]
        state.loads[b] += state.demands[u]
        _join(state, u, b)
        for k in range(state.publish_start[u], state.publish_start[u + 1]):
            state.entering[state.publish_channel[k], b] += state.publish_rate[k]
        for k in range(state.interest_start[u], state.interest_start[u + 1]):
            state.subscribers[state.interest_channel[k], b] += 1
    core = 0.0
    for c in range(len(state.core)):
        _refresh(state, work, c)
        core += state.core[c]
    state.total[0] = access + core


@kernel
def _join(state: State, u: int, b: int) -> None:
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


@kernel
def _leave(state: State, u: int, b: int) -> None:
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


@kernel
def _grow(state: State, work: Work, c: int) -> tuple[int, float]:
    """Grow the tree of the brokers of channel `c`; return how many they are and its weight."""
    count = 0
    for b in range(state.subscribers.shape[1]):
        if state.subscribers[c, b] > 0:
            work.members[count] = b
            count += 1
    weight = grow_tree(work.members, count, state.prices, work.parents, work.edges, work.order)
    work.steps[0] += count * count
    return count, weight


@kernel
def _refresh(state: State, work: Work, c: int) -> None:
    """Find the weights and the cost of channel `c` anew, for every broker."""
    brokers = state.subscribers.shape[1]
    if len(state.tree_order) > 0:
        for b in range(brokers):
            work.inside[b] = state.subscribers[c, b] > 0
        state.weights[c] = reach_in_tree(
            work.inside,
            state.tree_order,
            state.tree_parents,
            state.tree_edges,
            work.members,
            work.ways,
            state.reach[c],
        )
        work.steps[0] += 4 * brokers
    else:
        count, weight = _grow(state, work, c)
        state.weights[c] = weight
        for b in range(brokers):
            if state.subscribers[c, b] > 0:
                state.reach[c, b] = weight
            else:
                state.reach[c, b] = insertion_weight(
                    count, work.order, work.parents, work.edges, state.prices[b], work.ways
                )
                work.steps[0] += 2 * count
    cost = 0.0
    nothing = _NOTHING * state.channel_rates[c]
    for b in range(brokers):
        if state.entering[c, b] <= nothing:
            state.entering[c, b] = 0.0
        cost += state.entering[c, b] * state.reach[c, b]
    state.core[c] = cost


@kernel
def _foresee(state: State, work: Work, c: int, row: FloatArray, changes: int) -> float:
    """Fill the weights that channel `c` has with the subscribers as they are now.

    Only where something enters, and at the targets of the change. Returns the cost, before
    what the users of the change publish has moved.
    """
    brokers = state.subscribers.shape[1]
    if len(state.tree_order) > 0:
        for b in range(brokers):
            work.inside[b] = state.subscribers[c, b] > 0
        reach_in_tree(
            work.inside,
            state.tree_order,
            state.tree_parents,
            state.tree_edges,
            work.members,
            work.ways,
            row,
        )
        work.steps[0] += 4 * brokers
    else:
        count, weight = _grow(state, work, c)
        for b in range(brokers):
            if state.subscribers[c, b] > 0:
                row[b] = weight
            elif state.entering[c, b] > 0.0:
                row[b] = insertion_weight(
                    count, work.order, work.parents, work.edges, state.prices[b], work.ways
                )
                work.steps[0] += 2 * count
        for i in range(changes):
            b = work.targets[i]
            if state.subscribers[c, b] == 0 and state.entering[c, b] == 0.0:
                row[b] = insertion_weight(
                    count, work.order, work.parents, work.edges, state.prices[b], work.ways
                )
                work.steps[0] += 2 * count
    cost = 0.0
    for b in range(brokers):
        if state.entering[c, b] > 0.0:
            cost += state.entering[c, b] * row[b]
    work.steps[0] += brokers
    return cost


@kernel
def weigh(state: State, work: Work, changes: int) -> tuple[float, int]:
    """Return by how much the cost changes, and how many channels are touched.

    The first `changes` of `work.users` go to `work.targets`, no user twice. Counts of
    subscribers are left as after the change: `commit` or `revert` must follow.
    """
    delta = 0.0
    touched = 0
    work.steps[0] += 100
    for i in range(changes):
        u, to = work.users[i], work.targets[i]
        at = state.broker_of[u]
        delta += state.demands[u] * (state.access[u, to] - state.access[u, at])
        for k in range(state.interest_start[u], state.interest_start[u + 1]):
            c = state.interest_channel[k]
            state.subscribers[c, at] -= 1
            state.subscribers[c, to] += 1
            altered = state.subscribers[c, at] == 0 or state.subscribers[c, to] == 1
            if altered and work.touched_at[c] < 0:
                work.touched_at[c] = touched
                work.touched[touched] = c
                touched += 1
    for t in range(touched):
        c = work.touched[t]
        delta += _foresee(state, work, c, work.rows[t], changes) - state.core[c]
    for i in range(changes):
        u, to = work.users[i], work.targets[i]
        at = state.broker_of[u]
        for k in range(state.publish_start[u], state.publish_start[u + 1]):
            c = state.publish_channel[k]
            t = work.touched_at[c]
            if t < 0:
                delta += state.publish_rate[k] * (state.reach[c, to] - state.reach[c, at])
            else:
                delta += state.publish_rate[k] * (work.rows[t, to] - work.rows[t, at])
        work.steps[0] += 3 * (state.publish_start[u + 1] - state.publish_start[u])
        work.steps[0] += 8 * (state.interest_start[u + 1] - state.interest_start[u])
    return delta, touched


@kernel
def revert(state: State, work: Work, changes: int, touched: int) -> None:
    """Undo what `weigh` did."""
    for i in range(changes):
        u, to = work.users[i], work.targets[i]
        at = state.broker_of[u]
        for k in range(state.interest_start[u], state.interest_start[u + 1]):
            c = state.interest_channel[k]
            state.subscribers[c, at] += 1
            state.subscribers[c, to] -= 1
    for t in range(touched):
        work.touched_at[work.touched[t]] = -1


@kernel
def commit(state: State, work: Work, changes: int, touched: int, delta: float) -> None:
    """Make the change that was weighed last."""
    for i in range(changes):
        u, to = work.users[i], work.targets[i]
        at = state.broker_of[u]
        for k in range(state.publish_start[u], state.publish_start[u + 1]):
            c, rate = state.publish_channel[k], state.publish_rate[k]
            left = state.entering[c, at] - rate
            state.entering[c, at] = left if left > _NOTHING * state.channel_rates[c] else 0.0
            state.entering[c, to] += rate
            if work.touched_at[c] < 0:
                state.core[c] += rate * (state.reach[c, to] - state.reach[c, at])
        state.loads[at] -= state.demands[u]
        state.loads[to] += state.demands[u]
        _leave(state, u, at)
        _join(state, u, to)
        state.broker_of[u] = to
    for t in range(touched):
        c = work.touched[t]
        work.touched_at[c] = -1
        _refresh(state, work, c)
    state.total[0] += delta


@kernel
def attach(state: State, work: Work, u: int, to: int) -> float:
    """Move one user whatever it costs, and return by how much the cost changed."""
    work.users[0], work.targets[0] = u, to
    delta, touched = weigh(state, work, 1)
    commit(state, work, 1, touched, delta)
    return delta
