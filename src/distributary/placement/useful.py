"""Which formats can help at which broker.

The exact method is exponential in the number of formats that a broker has to
consider, so every format that provably cannot help is left out first.
"""

from __future__ import annotations

import numpy as np

from distributary.arrays import BoolArray, FloatArray
from distributary.kernels import kernel
from distributary.placement.problem import PlacementProblem

__all__ = ["useful_formats"]


def useful_formats(problem: PlacementProblem) -> BoolArray:
    """Return `useful[v, k]`: may an optimal plan have format `k` at node `v`?

    A format can help at a node only when it can be made from what the root holds, when
    something wanted at the node or below it can be made from it, and when no other
    format is at least as good in every respect.
    """
    makeable = problem.graph.makeable
    reachable: BoolArray = np.asarray(makeable[problem.held].any(axis=0))
    kept = reachable & ~_dominated(
        problem.graph.sizes, problem.graph.costs, reachable, problem.wanted_below[0] | problem.held
    )
    # leads[v, k]: can something wanted at or below v be made from k?
    leads = (problem.wanted_below.astype(np.float32) @ makeable.T.astype(np.float32)) > 0
    useful: BoolArray = kept & leads
    return useful


@kernel
def _dominated(
    sizes: FloatArray, costs: FloatArray, reachable: BoolArray, fixed: BoolArray
) -> BoolArray:
    """Return the formats (m,) that some other format replaces at no greater cost anywhere.

    Format `a` replaces `b` when nobody wants `b` and the root does not hold it (`fixed`),
    and `a` is no larger, no dearer to make from any third format, and no dearer to
    convert into any third format. Every plan that uses `b` is then a plan that uses `a`,
    at no greater cost, whatever the factors of links and nodes. Of formats that replace
    each other the first stays.
    """
    m = sizes.shape[0]
    gone = ~reachable & ~fixed
    for b in range(m):
        if gone[b] or fixed[b]:
            continue
        for a in range(m):
            if a == b or gone[a] or sizes[a] > sizes[b]:
                continue
            replaces = True
            for third in range(m):
                if third in (a, b) or gone[third]:
                    continue
                if costs[third, a] > costs[third, b] or costs[a, third] > costs[b, third]:
                    replaces = False
                    break
            if replaces:
                gone[b] = True
                break
    return gone
