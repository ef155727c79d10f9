"""DiTA in its centralised version, as section 5.1 of Zhou, Ooi and Tan tells it."""

from __future__ import annotations

from tests.reference.fidelity_loss import Instance, Parents


def dita(given: Instance, things: list[str], fanout: int) -> Parents:
    """Return the tree for some objects: descending rate, nearest node with room."""
    rate = {i: sum(given.rates[i].get(x, 0.0) for x in things) for i in given.servers}
    parents: Parents = {}
    for i in sorted((i for i in rate if rate[i] > 0), key=lambda i: (-rate[i], i)):
        with_room = [
            k for k in [given.source, *parents] if list(parents.values()).count(k) < fanout
        ]
        parents[i] = min(with_room, key=lambda k: (given.delay[k, i], k != given.source, k))
    return parents
