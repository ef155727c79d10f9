"""Drawing a plan: the tree, the formats on its links, the conversions at its nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from distributary.arguments import checked
from distributary.drawing import TreeScene, tree_picture
from distributary.drawing.picture import Picture
from distributary.placement.plan import NOT_MADE, Placement
from distributary.placement.problem import PlacementProblem

__all__ = ["draw_plan", "plan_picture", "plan_scene"]


@checked
def draw_plan(problem: PlacementProblem, placement: Placement, path: Path | str) -> None:
    """Write a picture of `placement` to a file, whole or not at all.

    Small trees get a card per broker with everything labelled, large ones rings of
    coloured links and dots. The picture of one plan is always the same bytes.

    A path that ends in `.svg` gives a standalone picture, one in `.html` a page with zoom,
    search and details, which needs nothing but a browser.
    """
    plan_picture(problem, placement).write(path, option="--draw", stem="plan")


def plan_picture(problem: PlacementProblem, placement: Placement) -> Picture:
    """Return the picture of `placement`."""
    return tree_picture(plan_scene(problem, placement))


def plan_scene(problem: PlacementProblem, placement: Placement) -> TreeScene:
    """Return what a picture of `placement` shows."""
    plan, graph = placement.plan, problem.graph
    made = plan.made_from != NOT_MADE
    sent = np.where(plan.receives, graph.sizes, 0.0).sum(axis=1)
    conversion_costs = np.zeros(made.shape)
    node, target = np.nonzero(made)
    conversion_costs[node, target] = graph.costs[plan.made_from[node, target], target]
    links, conversions = plan.receives.sum(axis=0), made.sum(axis=0)
    cells = tuple(
        (_amount(float(graph.sizes[k])), f"{int(links[k]):,}", f"{int(conversions[k]):,}")
        for k in range(problem.format_count)
    )
    return TreeScene(
        title=f"Where each conversion runs ({placement.method})",
        subtitle=_subtitle(problem, placement),
        nodes=problem.tree.names,
        parents=problem.tree.parents,
        kind_noun="format",
        kinds=graph.names,
        carried=plan.receives,
        made_from=plan.made_from,
        wanted=problem.wants,
        held=problem.held,
        link_costs=problem.link_weights * sent,
        node_costs=problem.node_weights * conversion_costs.sum(axis=1),
        legend_columns=("size", "links", "conversions"),
        legend_cells=cells,
    )


def _subtitle(problem: PlacementProblem, placement: Placement) -> str:
    """Return the figures of a plan on one line, without its running time.

    Two runs of one plan must give the same picture, and no two take the same time.
    """
    proof = "optimal" if placement.optimal else f"gap at most {100.0 * placement.gap:.2g} %"
    parts = [
        f"total cost {_amount(placement.total_cost)} ({proof})",
        f"transmission {_amount(placement.transmission_cost)}",
        f"conversion {_amount(placement.conversion_cost)}",
        f"{problem.node_count:,} nodes",
        f"{problem.format_count:,} formats",
    ]
    if placement.latest_delivery is not None:
        parts.append(f"last delivery after {_amount(placement.latest_delivery)}")
    return " · ".join(parts)


def _amount(value: float) -> str:
    """Return a figure to five significant digits, in full as long as that is readable."""
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e9 else f"{value:,.5g}"
