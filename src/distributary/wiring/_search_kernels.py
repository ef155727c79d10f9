"""Compiled: moves, swaps, and the closing and opening of brokers.

Every change is decided by `try_change`, which is exact. What is worth evaluating is guessed
from the tables of the state: as if all of a channel's traffic entered where it has
subscribers.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray, UintArray
from distributary.kernels import inner_kernel, kernel
from distributary.wiring._core_kernels import insertion_weight
from distributary.wiring._state_kernels import (
    WiringState,
    extra_moves,
    fits,
    spanning_tree,
    try_change,
)
from distributary.xorshift import uniform, uniform_index

__all__ = ["GAIN_MIN", "anneal", "descend", "estimate_move", "estimate_moves", "reshape"]

GAIN_MIN = 1e-12
"""A change must help by more than rounding, as a share of the whole cost."""
# Of one user, so many brokers are evaluated, and so many users of a full broker guessed at.
_EVALUATED, _SWAPPED = 3, 24
# While annealing, the users of a full broker that are tried for one that fits.
_FITTING = 6
# A channel is taken off a broker where it has at most so many subscribers.
_TAKEN_OFF = 12
# A guess that is this much worse than what would be accepted is not evaluated.
_TRUST = 0.5


@kernel
def estimate_move(state: WiringState, u: int, to: int) -> float:
    """Return about what it would change to move `u`, without growing a tree."""
    at = state.broker_of[u]
    change = state.demands[u] * (state.access[u, to] - state.access[u, at])
    for k in range(state.publish_start[u], state.publish_start[u + 1]):
        c = state.publish_channel[k]
        change += state.publish_rate[k] * (state.reach[c, to] - state.reach[c, at])
    brokers = len(state.loads)
    for k in range(state.interest_start[u], state.interest_start[u + 1]):
        c = state.interest_channel[k]
        if state.subscribers[c, to] == 0:
            change += state.channel_rates[c] * (state.reach[c, to] - state.weights[c])
        if state.subscribers[c, at] == 1:
            nearest = np.inf
            for b in range(brokers):
                if state.subscribers[c, b] > 0 and b != at and state.prices[at, b] < nearest:
                    nearest = state.prices[at, b]
            if nearest < np.inf:
                change -= state.channel_rates[c] * nearest
            state.steps[0] += brokers
    interests = state.interest_start[u + 1] - state.interest_start[u]
    state.steps[0] += 2 * (state.publish_start[u + 1] - state.publish_start[u]) + 4 * interests
    return float(change)


@kernel
def estimate_moves(state: WiringState, u: int) -> None:
    """Fill `scores[b]` with about what it would change to move `u` to each broker."""
    at = state.broker_of[u]
    scores = state.scores
    brokers = len(scores)
    for b in range(brokers):
        scores[b] = state.demands[u] * (state.access[u, b] - state.access[u, at])
    for k in range(state.publish_start[u], state.publish_start[u + 1]):
        c, rate = state.publish_channel[k], state.publish_rate[k]
        here = state.reach[c, at]
        for b in range(brokers):
            scores[b] += rate * (state.reach[c, b] - here)
    state.steps[0] += brokers * (1 + state.publish_start[u + 1] - state.publish_start[u]) // 2
    for k in range(state.interest_start[u], state.interest_start[u + 1]):
        c = state.interest_channel[k]
        rate, weight = state.channel_rates[c], state.weights[c]
        if state.subscribers[c, at] > 1 or len(state.tree_order) > 0:
            for b in range(brokers):
                if state.subscribers[c, b] == 0:
                    scores[b] += rate * (state.reach[c, b] - weight)
            state.steps[0] += brokers
            continue
        # The broker loses its last subscriber: the tree without it, and each other added.
        count, left = spanning_tree(state, c, at)
        for b in range(brokers):
            if state.subscribers[c, b] > 0:
                scores[b] += rate * (left - weight)
            else:
                joined = insertion_weight(
                    count, state.order, state.parents, state.edges, state.prices[b], state.ways
                )
                scores[b] += rate * (joined - weight)
                state.steps[0] += 2 * count
    scores[at] = 0.0


@inner_kernel
def _partner(state: WiringState, u: int, full: int, most: float) -> int:
    """Return the user of a full broker that best swaps with `u`, or -1.

    It looks at some of them only; the next time it goes on with the others.
    """
    at, need = state.broker_of[u], state.demands[u]
    best = -1
    v = state.ring[full]
    for _ in range(_SWAPPED):
        both_fit = fits(state, full, need - state.demands[v]) and fits(
            state, at, state.demands[v] - need
        )
        away = extra_moves(state, u, full) + extra_moves(state, v, at)
        if both_fit and state.moves[0] + away <= state.moves[1]:
            score = estimate_move(state, v, at)
            if score < most:
                most = score
                best = v
        v = state.next_user[v]
        if v == state.ring[full]:
            break
    state.ring[full] = v
    return best


@kernel
def descend(state: WiringState, order: IntArray, steps_max: int) -> int:
    """Offer every user of `order` its best move or swap, once; return how many were made."""
    made = 0
    for u in order:
        if state.steps[0] >= steps_max:
            break
        estimate_moves(state, u)
        at, need = state.broker_of[u], state.demands[u]
        helps = -GAIN_MIN * state.total[0]
        moved = False
        full = -1
        full_score = helps
        for _ in range(_EVALUATED):
            best = -1
            best_score = helps
            for b in range(len(state.scores)):
                if state.scores[b] < best_score and b != at:
                    if state.moves[0] + extra_moves(state, u, b) > state.moves[1]:
                        continue
                    if fits(state, b, need):
                        best_score = state.scores[b]
                        best = b
                    elif state.scores[b] < full_score and state.ring[b] >= 0:
                        full_score = state.scores[b]
                        full = b
            if best < 0:
                break
            state.users[0], state.targets[0] = u, best
            moved = try_change(state, 1, helps) <= helps
            if moved:
                break
            state.scores[best] = 0.0
        if not moved and full >= 0:
            other = _partner(state, u, full, helps - full_score)
            if other >= 0:
                state.users[0], state.targets[0] = u, full
                state.users[1], state.targets[1] = other, at
                moved = try_change(state, 2, helps) <= helps
        if moved:
            made += 1
    return made


@inner_kernel
def _draw_target(
    seed: UintArray,
    state: WiringState,
    u: int,
    near: IntArray,
    reader_start: IntArray,
    readers: IntArray,
) -> int:
    """Draw a broker for `u`: one near it, that of somebody with an interest in common, or any."""
    kind = uniform(seed)
    first, end = state.interest_start[u], state.interest_start[u + 1]
    if kind < 0.5 and end > first:
        c = state.interest_channel[first + uniform_index(seed, end - first)]
        k = reader_start[c] + uniform_index(seed, reader_start[c + 1] - reader_start[c])
        return int(state.broker_of[readers[k]])
    if kind < 0.95:
        return int(near[u, uniform_index(seed, near.shape[1])])
    return uniform_index(seed, len(state.loads))


@inner_kernel
def _make_way(state: WiringState, b: int, other: int, need: float) -> int:
    """Choose one user of a full broker, or two, to go to `other` in exchange for `need`.

    They are written into `users` after the first; returns how many they are, 0 for none.
    """
    v = state.ring[b]
    if v < 0:
        return 0
    for _ in range(_FITTING):
        following = state.next_user[v]
        leaving = state.demands[v]
        for count in range(1, 3):
            if fits(state, b, need - leaving) and fits(state, other, leaving - need):
                state.ring[b] = following
                state.users[1], state.targets[1] = v, other
                state.users[2], state.targets[2] = following, other
                return count
            if following == v:
                break
            leaving += state.demands[following]
        v = following
    state.ring[b] = v
    return 0


@kernel
def anneal(
    seed: UintArray,
    state: WiringState,
    near: IntArray,
    reader_start: IntArray,
    readers: IntArray,
    temperature: float,
    steps_max: int,
    best: IntArray,
    best_cost: FloatArray,
) -> None:
    """Make random moves and swaps at one temperature, until the steps are used up.

    `near` (users, count) are the brokers with the cheapest access for each user, `reader_start` and
    `readers` the subscribers of each channel, in rows. Stops when `state.steps` has come to
    `steps_max`. The best wiring so far is kept in `best` and `best_cost`.
    """
    users = len(state.broker_of)
    while state.steps[0] < steps_max:
        state.steps[0] += 100
        u = uniform_index(seed, users)
        at = state.broker_of[u]
        to = _draw_target(seed, state, u, near, reader_start, readers)
        if to == at:
            continue
        away = extra_moves(state, u, to)
        most = -temperature * np.log(1.0 - uniform(seed))
        need = state.demands[u]
        state.users[0], state.targets[0] = u, to
        changes = 1
        if not fits(state, to, need):
            changes = 1 + _make_way(state, to, at, need)
            if changes == 1:
                continue
            for i in range(1, changes):
                away += extra_moves(state, state.users[i], at)
        if state.moves[0] + away > state.moves[1]:
            continue
        guessed = estimate_move(state, u, to)
        for i in range(1, changes):
            guessed += estimate_move(state, state.users[i], at)
        if guessed * _TRUST > most:
            continue
        try_change(state, changes, most)
        if state.total[0] < best_cost[0] * (1.0 - GAIN_MIN):
            best_cost[0] = state.total[0]
            best[:] = state.broker_of


@inner_kernel
def _evacuate(state: WiringState, leaving: IntArray, count: int) -> bool:
    """Move the first `count` users of `leaving` off their broker if that helps altogether."""
    if count == 0:
        return False
    start = state.total[0]
    at = state.broker_of[leaving[0]]
    done = 0
    while done < count:
        u = leaving[done]
        estimate_moves(state, u)
        best = -1
        for b in range(len(state.scores)):
            allowed = b != at and fits(state, b, state.demands[u])
            if allowed and (best < 0 or state.scores[b] < state.scores[best]):
                best = b
        if best < 0 or state.moves[0] + extra_moves(state, u, best) > state.moves[1]:
            break
        state.users[0], state.targets[0] = u, best
        try_change(state, 1, np.inf)
        done += 1
    if done == count and state.total[0] < start * (1.0 - GAIN_MIN):
        return True
    for i in range(done - 1, -1, -1):
        state.users[0], state.targets[0] = leaving[i], at
        try_change(state, 1, np.inf)
    # What rounding left over from going there and back.
    state.total[0] = start
    return False


@inner_kernel
def _heaviest_first(leaving: IntArray, count: int, demands: FloatArray) -> None:
    """Sort the first `count` users by what they need."""
    for i in range(1, count):
        u = leaving[i]
        j = i
        while j > 0 and demands[leaving[j - 1]] < demands[u]:
            leaving[j] = leaving[j - 1]
            j -= 1
        leaving[j] = u


@inner_kernel
def _open(state: WiringState, b: int, wishing: IntArray) -> bool:
    """Attach those to `b` who would be nearer there, if a first so many of them help."""
    start = state.total[0]
    best = start * (1.0 - GAIN_MIN)
    best_count = 0
    count = 0
    came_from = np.empty(len(wishing), np.int64)
    taken = np.empty(len(wishing), np.int64)
    for u in wishing:
        at = state.broker_of[u]
        if at == b or not fits(state, b, state.demands[u]):
            continue
        if state.moves[0] + extra_moves(state, u, b) > state.moves[1]:
            continue
        came_from[count], taken[count] = at, u
        count += 1
        state.users[0], state.targets[0] = u, b
        try_change(state, 1, np.inf)
        if state.total[0] < best:
            best = state.total[0]
            best_count = count
    for i in range(count - 1, best_count - 1, -1):
        state.users[0], state.targets[0] = taken[i], came_from[i]
        try_change(state, 1, np.inf)
    state.total[0] = best if best_count > 0 else start
    return best_count > 0


@kernel
def reshape(state: WiringState, brokers: IntArray, near_users: IntArray, steps_max: int) -> int:
    """Try to close each broker, to take each channel off it, and to open it; count what helped.

    `brokers` is the order; `near_users` (brokers, count) are those that gain most by being there.
    """
    made = 0
    leaving = np.empty(len(state.broker_of), np.int64)
    for b in brokers:
        if state.steps[0] >= steps_max:
            break
        if state.ring[b] >= 0:
            count = 0
            v = state.ring[b]
            while True:
                leaving[count] = v
                count += 1
                v = state.next_user[v]
                if v == state.ring[b]:
                    break
            _heaviest_first(leaving, count, state.demands)
            if _evacuate(state, leaving, count):
                made += 1
                continue
            for c in range(len(state.core)):
                few = 2 <= state.subscribers[c, b] <= _TAKEN_OFF
                if not few or state.steps[0] >= steps_max:
                    continue
                some = 0
                v = state.ring[b]
                while True:
                    for k in range(state.interest_start[v], state.interest_start[v + 1]):
                        if state.interest_channel[k] == c:
                            leaving[some] = v
                            some += 1
                    v = state.next_user[v]
                    if v == state.ring[b]:
                        break
                if some < count and _evacuate(state, leaving, some):
                    made += 1
                    count -= some
        if _open(state, b, near_users[b]):
            made += 1
    return made
