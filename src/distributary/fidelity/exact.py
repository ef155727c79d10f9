"""The exact method: look at every tree.

A source and `m` servers have (m + 1)**(m - 1) trees (Cayley), 4.8 million for eight. That
is the end of the range: the method is there to tell how far the others are from the best,
and to be the answer for a handful of servers.
"""

from __future__ import annotations

import math

import numpy as np

from distributary.errors import BadInput, TooLarge
from distributary.fidelity._exact_kernels import best_tree
from distributary.fidelity.forest import APPROACHES, OUTSIDE, ROOT, Forest
from distributary.fidelity.problem import FidelityProblem

__all__ = ["SERVERS_MAX", "exact_tree"]

SERVERS_MAX = 8
"""How many servers `exact_tree` takes, not counting those that want nothing."""

# Seconds per tree, and per tree, node and object, on the machine in docs/benchmarks.md.
# They only have to be about right.
_SECONDS_PER_TREE = 1e-7
_SECONDS_PER_ENTRY = 5e-9


def exact_tree(problem: FidelityProblem, approach: str = "one-tree") -> Forest:
    """Return the tree with the least average loss of fidelity.

    It is optimal. When a node is overloaded in every tree, it is one whose largest load is
    as small as can be. Eight servers with one object take a second or two, each server
    less makes it about twelve times faster, and with many objects time grows with their
    number.

    Raises `BadInput` with a tree each for several objects: the trees share the servers' time, so
    that every combination of trees would have to be tried. Raises `TooLarge` with more than eight
    servers, before anything is computed.
    """
    assert approach in APPROACHES
    if approach == "tree-each" and problem.object_count > 1:
        raise BadInput(
            "method 'exact'",
            f"builds one tree, and there are {problem.object_count} objects with a tree each",
            hint="use approach 'one-tree' or method 'auto'",
        )
    inside = np.flatnonzero(problem.served)
    _require_few(len(inside), problem.object_count)
    parents = np.full((1, problem.node_count), OUTSIDE, dtype=np.int64)
    parents[0, 0] = ROOT
    if len(inside) > 0:
        labels = np.append(inside, 0)
        adaptation = problem.adaptation
        best = best_tree(
            problem.rates[labels],
            problem.weights[labels].sum(axis=1),
            problem.filter_times[labels],
            problem.send_times[labels],
            problem.delays[np.ix_(labels, labels)],
            adaptation.collecting if adaptation else 0.0,
            adaptation.deciding if adaptation else 0.0,
        )
        parents[0, inside] = labels[best]
    return Forest(approach, parents)


def _require_few(servers: int, objects: int) -> None:
    """Raise `TooLarge` when there are too many trees to look at each."""
    if servers <= SERVERS_MAX:
        return
    magnitude = (servers - 1) * math.log10(servers + 1)
    per_tree = _SECONDS_PER_TREE + _SECONDS_PER_ENTRY * (servers + 1) * objects
    seconds = 10.0**magnitude * per_tree if magnitude < 300 else math.inf
    trees = f"{10.0**magnitude:.2g}" if magnitude < 300 else f"10**{magnitude:.0f}"
    duration = f"about {seconds:.2g} s" if magnitude < 300 else "more time than there is"
    raise TooLarge(
        f"method 'exact' would look at {trees} trees for {servers} servers, which takes {duration};"
        f" it takes at most {SERVERS_MAX} servers; hint: use method 'auto'",
        seconds=seconds,
        memory_bytes=float(servers * (objects + 10) * 8),
    )
