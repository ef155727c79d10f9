"""Trees by name: from whom a server receives, and how late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distributary.arguments import check_type, no_such_name
from distributary.errors import BadInput, quoted
from distributary.fidelity.forest import OUTSIDE

if TYPE_CHECKING:
    from distributary.fidelity.planner import StreamTrees

__all__ = ["TreePlace", "place_columns", "tree_place"]


@dataclass(frozen=True)
class TreePlace:
    """Where one server stands in a tree.

    Attributes
    ----------
    node
        The server, or the source.
    parent
        From whom it receives; None for the source.
    children
        To whom it sends.
    delay_s
        How long updates take from the source to it.
    loss
        Its loss of fidelity over all objects, infinite below an overloaded node.
    load
        The share of time that it is busy; overloaded from 1.
    """

    node: str
    parent: str | None
    children: tuple[str, ...]
    delay_s: float
    loss: float
    load: float


def tree_place(trees: StreamTrees, node: str, object: str | None) -> TreePlace:  # noqa: A002
    """Return where a server stands in the tree of all objects, or in that of one."""
    names = trees.problem.names
    check_type("node", node, str)
    if node not in names:
        raise no_such_name("node", node, names, "a node of the problem")
    tree, i = _tree(trees, object), names.index(node)
    parents = trees.forest.parents[tree]
    if parents[i] == OUTSIDE:
        raise BadInput("node", f"{quoted(node)} wants nothing of this tree, and is not in it")
    return TreePlace(
        node,
        names[parents[i]] if i else None,
        tuple(names[child] for child in np.flatnonzero(parents == i).tolist()),
        float(trees.loss.delays[i, tree]),
        float(trees.loss.servers[i]),
        float(trees.loss.loads[i]),
    )


def _tree(trees: StreamTrees, object: str | None) -> int:  # noqa: A002
    objects = trees.problem.objects
    check_type("object", object, str, type(None))
    if object is not None and object not in objects:
        raise no_such_name("object", object, objects, "an object of the problem")
    if trees.forest.approach == "one-tree":
        return 0
    if object is None:
        raise BadInput("object", "is not given, and every object has a tree of its own")
    return objects.index(object)


def place_columns(trees: StreamTrees) -> dict[str, list[object]]:
    """Return a row per tree and server in it; the object is None where all share a tree."""
    problem, parents = trees.problem, trees.forest.parents
    shared = trees.forest.approach == "one-tree"
    tree, server = np.nonzero(parents >= 0)
    rates = problem.rates.sum(axis=1)[server] if shared else problem.rates[server, tree]
    return {
        "object": [None if shared else problem.objects[x] for x in tree.tolist()],
        "server": [problem.names[i] for i in server.tolist()],
        "parent": [problem.names[p] for p in parents[tree, server].tolist()],
        "updates_per_s": rates.tolist(),
        "delay_s": trees.loss.delays[server, tree].tolist(),
        "server_loss": trees.loss.servers[server].tolist(),
        "server_load": trees.loss.loads[server].tolist(),
    }
