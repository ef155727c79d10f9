"""Compiled: moves, swaps, and the closing and opening of brokers.

Every change is decided by `weigh`, which is exact. What is worth weighing is guessed from
the tables of the state: as if all of a channel's traffic entered where it has subscribers.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray, UintArray
from distributary.draws import draw, draw_index
from distributary.kernels import kernel
from distributary.wiring._core_kernels import grow_tree, insertion_weight
from distributary.wiring._state_kernels import State, Work, attach, commit, revert, weigh

__all__ = ["cool", "descend", "fits", "improve", "move", "moving", "reshape", "survey"]

# A change must help by more than rounding, as a share of the whole cost.
_HELPS = 1e-12
# Of one user, so many brokers are weighed, and so many users of a full broker guessed at.
_WEIGHED, _SWAPPED = 3, 24
# While cooling, the users of a full broker that are tried for one that fits.
_FITTING = 6
# A channel is taken off a broker where it has at most so many subscribers.
_TAKEN_OFF = 12
# A guess that is this much worse than what would be accepted is not weighed.
_TRUST = 0.5


@kernel
def fits(state: State, b: int, more: float) -> bool:
    """Has broker `b` room for so much more?"""
    return bool(state.loads[b] + more <= state.capacities[b])


@kernel
def moving(home: IntArray, u: int, at: int, to: int) -> int:
    """Return how many more users are away from home when `u` goes from `at` to `to`."""
    if home[u] < 0:
        return 0
    return int(to != home[u]) - int(at != home[u])


@kernel
def guess(state: State, work: Work, u: int, to: int) -> float:
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
            work.steps[0] += brokers
    interests = state.interest_start[u + 1] - state.interest_start[u]
    work.steps[0] += 2 * (state.publish_start[u + 1] - state.publish_start[u]) + 4 * interests
    return float(change)


@kernel
def survey(state: State, work: Work, u: int, scores: FloatArray) -> None:
    """Fill `scores[b]` with about what it would change to move `u` to each broker."""
    at = state.broker_of[u]
    brokers = len(state.loads)
    for b in range(brokers):
        scores[b] = state.demands[u] * (state.access[u, b] - state.access[u, at])
    for k in range(state.publish_start[u], state.publish_start[u + 1]):
        c, rate = state.publish_channel[k], state.publish_rate[k]
        here = state.reach[c, at]
        for b in range(brokers):
            scores[b] += rate * (state.reach[c, b] - here)
    work.steps[0] += brokers * (1 + state.publish_start[u + 1] - state.publish_start[u]) // 2
    for k in range(state.interest_start[u], state.interest_start[u + 1]):
        c = state.interest_channel[k]
        rate, weight = state.channel_rates[c], state.weights[c]
        if state.subscribers[c, at] > 1 or len(state.tree_order) > 0:
            for b in range(brokers):
                if state.subscribers[c, b] == 0:
                    scores[b] += rate * (state.reach[c, b] - weight)
            work.steps[0] += brokers
            continue
        # The broker loses its last subscriber: the tree without it, and each other added.
        count = 0
        for b in range(brokers):
            if state.subscribers[c, b] > 0 and b != at:
                work.members[count] = b
                count += 1
        left = grow_tree(work.members, count, state.prices, work.parents, work.edges, work.order)
        work.steps[0] += count * count
        for b in range(brokers):
            if state.subscribers[c, b] > 0:
                scores[b] += rate * (left - weight)
            else:
                joined = insertion_weight(
                    count, work.order, work.parents, work.edges, state.prices[b], work.ways
                )
                scores[b] += rate * (joined - weight)
                work.steps[0] += 2 * count
    scores[at] = 0.0


@kernel
def _try(state: State, work: Work, changes: int, most: float) -> bool:
    """Make the change in `work` if it adds at most `most` to the cost."""
    delta, touched = weigh(state, work, changes)
    if delta <= most:
        commit(state, work, changes, touched, delta)
        return True
    revert(state, work, changes, touched)
    return False


@kernel
def move(state: State, work: Work, u: int, to: int, home: IntArray, moves: IntArray) -> bool:
    """Move `u` if that helps, there is room, and `moves` (away from home, at most) allows it."""
    at = state.broker_of[u]
    away = moving(home, u, at, to)
    if not fits(state, to, state.demands[u]) or moves[0] + away > moves[1]:
        return False
    work.users[0], work.targets[0] = u, to
    if _try(state, work, 1, -_HELPS * state.total[0]):
        moves[0] += away
        return True
    return False


@kernel
def improve(
    state: State, work: Work, u: int, scores: FloatArray, home: IntArray, moves: IntArray
) -> bool:
    """Make the best move or swap of `u` that helps; `moves` is (away from home, at most)."""
    survey(state, work, u, scores)
    at = state.broker_of[u]
    helps = -_HELPS * state.total[0]
    need = state.demands[u]
    full = -1
    full_score = helps
    for _ in range(_WEIGHED):
        best = -1
        best_score = helps
        for b in range(len(scores)):
            if scores[b] < best_score and b != at:
                if moves[0] + moving(home, u, at, b) > moves[1]:
                    continue
                if fits(state, b, need):
                    best_score = scores[b]
                    best = b
                elif scores[b] < full_score and state.ring[b] >= 0:
                    full_score = scores[b]
                    full = b
        if best < 0:
            break
        if move(state, work, u, best, home, moves):
            return True
        scores[best] = 0.0
    if full < 0:
        return False
    other = -1
    other_score = helps - full_score
    v = state.ring[full]
    for _ in range(_SWAPPED):
        both_fit = fits(state, full, need - state.demands[v]) and fits(
            state, at, state.demands[v] - need
        )
        away = moving(home, u, at, full) + moving(home, v, full, at)
        if both_fit and moves[0] + away <= moves[1]:
            score = guess(state, work, v, at)
            if score < other_score:
                other_score = score
                other = v
        v = state.next_user[v]
        if v == state.ring[full]:
            break
    state.ring[full] = v
    if other < 0:
        return False
    away = moving(home, u, at, full) + moving(home, other, full, at)
    work.users[0], work.targets[0] = u, full
    work.users[1], work.targets[1] = other, at
    if _try(state, work, 2, helps):
        moves[0] += away
        return True
    return False


@kernel
def descend(
    state: State,
    work: Work,
    order: IntArray,
    scores: FloatArray,
    home: IntArray,
    moves: IntArray,
    steps_max: int,
) -> int:
    """Offer every user of `order` its best move or swap, once; return how many were made."""
    made = 0
    for u in order:
        if work.steps[0] >= steps_max:
            break
        if improve(state, work, u, scores, home, moves):
            made += 1
    return made


@kernel
def _pick_target(
    seed: UintArray,
    state: State,
    u: int,
    near: IntArray,
    reader_start: IntArray,
    readers: IntArray,
) -> int:
    """Draw a broker for `u`: one near it, that of somebody with an interest in common, or any."""
    kind = draw(seed)
    first, end = state.interest_start[u], state.interest_start[u + 1]
    if kind < 0.5 and end > first:
        c = state.interest_channel[first + draw_index(seed, end - first)]
        k = reader_start[c] + draw_index(seed, reader_start[c + 1] - reader_start[c])
        return int(state.broker_of[readers[k]])
    if kind < 0.95:
        return int(near[u, draw_index(seed, near.shape[1])])
    return draw_index(seed, len(state.loads))


@kernel
def _make_way(state: State, work: Work, b: int, other: int, need: float) -> int:
    """Choose one user of a full broker, or two, to go to `other` in exchange for `need`.

    They are written into `work` after the first; returns how many they are, 0 for none.
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
                work.users[1], work.targets[1] = v, other
                work.users[2], work.targets[2] = following, other
                return count
            if following == v:
                break
            leaving += state.demands[following]
        v = following
    state.ring[b] = v
    return 0


