"""Are two problems the same, number for number?"""

from __future__ import annotations

import numpy as np

from distributary.fidelity.problem import FidelityProblem
from distributary.placement.problem import PlacementProblem

__all__ = ["same_placement", "same_stream"]


def same_placement(one: PlacementProblem, other: PlacementProblem) -> bool:
    return (
        one.graph.names == other.graph.names
        and one.tree.names == other.tree.names
        and (one.alpha, one.beta) == (other.alpha, other.beta)
        and all(
            np.array_equal(a, b)
            for a, b in (
                (one.graph.sizes, other.graph.sizes),
                (one.graph.costs, other.graph.costs),
                (one.tree.parents, other.tree.parents),
                (one.tree.link_costs, other.tree.link_costs),
                (one.tree.node_costs, other.tree.node_costs),
                (one.tree.bandwidths, other.tree.bandwidths),
                (one.wants, other.wants),
                (one.held, other.held),
            )
        )
    )


def same_stream(one: FidelityProblem, other: FidelityProblem) -> bool:
    return (
        one.names == other.names
        and one.objects == other.objects
        and one.adaptation == other.adaptation
        and all(
            np.array_equal(a, b)
            for a, b in (
                (one.rates, other.rates),
                (one.filter_times, other.filter_times),
                (one.send_times, other.send_times),
                (one.delays, other.delays),
            )
        )
    )
