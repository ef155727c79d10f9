"""The core: what it costs to carry each channel between brokers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distributary.arrays import BoolArray, FloatArray, IntArray
from distributary.wiring._core_kernels import (
    grow_tree,
    reach_by_spanning_trees,
    reach_in_one_tree,
)
from distributary.wiring._steiner_kernels import steiner_weights, subset_weights
from distributary.wiring.problem import WiringProblem

__all__ = ["STEINER_EXACT_MAX", "BrokerTree", "broker_tree", "core_costs", "reach", "traffic"]

# Up to so many brokers the best branching points are found by looking at all sets of them.
STEINER_EXACT_MAX = 10


@dataclass(frozen=True, eq=False)
class BrokerTree:
    """The minimum spanning tree of all brokers, from one of them outwards.

    `order` are the brokers as they join, `parents[i]` is the position in it of the broker that
    `order[i]` joins, smaller than `i` (-1 for the first), and `edges[i]` the price between the two.
    """

    order: IntArray
    parents: IntArray
    edges: FloatArray


def broker_tree(prices: FloatArray) -> BrokerTree:
    """Return the minimum spanning tree of all brokers."""
    count = len(prices)
    tree = BrokerTree(np.arange(count), np.empty(count, dtype=np.int64), np.empty(count))
    grow_tree(count, prices, tree.parents, tree.edges, tree.order)
    return tree


def traffic(problem: WiringProblem, broker_of: IntArray) -> tuple[FloatArray, IntArray]:
    """Return what enters each channel at each broker, and how many subscribers it has there.

    Rates and counts, both of shape (channels, brokers).
    """
    shape = (problem.channel_count, problem.broker_count)
    cells = shape[0] * shape[1]
    entering = np.bincount(
        problem.publish_channel * shape[1] + broker_of[problem.publisher],
        weights=problem.publish_rate,
        minlength=cells,
    )
    subscribers = np.bincount(
        problem.interest_channel * shape[1] + broker_of[problem.reader], minlength=cells
    )
    return (
        np.asarray(entering.reshape(shape), dtype=np.float64),
        np.asarray(subscribers.reshape(shape), dtype=np.int64),
    )


def reach(prices: FloatArray, inside: BoolArray, core: str = "mst") -> FloatArray:
    """Return the weight of the tree that a message needs, by channel and where it enters.

    `inside[c, b]` says whether broker `b` has a subscriber of channel `c`, and the result
    has the same shape.
    """
    rows = np.empty(inside.shape)
    if core == "one-tree":
        tree = broker_tree(prices)
        reach_in_one_tree(inside, tree.order, tree.parents, tree.edges, rows)
        return rows
    if core == "steiner" and len(prices) <= STEINER_EXACT_MAX:
        weights = subset_weights(prices, True)
        bits = 1 << np.arange(len(prices))
        sets = inside @ bits
        rows = np.asarray(weights[sets[:, None] | bits[None, :]])
        rows[sets == 0] = 0.0
        return rows
    reach_by_spanning_trees(inside, prices, rows)
    if core == "steiner":
        steiner_weights(inside, prices, rows)
    return rows


def core_costs(problem: WiringProblem, broker_of: IntArray, *, core: str = "mst") -> FloatArray:
    """Return what each channel costs between brokers."""
    entering, subscribers = traffic(problem, broker_of)
    rows = reach(problem.core_prices, subscribers > 0, core)
    return np.asarray((entering * rows).sum(axis=1))
