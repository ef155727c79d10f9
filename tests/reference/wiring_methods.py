"""The methods of Zhao and Wu as they are told, in plain Python with loops over everything.

Each returns the broker of every user, or None for a user that finds no broker with room.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.reference.wiring import Instance, instance

from distributary.wiring.problem import WiringProblem

Brokers = list[int | None]


class Rooms:
    """How full the brokers are."""

    def __init__(self, problem: WiringProblem) -> None:
        self.demands = problem.demands.tolist()
        self.limits = [capacity * (1.0 + 0.5e-9) for capacity in problem.capacities.tolist()]
        self.loads = [0.0 for _ in self.limits]

    def with_room(self, *users: int) -> list[int]:
        """Return the brokers with room for some users together."""
        needed = sum(self.demands[u] for u in users)
        return [b for b, load in enumerate(self.loads) if load + needed <= self.limits[b]]

    def enter(self, u: int, b: int) -> None:
        """Count a user in."""
        self.loads[b] += self.demands[u]


def scattered(problem: WiringProblem, numbers: Sequence[float]) -> Brokers:
    """Any broker with room, by a number in [0, 1) for each user."""
    rooms = Rooms(problem)
    found: Brokers = []
    for u, number in enumerate(numbers):
        choices = rooms.with_room(u)
        found.append(choices[int(number * len(choices))] if choices else None)
        if choices:
            rooms.enter(u, choices[int(number * len(choices))])
    return found


def packed(problem: WiringProblem) -> Brokers:
    """Algorithm 1: the cheapest broker with room."""
    given, rooms = instance(problem), Rooms(problem)
    found: Brokers = []
    for u in given.users:
        choices = rooms.with_room(u)
        best = min(choices, key=lambda b: (given.access[u][b], b)) if choices else None
        found.append(best)
        if best is not None:
            rooms.enter(u, best)
    return found


def traffic(given: Instance, i: int, j: int) -> float:
    """Return what two users send each other."""
    there = sum(rate for c, rate in given.publishes[i].items() if c in given.subscribes[j])
    back = sum(rate for c, rate in given.publishes[j].items() if c in given.subscribes[i])
    return there + back


def ratio(amount: float, price: float) -> tuple[bool, float]:
    """Return traffic over price, as something to compare: without a price it is the best."""
    return (True, amount) if price == 0.0 else (False, amount / price)


def clustered(problem: WiringProblem) -> Brokers:
    """Algorithm 2, as its text has it: pairs as seeds, then everybody else, heaviest first."""
    given, rooms = instance(problem), Rooms(problem)
    found: Brokers = [None for _ in given.users]
    clusters: list[list[int]] = [[] for _ in given.brokers]

    def attach(u: int, b: int) -> None:
        found[u] = b
        clusters[b].append(u)
        rooms.enter(u, b)

    for b in given.brokers:
        best: tuple[tuple[bool, float], int, int] | None = None
        for i in given.users:
            for j in range(i + 1, len(given.users)):
                if found[i] is not None or found[j] is not None or b not in rooms.with_room(i, j):
                    continue
                amount = traffic(given, i, j)
                value = ratio(amount, given.access[i][b] + given.access[j][b])
                if amount > 0.0 and (best is None or value > best[0]):
                    best = value, i, j
        if best is not None:
            attach(best[1], b)
            attach(best[2], b)
    for u in sorted(given.users, key=lambda u: (-rooms.demands[u], u)):
        if found[u] is None and (choices := rooms.with_room(u)):
            values = {
                b: ratio(sum(traffic(given, u, v) for v in clusters[b]), given.access[u][b])
                for b in choices
            }
            best_value = max(values.values())
            equal = [b for b in choices if values[b] == best_value]
            attach(u, min(equal, key=lambda b: (given.access[u][b], b)))
    return found


def way(given: Instance, t: int, v: int) -> tuple[float, int]:
    """Return the price of the shortest way from a broker to a user, and its last broker."""
    choices = [
        (given.core[t][b] + given.access[v][b] if b != t else given.access[v][t], b != t, b)
        for b in given.brokers
    ]
    price, _, last = min(choices, key=lambda c: (c[0], c[1], given.core[t][c[2]], c[2]))
    return price, last


def tree(given: Instance, source: int, terminals: list[int]) -> dict[int, int]:
    """Algorithm 3: return the broker of the source and of every terminal.

    The source takes the first broker on the shortest way to any terminal. A user that is
    taken from the queue makes its broker part of the tree, from where the distances of all
    users in the queue are updated.
    """
    parent = {
        source: min(
            given.brokers,
            key=lambda b: (
                min(given.access[source][b] + way(given, b, v)[0] for v in terminals),
                b,
            ),
        )
    }
    nearest = min(
        given.access[source][b] + way(given, b, v)[0] for b in given.brokers for v in terminals
    )
    distance = {v: float("inf") for v in terminals}
    queue = set(terminals)
    taken = source
    while queue:
        for v in sorted(queue):
            price, last = way(given, parent[taken], v)
            if price < distance[v]:
                distance[v], parent[v] = price, last
        if taken == source:
            first = min(distance.values())
            assert given.access[source][parent[source]] + first == nearest
        taken = min(queue, key=lambda v: (distance[v], v))
        queue.remove(taken)
    return parent


def weights(problem: WiringProblem) -> list[list[float]]:
    """Phase 1: what passes the edges between users and brokers, one tree for each publisher."""
    given = instance(problem)
    total = [[0.0 for _ in given.brokers] for _ in given.users]
    for c in range(problem.channel_count):
        for source in given.users:
            terminals = [v for v in given.users if c in given.subscribes[v] and v != source]
            if c in given.publishes[source] and terminals:
                for u, b in tree(given, source, terminals).items():
                    total[u][b] += given.publishes[source][c]
    return total


def mixed(problem: WiringProblem, numbers: Sequence[float]) -> Brokers:
    """Phase 2: draw a broker by the weights, among those with room, else the nearest."""
    given, rooms, passing = instance(problem), Rooms(problem), weights(problem)
    found: Brokers = []
    for u in given.users:
        choices = rooms.with_room(u)
        best: int | None = None
        left = numbers[u] * sum(passing[u][b] for b in choices)
        for b in choices:
            if passing[u][b] > 0.0 and left >= 0.0:
                best = b
                left -= passing[u][b]
        if best is None and choices:
            best = min(choices, key=lambda b: (given.access[u][b], b))
        found.append(best)
        if best is not None:
            rooms.enter(u, best)
    return found
