"""Wiring straight from its definition, in plain Python: what it costs, and all wirings.

Trees are sums over sets of brokers, the optimum is the least of all choices of a broker
for every user. For a handful of users and brokers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from distributary.wiring.core import broker_tree
from distributary.wiring.problem import WiringProblem

Prices = Sequence[Sequence[float]]
Edge = tuple[float, int, int]
Weigh = Callable[[frozenset[int]], float]
"""What the tree that connects a set of brokers costs."""


@dataclass(frozen=True)
class Instance:
    """A wiring problem as lists, dictionaries and sets."""

    users: range
    brokers: range
    publishes: list[dict[int, float]]
    subscribes: list[set[int]]
    access: Prices
    core: Prices
    capacities: Sequence[float]


def instance(problem: WiringProblem) -> Instance:
    """Return the problem as plain Python."""
    publishes: list[dict[int, float]] = []
    subscribes: list[set[int]] = []
    for u in range(problem.user_count):
        sent = slice(problem.publish_start[u], problem.publish_start[u + 1])
        wanted = slice(problem.interest_start[u], problem.interest_start[u + 1])
        channels = problem.publish_channel[sent].tolist()
        publishes.append(dict(zip(channels, problem.publish_rate[sent].tolist(), strict=True)))
        subscribes.append(set(problem.interest_channel[wanted].tolist()))
    return Instance(
        range(problem.user_count),
        range(problem.broker_count),
        publishes,
        subscribes,
        problem.access_prices.tolist(),
        problem.core_prices.tolist(),
        problem.capacities.tolist(),
    )


def demand(given: Instance, u: int) -> float:
    """Return what a user publishes and what others publish on the channels it wants."""
    sent = sum(given.publishes[u].values())
    received = sum(
        rate
        for other in given.users
        if other != u
        for channel, rate in given.publishes[other].items()
        if channel in given.subscribes[u]
    )
    return sent + received


def load(given: Instance, broker_of: Sequence[int], b: int) -> float:
    """Return the traffic of the users of a broker."""
    return sum(demand(given, u) for u in given.users if broker_of[u] == b)


def feasible(given: Instance, broker_of: Sequence[int]) -> bool:
    """Say whether every broker has room for its users."""
    return all(
        load(given, broker_of, b) <= given.capacities[b] * (1.0 + 1e-9) for b in given.brokers
    )


def access_cost(given: Instance, broker_of: Sequence[int]) -> float:
    """Return what the traffic between users and brokers costs."""
    return sum(demand(given, u) * given.access[u][broker_of[u]] for u in given.users)


def core_cost(given: Instance, broker_of: Sequence[int], weigh: Weigh) -> float:
    """Return what the traffic between brokers costs, publication by publication."""
    total = 0.0
    for u in given.users:
        for channel, rate in given.publishes[u].items():
            concerned = {broker_of[v] for v in given.users if channel in given.subscribes[v]}
            if concerned:
                total += rate * weigh(frozenset(concerned | {broker_of[u]}))
    return total


def spanning_edges(prices: Prices, members: Iterable[int]) -> list[Edge]:
    """Return the edges of a minimum spanning tree: the cheapest first, if it joins two parts."""
    part = {b: {b} for b in members}
    chosen = []
    for price, b, other in sorted((prices[b][o], b, o) for b in part for o in part if b < o):
        if part[b] is not part[other]:
            chosen.append((price, b, other))
            joined = part[b] | part[other]
            for member in joined:
                part[member] = joined
    return chosen


def spanning_weight(prices: Prices, members: Iterable[int]) -> float:
    """Return the weight of a minimum spanning tree."""
    return sum(price for price, _, _ in spanning_edges(prices, members))


def steiner_weight(prices: Prices, members: Iterable[int]) -> float:
    """Return the weight of the best tree: every set of branching points is tried."""
    needed = set(members)
    others = [b for b in range(len(prices)) if b not in needed]
    return min(
        spanning_weight(prices, needed.union(points))
        for count in range(len(others) + 1)
        for points in itertools.combinations(others, count)
    )


def weight_within(edges: Sequence[Edge], members: Iterable[int]) -> float:
    """Return the weight of the part of a tree that connects the members.

    An edge is in it when the tree without the edge has members on both sides.
    """
    needed = set(members)
    total = 0.0
    for cut in edges:
        side = {cut[1]}
        while True:
            reached = {
                end
                for edge in edges
                if edge is not cut
                for start, end in (edge[1:], edge[:0:-1])
                if start in side and end not in side
            }
            if not reached:
                break
            side |= reached
        if needed & side and needed - side:
            total += cut[0]
    return total


def weigher(problem: WiringProblem, core: str) -> Weigh:
    """Return what a tree costs in a mode of the core, remembering what was asked before.

    There may be several minimum spanning trees of all brokers; "one-tree" takes the one that
    the problem would be wired along.
    """
    prices = problem.core_prices.tolist()
    if core == "one-tree":
        tree = broker_tree(problem.core_prices)
        order = tree.order.tolist()
        edges = [
            (float(tree.edges[i]), order[tree.parents[i]], order[i]) for i in range(1, len(order))
        ]
    known: dict[frozenset[int], float] = {}

    def weigh(members: frozenset[int]) -> float:
        if members not in known:
            if core == "mst":
                known[members] = spanning_weight(prices, members)
            elif core == "steiner":
                known[members] = steiner_weight(prices, members)
            else:
                known[members] = weight_within(edges, members)
        return known[members]

    return weigh


def every_wiring(given: Instance) -> Iterator[tuple[int, ...]]:
    """Yield every choice of brokers that all have room for their users."""
    demands = [demand(given, u) for u in given.users]
    for broker_of in itertools.product(given.brokers, repeat=len(given.users)):
        carried = [0.0 for _ in given.brokers]
        for u, b in enumerate(broker_of):
            carried[b] += demands[u]
        if all(carried[b] <= given.capacities[b] * (1.0 + 1e-9) for b in given.brokers):
            yield broker_of


def best(
    problem: WiringProblem,
    core: str,
    *,
    start: Sequence[int] | None = None,
    moves: int = 0,
) -> tuple[float, tuple[int, ...]] | None:
    """Return the least cost of all wirings and one that has it; None when none has room.

    With a `start`, of those that move at most so many users from it.
    """
    given, weigh = instance(problem), weigher(problem, core)
    # What `access_cost` adds up, worked out once for thousands of wirings.
    paid = [[demand(given, u) * price for price in given.access[u]] for u in given.users]
    found: tuple[float, tuple[int, ...]] | None = None
    for broker_of in every_wiring(given):
        if start is not None and sum(map(int.__ne__, map(int, start), broker_of)) > moves:
            continue
        total = sum(paid[u][b] for u, b in enumerate(broker_of))
        if found is None or total < found[0]:
            total += core_cost(given, broker_of, weigh)
            if found is None or total < found[0]:
                found = total, broker_of
    return found


def shortest_prices(prices: Prices) -> list[list[float]]:
    """Return the prices of cheapest ways, by taking short cuts until there are none."""
    count = len(prices)
    cheapest = [list(row) for row in prices]
    changed = True
    while changed:
        changed = False
        for i, j, by in itertools.product(range(count), repeat=3):
            if cheapest[i][by] + cheapest[by][j] < cheapest[i][j] * (1.0 - 1e-12):
                cheapest[i][j] = cheapest[i][by] + cheapest[by][j]
                changed = True
    return cheapest
