"""The state that the compiled searches change, built from a problem and a wiring."""

from __future__ import annotations

import numpy as np

from distributary.arrays import IntArray
from distributary.wiring._state_kernels import State, Work, fill
from distributary.wiring.capacity import room_limits
from distributary.wiring.core import broker_tree
from distributary.wiring.problem import WiringProblem

__all__ = ["rewired", "state_of", "work_for"]

# Users that one change moves at most.
_CHANGES_MAX = 3


def work_for(problem: WiringProblem) -> Work:
    """Return room for weighing changes."""
    brokers, channels = problem.broker_count, problem.channel_count
    interests = np.diff(problem.interest_start)
    touched_max = min(channels, _CHANGES_MAX * int(interests.max(initial=0)))
    return Work(
        parents=np.empty(brokers, dtype=np.int64),
        order=np.empty(brokers, dtype=np.int64),
        members=np.empty(brokers, dtype=np.int64),
        edges=np.empty(brokers),
        ways=np.empty(brokers),
        inside=np.empty(brokers, dtype=np.bool_),
        touched=np.empty(touched_max, dtype=np.int64),
        touched_at=np.full(channels, -1, dtype=np.int64),
        rows=np.empty((touched_max, brokers)),
        users=np.empty(_CHANGES_MAX, dtype=np.int64),
        targets=np.empty(_CHANGES_MAX, dtype=np.int64),
        steps=np.zeros(1, dtype=np.int64),
    )


def state_of(problem: WiringProblem, broker_of: IntArray, core: str, work: Work) -> State:
    """Return the state of a wiring.

    Parameters
    ----------
    problem, broker_of
        The problem, and the broker of every user.
    core
        "one-tree", or anything else for spanning trees: branching points are left to the
        end, for finding them costs more than all the rest.
    work
        Room as `work_for` makes it.
    """
    users, brokers, channels = problem.user_count, problem.broker_count, problem.channel_count
    nothing = np.empty(0, dtype=np.int64)
    tree = broker_tree(problem.core_prices) if core == "one-tree" else None
    state = State(
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
    )
    fill(state, work)
    return state


def rewired(state: State, work: Work, broker_of: IntArray) -> None:
    """Put the state to another wiring of the same problem."""
    state.broker_of[:] = broker_of
    fill(state, work)