@kernel
def cool(
    seed: UintArray,
    state: State,
    work: Work,
    near: IntArray,
    reader_start: IntArray,
    readers: IntArray,
    temperature: float,
    steps_max: int,
    best: IntArray,
    best_cost: FloatArray,
    home: IntArray,
    moves: IntArray,
) -> int:
    """Make random moves and swaps at one temperature, until the steps are used up.

    Parameters
    ----------
    seed
        State of `draw`.
    near
        The brokers with the cheapest access for each user, shape (users, count).
    reader_start, readers
        The subscribers of each channel, in rows.
    temperature
        Of a change in cost.
    steps_max
        The count of `work.steps` at which to stop.
    best, best_cost
        The best wiring so far, kept up to date.
    home, moves
        Where each user came from or -1; how many are away from there, and may be at most.

    Returns
    -------
    int
        How many changes were made.
    """
    made = 0
    users = len(state.broker_of)
    while work.steps[0] < steps_max:
        work.steps[0] += 100
        u = draw_index(seed, users)
        at = state.broker_of[u]
        to = _pick_target(seed, state, u, near, reader_start, readers)
        if to == at:
            continue
        away = moving(home, u, at, to)
        most = -temperature * np.log(1.0 - draw(seed))
        need = state.demands[u]
        work.users[0], work.targets[0] = u, to
        changes = 1
        if not fits(state, to, need):
            changes = 1 + _make_way(state, work, to, at, need)
            if changes == 1:
                continue
            for i in range(1, changes):
                away += moving(home, work.users[i], to, at)
        if moves[0] + away > moves[1]:
            continue
        guessed = guess(state, work, u, to)
        for i in range(1, changes):
            guessed += guess(state, work, work.users[i], at)
        if guessed * _TRUST > most:
            continue
        if _try(state, work, changes, most):
            made += 1
            moves[0] += away
            if state.total[0] < best_cost[0] * (1.0 - _HELPS):
                best_cost[0] = state.total[0]
                best[:] = state.broker_of
    return made


