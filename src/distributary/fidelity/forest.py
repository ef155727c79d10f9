"""The trees that a stream follows: one for all objects, or one for each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from distributary.arguments import check_type, checked, checked_fields
from distributary.arrays import BoolArray, IntArray, shaped
from distributary.errors import BadInput, InvalidPlan, quoted
from distributary.fidelity.problem import FidelityProblem

__all__ = ["APPROACHES", "OUTSIDE", "ROOT", "Forest", "check", "members", "verified"]

ROOT = -1
"""What stands for the parent of the source."""
OUTSIDE = -2
"""What stands for the parent of a server that is not in the tree."""

APPROACHES = ("one-tree", "tree-each")


@checked_fields
@dataclass(frozen=True, eq=False)
class Forest:
    """One tree for all objects, or a tree per object.

    Attributes
    ----------
    approach
        "one-tree" or "tree-each".
    parents
        `parents[t, i]` is the node that server `i` receives tree `t`'s objects from;
        `ROOT` at the source and `OUTSIDE` for servers not in the tree. Shape
        (trees, nodes), one tree, or as many as there are objects, in their order.
    """

    approach: str
    parents: IntArray = field(repr=False)


def members(problem: FidelityProblem, approach: str) -> BoolArray:
    """Return `members[t, i]`: is node `i` in tree `t`? The source is in all of them."""
    inside = problem.served[None, :].copy() if approach == "one-tree" else problem.wanted.T.copy()
    inside[:, 0] = True
    return inside


def verified(problem: FidelityProblem, forest: object, approach: str) -> Forest:
    """Return trees that a stranger made, or raise unless they are sound and of this approach."""
    check_type("trees", forest, Forest)
    assert isinstance(forest, Forest)
    if forest.approach != approach:
        raise BadInput("trees", f"are for {quoted(forest.approach)}, not for {approach}")
    shape = members(problem, approach).shape
    copy = Forest(approach, shaped("parents", forest.parents, shape, np.int64).copy())
    check(problem, copy)
    return copy


@checked
def check(problem: FidelityProblem, forest: Forest) -> None:
    """Raise `InvalidPlan` unless every tree holds exactly its servers and no cycle."""
    inside = members(problem, forest.approach)
    if forest.parents.shape != inside.shape:
        raise InvalidPlan(problem.names[0], f"has trees of the wrong shape {forest.parents.shape}")
    for tree, parents in enumerate(forest.parents):
        if parents[0] != ROOT:
            raise InvalidPlan(problem.names[0], "is the source, and has a parent")
        reached = np.zeros(problem.node_count, dtype=np.bool_)
        reached[0] = True
        for i in range(1, problem.node_count):
            if inside[tree, i] == (parents[i] == OUTSIDE):
                verb = "is not" if inside[tree, i] else "is"
                raise InvalidPlan(problem.names[i], f"{verb} in tree {tree}")
            way = []
            at = i
            while parents[i] != OUTSIDE and not reached[at]:
                if at in way:
                    raise InvalidPlan(problem.names[i], "is on or below a cycle")
                way.append(at)
                at = int(parents[at])
                if not 0 <= at < problem.node_count or parents[at] == OUTSIDE:
                    raise InvalidPlan(
                        problem.names[i], f"hangs below {quoted(at)}, which is not in the tree"
                    )
            reached[way] = True
