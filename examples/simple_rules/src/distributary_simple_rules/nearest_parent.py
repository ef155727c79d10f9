"""Which tree a stream follows, by a rule: everybody below whoever is near and has room."""

from __future__ import annotations

import numpy as np

from distributary.fidelity import OUTSIDE, ROOT, FidelityProblem, Forest

__all__ = ["CHILDREN_MAX", "nearest_parent"]

CHILDREN_MAX = 4
"""What counts as room unless `fanout` says so."""


def nearest_parent(problem: FidelityProblem, *, approach: str, fanout: int | None) -> Forest:
    """Attach servers, those near the source first, each below the nearest that has room.

    It looks at delays only and not at how busy a server is: where updates are many, it overloads
    whom it finds in the middle.
    """
    room = fanout or CHILDREN_MAX
    wanted = [problem.served] if approach == "one-tree" else list(problem.wanted.T)
    parents = np.full((len(wanted), problem.node_count), OUTSIDE, dtype=np.int64)
    for tree, inside in enumerate(wanted):
        parents[tree, 0] = ROOT
        children = np.zeros(problem.node_count, dtype=np.int64)
        attached = [0]
        servers = np.flatnonzero(inside)
        for server in servers[np.argsort(problem.delays[0, servers], kind="stable")].tolist():
            free = [node for node in attached if children[node] < room]
            parent = min(free, key=lambda node: problem.delays[node, server])
            parents[tree, server] = parent
            children[parent] += 1
            attached.append(server)
    return Forest(approach, parents)