@kernel
def _evacuate(
    state: State,
    work: Work,
    scores: FloatArray,
    leaving: IntArray,
    count: int,
    home: IntArray,
    moves: IntArray,
) -> bool:
    """Move the first `count` users of `leaving` off their broker if that helps altogether."""
    if count == 0:
        return False
    start = state.total[0]
    away = 0
    at = state.broker_of[leaving[0]]
    done = 0
    while done < count:
        u = leaving[done]
        survey(state, work, u, scores)
        best = -1
        for b in range(len(scores)):
            allowed = b != at and fits(state, b, state.demands[u])
            if allowed and (best < 0 or scores[b] < scores[best]):
                best = b
        if best < 0 or moves[0] + away + moving(home, u, at, best) > moves[1]:
            break
        away += moving(home, u, at, best)
        attach(state, work, u, best)
        done += 1
    if done == count and state.total[0] < start * (1.0 - _HELPS):
        moves[0] += away
        return True
    for i in range(done - 1, -1, -1):
        attach(state, work, leaving[i], at)
    # What rounding left over from going there and back.
    state.total[0] = start
    return False


@kernel
def _heaviest_first(leaving: IntArray, count: int, demands: FloatArray) -> None:
    """Sort the first `count` users by what they need."""
    for i in range(1, count):
        u = leaving[i]
        j = i
        while j > 0 and demands[leaving[j - 1]] < demands[u]:
            leaving[j] = leaving[j - 1]
            j -= 1
        leaving[j] = u


@kernel
def _open(
    state: State,
    work: Work,
    b: int,
    wishing: IntArray,
    home: IntArray,
    moves: IntArray,
) -> bool:
    """Attach those to `b` who would be nearer there, if a first so many of them help."""
    start = state.total[0]
    best = start * (1.0 - _HELPS)
    best_count = 0
    count = 0
    came_from = np.empty(len(wishing), np.int64)
    taken = np.empty(len(wishing), np.int64)
    away = 0
    best_away = 0
    for u in wishing:
        at = state.broker_of[u]
        if at == b or not fits(state, b, state.demands[u]):
            continue
        if moves[0] + away + moving(home, u, at, b) > moves[1]:
            continue
        away += moving(home, u, at, b)
        came_from[count], taken[count] = at, u
        count += 1
        attach(state, work, u, b)
        if state.total[0] < best:
            best = state.total[0]
            best_count = count
            best_away = away
    for i in range(count - 1, best_count - 1, -1):
        attach(state, work, taken[i], came_from[i])
    if best_count == 0:
        state.total[0] = start
        return False
    state.total[0] = best
    moves[0] += best_away
    return True


@kernel
def reshape(
    state: State,
    work: Work,
    brokers: IntArray,
    near_users: IntArray,
    scores: FloatArray,
    home: IntArray,
    moves: IntArray,
    steps_max: int,
) -> int:
    """Try to close each broker, to take each channel off it, and to open it; count what helped.

    Parameters
    ----------
    brokers
        In which order.
    near_users
        For each broker the users that gain most by being there, shape (brokers, count).
    """
    made = 0
    leaving = np.empty(len(state.broker_of), np.int64)
    channels = state.subscribers.shape[0]
    for b in brokers:
        if work.steps[0] >= steps_max:
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
            if _evacuate(state, work, scores, leaving, count, home, moves):
                made += 1
                continue
            for c in range(channels):
                few = 2 <= state.subscribers[c, b] <= _TAKEN_OFF
                if not few or work.steps[0] >= steps_max:
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
                if some < count and _evacuate(state, work, scores, leaving, some, home, moves):
                    made += 1
                    count -= some
        if _open(state, work, b, near_users[b], home, moves):
            made += 1
    return made
