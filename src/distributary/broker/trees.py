"""Trees for content: the union of ways to homes, estimated or discovered.

A registration tells the way from its home to the root; the way back is estimated to be the
same in reverse. A probe tells the way from the root. Either way, brokers need not have agreed
on who is there while these ways were found, so that their union need not be a tree: the first
way to a broker counts.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from distributary.broker.messages import links as messages
from distributary.broker.plan_part import Route, Step
from distributary.topology import DisseminationTree, TreeNode

__all__ = ["along_hop", "around", "reversed_route", "tree_along"]


def reversed_route(path: Sequence[messages.Step]) -> Route:
    """Return the way from a root to a home, as a registration's path has it.

    Parameters
    ----------
    path
        The brokers that the registration passed, from the home to the root, each with the
        cost of the link on which it came.
    """
    return tuple(
        (path[at].broker, path[at + 1].link_cost, path[at].node_cost)
        for at in range(len(path) - 2, -1, -1)
    )


def around(route: Route, dead: Container[str]) -> Route:
    """Return a way that leaves out some brokers on it, as if their links were one."""
    found: list[Step] = []
    skipped = 0.0
    for broker, link_cost, node_cost in route:
        if broker in dead:
            skipped = max(skipped, link_cost)
        else:
            found.append((broker, max(skipped, link_cost), node_cost))
            skipped = 0.0
    return tuple(found)


def along_hop(route: Route, step: Step) -> Route:
    """Return a way that begins with another step, after which nothing but its end is known."""
    home = route[-1]
    return (step,) if step[0] == home[0] else (step, home)


def tree_along(root: str, root_cost: float, routes: Mapping[str, Route]) -> DisseminationTree:
    """Return the union of ways as a tree.

    Parameters
    ----------
    root, root_cost
        Where all ways begin, and the cost of converting there.
    routes
        The way to each home; those whose homes come first in order count first.
    """
    nodes = {root: TreeNode(root, None, 1.0, root_cost)}
    for home in sorted(routes):
        above = root
        for broker, link_cost, node_cost in routes[home]:
            if broker not in nodes:
                nodes[broker] = TreeNode(broker, above, link_cost, node_cost)
            above = broker
    return DisseminationTree.from_nodes(nodes.values())
