"""Overload: reasons why no forest can serve an instance.

A node whose load comes to 1 cannot keep up, and nothing below it is ever fresh. Whether
any forest avoids that is hard to say (it contains bin packing), so there are two halves:
`unservable` gives reasons why none can, all of them sound, and `search.repair` looks for one
that does. Between the two lies a narrow band in which neither has an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from distributary.errors import quoted
from distributary.fidelity import _shortfall_kernels as shortfalls
from distributary.fidelity.forest import members
from distributary.fidelity.problem import FidelityProblem

__all__ = ["Shortfall", "unservable"]

# What a bound must exceed to be called one: the rest is rounding.
_CERTAIN = 1.0 + 1e-9


@dataclass(frozen=True)
class Shortfall:
    """Why no forest can serve an instance.

    The servers are those that cannot do it, or that cannot be served; some node would have at least
    this load, and `reason` says it as a sentence.
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
