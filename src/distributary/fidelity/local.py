"""The best move that one node sees, given only what it knows.

A node knows itself, its children and its grandchildren: how often each needs an update, how
long it takes to filter and to send, how far they are from each other, how much weight hangs
below, and how busy they are with other trees. Of what is below a grandchild it knows totals:
how many children, how many of them want each object, and the sum of their rates. No move here
takes that apart, so the totals are enough and the change of the loss comes out exactly, as
if the whole tree were known.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.fidelity._anneal_kernels import (
    ADOPT,
    COUSINS,
    DEMOTE,
    GAIN_MIN,
    PROMOTE,
    ROTATE,
    UNCLE,
)
from distributary.fidelity._descent_kernels import best_below
from distributary.fidelity._state_kernels import (
    BELOW_TOTAL,
    LOAD,
    PEAK_TOTAL,
    QUEUE,
    PackedForest,
    queueing,
)
from distributary.fidelity.forest import ROOT
from distributary.fidelity.model import tree_state

__all__ = [
    "COUSIN_SWAP",
    "DEMOTION",
    "MOVES",
    "NEPHEW_ADOPTION",
    "PARENT_CHILD_SWAP",
    "PROMOTION",
    "UNCLE_NEPHEW_SWAP",
    "LocalMove",
    "LocalView",
    "best_move",
]

PROMOTION = "promotion"
DEMOTION = "demotion"
PARENT_CHILD_SWAP = "parent-child swap"
COUSIN_SWAP = "cousin swap"
NEPHEW_ADOPTION = "nephew adoption"
UNCLE_NEPHEW_SWAP = "uncle-nephew swap"

_KINDS = {
    PROMOTE: PROMOTION,
    DEMOTE: DEMOTION,
    ROTATE: PARENT_CHILD_SWAP,
    COUSINS: COUSIN_SWAP,
    ADOPT: NEPHEW_ADOPTION,
    UNCLE: UNCLE_NEPHEW_SWAP,
}
MOVES = tuple(_KINDS[kind] for kind in sorted(_KINDS))
"""The six moves of Zhou, Ooi and Tan, section 3.2.1."""


@dataclass(frozen=True, eq=False)
class LocalView:
    """What a node knows of a tree: itself first, then its children, then its grandchildren.

    Attributes
    ----------
    names
        Of the nodes.
    parents
        The index of each one's parent, -1 at the node itself, shape (n,).
    rates
        How many updates of each object each needs per second itself, shape (n, x); 0 for
        objects that it does not want. At grandchildren the largest rate among them and
        all below.
    weights
        By how much a second of delay at each raises the cost, shape (n,).
    filter_times, send_times
        Seconds to check a message for one child, and to send it to one, shape (n,).
    delays
        Seconds from each to each, shape (n, n); those between grandchildren do not matter.
    elsewhere
        The load, the sum of peak rates and the weight below each in all other trees,
        shape (n, 3).
    below_count
        How many children each grandchild has, shape (n,); 0 at the others.
    below_receivers, below_passed
        How many of them want each object, and the sum of their peak rates, shape (n, x).
    below_weight
        The weight of everything below each grandchild, shape (n,).
    """

    names: tuple[str, ...]
    parents: IntArray
    rates: FloatArray
    weights: FloatArray
    filter_times: FloatArray
    send_times: FloatArray
    delays: FloatArray
    elsewhere: FloatArray
    below_count: IntArray
    below_receivers: IntArray
    below_passed: FloatArray
    below_weight: FloatArray


@dataclass(frozen=True, slots=True)
class LocalMove:
    """A move.

    Attributes
    ----------
    kind
        One of `MOVES`.
    moved
        The node that is promoted, demoted, adopted or swapped; the grandchild, where a
        grandchild and a child are swapped.
    other
        The new parent, or whom it is swapped with; with its own parent, the node that
        decides.
    gain
        By how much the cost falls.
    """

    kind: str
    moved: str
    other: str
    gain: float = field(compare=False)


def best_move(view: LocalView) -> LocalMove | None:
    """Return the best of the six moves among a node's children and grandchildren.

    Zhou, Ooi and Tan, Algorithm 1. None when no move gains anything. Of equal moves it is
    the first in the order of the nodes.
    """
    if len(view.names) < 3:
        return None
    state = _state(view)
    change, kind, moved, other, _ = best_below(state, 0, 0)
    if kind < 0 or not change < -GAIN_MIN * state.total[0]:
        return None
    return LocalMove(_KINDS[kind], view.names[moved], view.names[other], -float(change))


def _state(view: LocalView) -> PackedForest:
    """Return the tree in view, with leaves that stand for what is below the grandchildren."""
    known = len(view.names)
    objects = view.rates.shape[1]
    hidden = np.repeat(np.arange(known), view.below_count)
    # The first of them want each object, at the rate that gives the right sum.
    place = np.concatenate([np.arange(count) for count in view.below_count])
    wanting = place[:, None] < view.below_receivers[hidden]
    share = np.divide(
        view.below_passed,
        view.below_receivers,
        out=np.zeros((known, objects)),
        where=view.below_receivers > 0,
    )
    size = known + len(hidden)
    rates = np.zeros((1, size, objects))
    rates[0, :known] = view.rates
    rates[0, known:] = np.where(wanting, share[hidden], 0.0)
    weights = np.zeros((1, size))
    weights[0, :known] = view.weights
    weights[0, known:] = np.where(place == 0, view.below_weight[hidden], 0.0)
    times = np.zeros((2, size))
    times[0, :known], times[1, :known] = view.filter_times, view.send_times
    delays = np.zeros((size, size))
    delays[:known, :known] = view.delays
    parents = np.concatenate([view.parents, hidden])[None].astype(np.int64)
    assert parents[0, 0] == ROOT
    state = tree_state(parents, rates, weights, (times[0], times[1]), delays)
    nodes = state.nodes
    nodes[:known, [LOAD, PEAK_TOTAL, BELOW_TOTAL]] += view.elsewhere
    for k in range(known):
        queue = nodes[k, BELOW_TOTAL] * queueing(nodes[k, LOAD], nodes[k, PEAK_TOTAL])
        state.total[0] += queue - nodes[k, QUEUE]
        nodes[k, QUEUE] = queue
    return state
