"""Traffic between brokers the slow way: a spanning tree per channel and entry, by Kruskal."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from distributary.arrays import FloatArray, IntArray
from distributary.wiring.problem import WiringProblem

__all__ = ["flows_by_message"]


def flows_by_message(problem: WiringProblem, broker_of: IntArray, core: str) -> FloatArray:
    """Send every rate of every user along its tree, and add up what each pair carries.

    Where several spanning trees are equally cheap, the one taken need not be the one that
    the compiled twin takes.
    """
    flows = np.zeros((problem.broker_count, problem.broker_count))
    everyone = set(range(problem.broker_count))
    for user, c in np.argwhere(problem.publishes > 0.0).tolist():
        entry = int(broker_of[user])
        readers = {int(broker_of[u]) for u in np.flatnonzero(problem.subscribes[:, c])}
        if not readers:
            continue
        ends = readers | {entry}
        if core == "one-tree":
            used = _pruned(_spanning_tree(everyone, problem.core_prices), ends)
        else:
            used = _spanning_tree(ends, problem.core_prices)
        for one, other in used:
            flows[one, other] += problem.publishes[user, c]
    return flows


def _spanning_tree(members: set[int], prices: FloatArray) -> list[tuple[int, int]]:
    part = {b: b for b in members}
    chosen = []
    pairs = combinations(sorted(members), 2)
    for one, other in sorted(pairs, key=lambda pair: (prices[pair], pair)):
        if part[one] != part[other]:
            joined = part[other]
            part = {b: part[one] if p == joined else p for b, p in part.items()}
            chosen.append((one, other))
    return chosen


def _pruned(tree: list[tuple[int, int]], ends: set[int]) -> list[tuple[int, int]]:
    """Cut off leaves until every leaf is one of the ends."""
    while True:
        degree: dict[int, int] = {}
        for edge in tree:
            for b in edge:
                degree[b] = degree.get(b, 0) + 1
        kept = [edge for edge in tree if not any(degree[b] == 1 and b not in ends for b in edge)]
        if len(kept) == len(tree):
            return tree
        tree = kept
