"""Compiled: who gains most by moving, and how to relieve overloaded brokers."""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel
from distributary.wiring._search_kernels import fits, moving, survey
from distributary.wiring._state_kernels import State, Work, attach, revert, weigh

__all__ = ["best_gains", "loss_of", "relieve"]

# Brokers of which the change is weighed for each user.
_WEIGHED = 8


@kernel
def loss_of(state: State, work: Work, u: int, to: int) -> float:
    """Return what moving `u` adds to the cost, and leave everything as it is."""
    work.users[0], work.targets[0] = u, to
    delta, touched = weigh(state, work, 1)
    revert(state, work, 1, touched)
    return float(delta)


@kernel
def best_gains(
    state: State,
    work: Work,
    scores: FloatArray,
    home: IntArray,
    moves: IntArray,
    gains: FloatArray,
    targets: IntArray,
) -> None:
    """Fill `gains[u]` with the least that a move of `u` to `targets[u]` adds to the cost.

    At most 0. The brokers that look best are weighed. Where those that would help are full,
    the target is -1 and the gain a guess: there may be somebody to swap with.
    """
    for u in range(len(state.broker_of)):
        at = state.broker_of[u]
        gains[u] = 0.0
        targets[u] = -1
        survey(state, work, u, scores)
        full = 0.0
        for b in range(len(scores)):
            if moves[0] + moving(home, u, at, b) > moves[1]:
                scores[b] = np.inf
            elif not fits(state, b, state.demands[u]):
                full = min(full, scores[b])
                scores[b] = np.inf
        scores[at] = np.inf
        for _ in range(_WEIGHED):
            to = int(np.argmin(scores))
            if scores[to] == np.inf:
                break
            scores[to] = np.inf
            delta = loss_of(state, work, u, to)
            if delta < gains[u]:
                gains[u] = delta
                targets[u] = to
        if gains[u] == 0.0:
            gains[u] = full


@kernel
def relieve(state: State, work: Work, scores: FloatArray, home: IntArray, moves: IntArray) -> None:
    """Move users off brokers that carry too much, those first that cost least for their load.

    Stops when no broker is overloaded, or when nothing more can be done with the moves.
    """
    for b in range(len(state.loads)):
        while state.loads[b] > state.capacities[b]:
            excess = state.loads[b] - state.capacities[b]
            best_user, best_target = -1, -1
            best_price = np.inf
            u = state.ring[b]
            while True:
                need = state.demands[u]
                if need > 0.0:
                    survey(state, work, u, scores)
                    for to in range(len(scores)):
                        if to == b or not fits(state, to, need):
                            continue
                        if moves[0] + moving(home, u, b, to) > moves[1]:
                            continue
                        # Many small users would use up the moves: those that end the
                        # overload at once go before all others.
                        useful = min(need, excess)
                        price = scores[to] / useful
                        if need < excess:
                            price += 1e30 * (1.0 - need / excess)
                        if price < best_price:
                            best_price = price
                            best_user, best_target = u, to
                u = state.next_user[u]
                if u == state.ring[b]:
                    break
            if best_user < 0:
                break
            moves[0] += moving(home, best_user, b, best_target)
            attach(state, work, best_user, best_target)
