"""The state that the compiled searches change, built from a problem and a wiring."""

from __future__ import annotations

import numpy as np

from distributary.arrays import IntArray
from distributary.wiring._state_kernels import WiringState, fill
from distributary.wiring.capacity import room_limits
from distributary.wiring.core import broker_tree
from distributary.wiring.problem import WiringProblem

__all__ = ["state_of"]

# Users that one change moves at most.
_CHANGES_MAX = 3


def state_of(
    problem: WiringProblem,
    broker_of: IntArray,
    core: str,
    *,
    home: IntArray | None = None,
    moves_max: int | None = None,
) -> WiringState:
    """Return the state of a wiring.

    With "one-tree" traffic stays in one tree, with any other `core` it follows spanning trees:
    branching points are left to the end, for finding them costs more than all the rest. `home` is
    where each user comes from, -1 for those who may move freely, and `moves_max` how many of the
    others may leave; all are free unless given.
    """
    users, brokers, channels = problem.user_count, problem.broker_count, problem.channel_count
    touched_max = min(channels, _CHANGES_MAX * int(np.diff(problem.interest_start).max(initial=0)))
    nothing = np.empty(0, dtype=np.int64)
    tree = broker_tree(problem.core_prices) if core == "one-tree" else None
    state = WiringState(
        publish_start=problem.publish_start,
        publish_channel=problem.publish_channel,
        publish_rate=problem.publish_rate,
        interest_start=problem.interest_start,
        interest_channel=problem.interest_channel,
        channel_rates=problem.channel_rates,
        access=problem.access_prices,
        demands=problem.demands,
        capacities=room_limits(problem),
        prices=problem.core_prices,
        tree_order=nothing if tree is None else tree.order,
        tree_parents=nothing if tree is None else tree.parents,
        tree_edges=np.empty(0) if tree is None else tree.edges,
        home=np.array(np.full(users, -1) if home is None else home, dtype=np.int64),
        broker_of=np.array(broker_of, dtype=np.int64),
        loads=np.empty(brokers),
        subscribers=np.empty((channels, brokers), dtype=np.int64),
        entering=np.empty((channels, brokers)),
        reach=np.empty((channels, brokers)),
        weights=np.empty(channels),
        core=np.empty(channels),
        total=np.zeros(1),
        ring=np.empty(brokers, dtype=np.int64),
        next_user=np.empty(users, dtype=np.int64),
        last_user=np.empty(users, dtype=np.int64),
        moves=np.array([0, users if moves_max is None else moves_max]),
        users=np.empty(_CHANGES_MAX, dtype=np.int64),
        targets=np.empty(_CHANGES_MAX, dtype=np.int64),
        touched=np.empty(touched_max, dtype=np.int64),
        touched_at=np.full(channels, -1, dtype=np.int64),
        rows=np.empty((touched_max, brokers)),
        parents=np.empty(brokers, dtype=np.int64),
        order=np.empty(brokers, dtype=np.int64),
        edges=np.empty(brokers),
        ways=np.empty(brokers),
        inside=np.empty(brokers, dtype=np.bool_),
        scores=np.empty(brokers),
        steps=np.zeros(1, dtype=np.int64),
    )
    fill(state)
    return state
