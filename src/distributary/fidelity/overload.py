"""Overload: instances that no forest can serve, and forests that need not be overloaded.

A node whose load comes to 1 cannot keep up, and nothing below it is ever fresh. Whether
any forest avoids that is hard to say (it contains bin packing), so there are two halves:
`unservable` gives reasons why none can, all of them sound, and `repair` looks for one that
does. Between the two lies a narrow band in which neither has an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from distributary.arrays import IntArray
from distributary.errors import quoted
from distributary.fidelity import _load_kernels as loads
from distributary.fidelity import _overload_kernels as kernels
from distributary.fidelity import _shortfall_kernels as shortfalls
from distributary.fidelity.baselines import source_tree
from distributary.fidelity.exact import exact_tree
from distributary.fidelity.forest import Forest, members
from distributary.fidelity.loss import loss
from distributary.fidelity.problem import FidelityProblem

__all__ = ["Shortfall", "repair", "unservable"]

# Up to this many servers in one tree, every tree is looked at before giving up.
_SERVERS_ENUMERATED = 7
# About how many rates an attempt may look at in vain: first, and when all else has failed.
# A tenth and half of a second on the machine in docs/benchmarks.md; counts and not a
# clock, so that the same forest comes out everywhere.
_WORK_EASY, _WORK_HARD = 20_000_000, 100_000_000
# What a bound must exceed to be called one: the rest is rounding.
_CERTAIN = 1.0 + 1e-9


@dataclass(frozen=True)
class Shortfall:
    """Why no forest can serve an instance.

    Attributes
    ----------
    servers
        The names of those that cannot do it, or that cannot be served.
    load
        The load that some node would have at least; 1 and more is overload.
    reason
        The same as a sentence.
    """

    servers: tuple[str, ...]
    load: float
    reason: str


def unservable(problem: FidelityProblem, approach: str) -> list[Shortfall]:
    """Return reasons why every forest overloads some node; empty when none was found.

    Every reason is sound: where there is one, no forest without overload exists. An empty
    list promises nothing. Three things are looked at:

    - the source has to send every object that is wanted at least once, at the largest rate;
    - a server has to be below some node, which does for it at least what its own rates need;
    - all servers together, or all with at least a certain rate, have to be below nodes
      whose time is limited.
    """
    if not problem.served.any():
        return []
    return [
        *_source_shortfall(problem),
        *_server_shortfalls(problem, approach),
        *_total_shortfall(problem, approach),
    ]


def _source_shortfall(problem: FidelityProblem) -> Iterator[Shortfall]:
    """Yield the source when sending every object to a single child is too much for it."""
    sent = np.where(problem.wanted, problem.rates, 0.0).max(axis=0)
    checked = np.where(sent > 0.0, np.maximum(sent, problem.rates[0]), 0.0)
    load = float(problem.filter_times[0] * checked.sum() + problem.send_times[0] * sent.sum())
    if load >= _CERTAIN:
        name = problem.names[0]
        yield Shortfall(
            (name,),
            load,
            f"the source {quoted(name)} has a load of at least {load:.3g},"
            " even when it sends everything to one server",
        )


def _server_shortfalls(problem: FidelityProblem, approach: str) -> Iterator[Shortfall]:
    """Yield every server that is too much for any node that it could be below."""
    least = shortfalls.least_parent_loads(
        problem.rates, problem.filter_times, problem.send_times, members(problem, approach)
    )
    for i in np.flatnonzero(least >= _CERTAIN).tolist():
        name, load = problem.names[i], float(least[i])
        yield Shortfall(
            (name,),
            load,
            f"server {quoted(name)} makes a load of at least {load:.3g}"
            " for whatever node it is below",
        )


def _total_shortfall(problem: FidelityProblem, approach: str) -> Iterator[Shortfall]:
    """Yield the servers that are too many for all nodes together."""
    one = approach == "one-tree" or problem.object_count == 1
    wanted = np.where(problem.wanted, problem.rates, 0.0)
    needs = wanted.sum(axis=1, keepdims=True) if one else wanted
    server, thing = np.nonzero(needs)
    largest_first = np.argsort(-needs[server, thing], kind="stable")
    times = problem.filter_times + problem.send_times
    parents = np.sort(times[problem.served])
    # In one tree some server serves nobody; at best that is the slowest.
    parents = np.append(times[0], parents[:-1] if one else parents)
    if parents.min() <= 0.0:
        return
    load, size = shortfalls.packing_load(needs[server, thing][largest_first], parents)
    if load >= _CERTAIN:
        indices = np.unique(server[largest_first][:size])
        which = "all servers" if size == len(server) else "the servers with the largest rates"
        yield Shortfall(
            tuple(problem.names[i] for i in indices),
            load,
            f"{which} together make a load of at least {load:.3g} for the busiest node,"
            f" however they are spread ({len(indices)} of them)",
        )


def repair(problem: FidelityProblem, forest: Forest) -> Forest:
    """Return a forest without overload, if one is found, that starts from the given one.

    Overloaded nodes give what they serve to nodes where it makes little load. Where that
    is not enough, new forests are grown in several orders, each server below the node
    where it makes the least load; then, in one tree of a few servers, every tree is looked
    at; and at last overload is passed on from node to node as long as it gets smaller.
    The largest load never gets worse. A forest without overload is returned as it is, and
    the same forest always gives the same result.

    Up to seven servers in one tree it finds a forest without overload if there is one. On
    such small instances the moves alone miss one in a thousand when the best forest leaves
    the busiest node a tenth of its time, and one in a hundred when it leaves a thousandth.
    256 servers take less than a tenth of a second with one object, and with a hundred less
    than two where there is room, and up to about ten where there is hardly any.
    """
    if loss(problem, forest).loads.max() < 1.0:
        return forest
    return _repaired(problem, forest, enumerated=_SERVERS_ENUMERATED)


def _repaired(problem: FidelityProblem, forest: Forest, *, enumerated: int) -> Forest:
    """Return `repair(problem, forest)`, looking at every tree up to `enumerated` servers."""
    nodes = loads.StreamNodes(
        problem.rates, problem.filter_times, problem.send_times, problem.delays
    )
    inside = members(problem, forest.approach)
    rates_per_node = problem.node_count * problem.object_count // len(inside)
    # What cannot be had need not be looked for: where every forest overloads a node, the
    # least that its load can be is enough.
    bound = max((reason.load for reason in unservable(problem, forest.approach)), default=0.0)
    limit = max(kernels.LIMIT, bound * _CERTAIN)

    def relieved(trees: loads.LoadedTrees, *, hard: bool) -> tuple[loads.LoadedTrees, float]:
        failures_max = (_WORK_HARD if hard else _WORK_EASY) // rates_per_node + 1
        kernels.relieve(nodes, trees, limit, hard, failures_max)
        return trees, float(trees.load.max())

    first = relieved(loads.trees_of(nodes, np.ascontiguousarray(forest.parents)), hard=False)
    if first[1] < limit:
        return Forest(forest.approach, first[0].parents)
    starts = [
        loads.trees_of(nodes, source_tree(problem, forest.approach).parents),
        *(
            kernels.grow(nodes, inside, orders)
            for orders in _joining_orders(problem, forest.approach)
        ),
    ]
    others = [relieved(start, hard=False) for start in starts]
    good = [Forest(forest.approach, trees.parents) for trees, load in others if load < limit]
    if good:
        return min(good, key=lambda found: loss(problem, found).average)
    if len(inside) == 1 and problem.served.sum() <= enumerated:
        return exact_tree(problem, forest.approach)
    found = sorted([first, *others], key=lambda pair: pair[1])
    for index, (trees, _) in enumerate(found):
        found[index] = relieved(trees, hard=True)
        if found[index][1] < limit:
            break
    best, _ = min(found, key=lambda pair: pair[1])
    return Forest(forest.approach, best.parents)


def _joining_orders(problem: FidelityProblem, approach: str) -> Iterator[IntArray]:
    """Yield orders in which nodes join the trees, shape (trees, nodes), the source first.

    Fast nodes first, so that they are there to serve; those that need much first, so that
    nobody passes on more than it needs itself; and two that weigh one against the other.
    """
    rates = problem.rates.sum(axis=1)[None, :] if approach == "one-tree" else problem.rates.T
    times = np.broadcast_to(problem.filter_times + problem.send_times, rates.shape)
    per_rate = np.full(rates.shape, np.inf)
    np.divide(times, rates, out=per_rate, where=rates > 0.0)
    for key in (per_rate, times, times * rates, -rates):
        order = np.argsort(key[:, 1:], axis=1, kind="stable") + 1
        yield np.insert(order, 0, 0, axis=1)
