"""Compiled: who gains most by moving, and how to relieve overloaded brokers."""

from __future__ import annotations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.kernels import kernel
from distributary.wiring._search_kernels import estimate_moves
from distributary.wiring._state_kernels import WiringState, extra_moves, fits, try_change

__all__ = ["best_gains", "relieve"]

# Brokers to which a move of each user is evaluated.
_EVALUATED = 8


@kernel
def best_gains(state: WiringState, gains: FloatArray, targets: IntArray) -> None:
    """Fill `gains[u]` with the least that a move of `u` to `targets[u]` adds to the cost.

    At most 0. The brokers that look best are evaluated. Where those that would help are full,
    the target is -1 and the gain a guess: there may be somebody to swap with.
    """
    scores = state.scores
    for u in range(len(state.broker_of)):
        gains[u] = 0.0
        targets[u] = -1
        estimate_moves(state, u)
        full = 0.0
        for b in range(len(scores)):
            if state.moves[0] + extra_moves(state, u, b) > state.moves[1]:
                scores[b] = np.inf
            elif not fits(state, b, state.demands[u]):
                full = min(full, scores[b])
                scores[b] = np.inf
        scores[state.broker_of[u]] = np.inf
        for _ in range(_EVALUATED):
            to = int(np.argmin(scores))
            if scores[to] == np.inf:
                break
            scores[to] = np.inf
            state.users[0], state.targets[0] = u, to
            delta = try_change(state, 1, -np.inf)
            if delta < gains[u]:
                gains[u] = delta
                targets[u] = to
        if gains[u] == 0.0:
            gains[u] = full


@kernel
def relieve(state: WiringState) -> None:
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
                    estimate_moves(state, u)
                    for to in range(len(state.scores)):
                        if to == b or not fits(state, to, need):
                            continue
                        if state.moves[0] + extra_moves(state, u, to) > state.moves[1]:
                            continue
                        # Many small users would use up the moves: those that end the
                        # overload at once go before all others.
                        useful = min(need, excess)
                        price = state.scores[to] / useful
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
            state.users[0], state.targets[0] = best_user, best_target
            try_change(state, 1, np.inf)
