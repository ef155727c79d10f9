"""Refinement: a broker whose next hops are not the plan's plans its own subtree anew.

Content follows routing tables, and a plan is made on a tree that is only an estimate, or was
true when it was found. A broker knows its next hop to every home and nothing beyond: where the
plan has another child on the way, the new tree goes from the broker to the next hop and from
there to the home.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from distributary.broker.formats import Formats
from distributary.broker.plan_part import RELAY, PlanPart, Route
from distributary.broker.planning import Planning, plan_tree
from distributary.broker.settings import ContentSettings
from distributary.broker.trees import along_hop, tree_along

__all__ = ["other_hops", "refined"]


def other_hops(part: PlanPart, next_hop: Callable[[str], str | None]) -> dict[str, str | None]:
    """Return the homes whose next hop is not the child that the plan has on the way.

    Parameters
    ----------
    part
        The plan from the own broker on.
    next_hop
        Where the own broker sends what is for a home; None when it cannot be reached.
    """
    found: dict[str, str | None] = {}
    child_depth = part.first.depth + 1
    child = ""
    for node in part.nodes[1:]:
        if node.depth == child_depth:
            child = node.broker
        if node.after != RELAY:
            hop = next_hop(node.broker)
            if hop != child:
                found[node.broker] = hop
    return found


def refined(
    part: PlanPart,
    other: Mapping[str, str | None],
    *,
    formats: Formats,
    link_cost_to: Callable[[str], float],
    own_cost: float,
    own_wait_s: float,
    settings: ContentSettings,
) -> Planning:
    """Return a plan for the own subtree along the next hops that there are.

    Parameters
    ----------
    part
        The plan from the own broker on.
    other
        The homes that are reached otherwise than it says, with their next hops; those that
        cannot be reached are left out.
    formats
        Of the item.
    link_cost_to
        What the link to a neighbour costs.
    own_cost, own_wait_s
        What converting costs at the own broker, and how long that is busy with other
        conversions; what others are busy with is known from the plan.
    settings
        How to plan.
    """
    own = part.first
    node_costs = {node.broker: node.node_cost for node in part.nodes}
    routes: dict[str, Route] = {}
    for home, route in part.routes().items():
        if home == own.broker or home not in other:
            routes[home] = route
            continue
        hop = other[home]
        if hop is None:
            continue
        routes[home] = along_hop(route, (hop, link_cost_to(hop), node_costs.get(hop, 1.0)))
    homes = {home: known for home, known in part.homes().items() if home in routes}
    places = formats.places
    names = part.formats
    wants = {
        node.broker: tuple(sorted(places[names[k]] for k in node.wants))
        for node in part.nodes
        if node.broker in homes
    }
    # Who gets no format passes on nothing but the event, for which any will do.
    held = tuple(sorted(places[names[k]] for k in own.receives)) or (formats.held,)
    return plan_tree(
        formats,
        tree_along(own.broker, own_cost, routes),
        held=held,
        wants=wants,
        homes=homes,
        waits_s={**{node.broker: node.wait_s for node in part.nodes}, own.broker: own_wait_s},
        settings=settings,
    )
