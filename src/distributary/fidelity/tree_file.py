"""Trees in files: from whom every server receives, and what fidelity that loses.

A tree file is one JSON object with the result's figures and an entry per tree, its
parents in the order of the problem file::

    {"method": "greedy", "average_loss": 0.021127, "overloaded": [], "seconds": 0.002,
     "trees": [{"objects": ["o1"], "parents": {"n1": "s"}}]}

`average_loss` is null when a node is overloaded: the loss is then without bound, and
`overloaded` says where.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distributary.arguments import checked
from distributary.arrays import BoolArray, IntArray
from distributary.content.documents import read_document
from distributary.content.fields import Record, no_such_name
from distributary.errors import BadInput, quoted
from distributary.fidelity._cost_kernels import top_down_order
from distributary.fidelity.forest import OUTSIDE, ROOT, Forest, members
from distributary.fidelity.problem import FidelityProblem

if TYPE_CHECKING:
    from distributary.fidelity.planner import StreamTrees

__all__ = ["parse_trees", "read_trees", "trees_document"]


@checked
def trees_document(
    problem: FidelityProblem, result: StreamTrees, node_order: Sequence[str] | None = None
) -> dict[str, object]:
    """Return the trees that a method built as a JSON document.

    Servers are written in `node_order`, usually that of the problem's file; the problem's own
    unless given.
    """
    average = float(result.loss.average)
    document: dict[str, object] = {
        "method": result.method,
        "average_loss": average if math.isfinite(average) else None,
        "overloaded": list(result.loss.overloaded),
        "seconds": float(result.seconds),
    }
    if result.evaluations is not None:
        document["evaluations"] = int(result.evaluations)
    position = {name: i for i, name in enumerate(problem.names)}
    order = [position[name] for name in (node_order or problem.names)]
    shared = result.forest.approach == "one-tree"
    trees: list[dict[str, object]] = []
    for tree, parents in enumerate(result.forest.parents.tolist()):
        trees.append(
            {
                "objects": list(problem.objects) if shared else [problem.objects[tree]],
                "parents": {
                    problem.names[i]: problem.names[parents[i]] for i in order if parents[i] >= 0
                },
            }
        )
    document["trees"] = trees
    return document


def read_trees(path: Path | str, problem: FidelityProblem, *, approach: str) -> Forest:
    """Return the trees in a file; see `parse_trees`."""
    return read_document(path, lambda document: parse_trees(document, problem, approach=approach))


@checked
def parse_trees(document: object, problem: FidelityProblem, *, approach: str) -> Forest:
    """Return the trees for `problem` in a JSON document, or raise `BadInput`.

    The figures in the document are not read: `loss` works them out from the trees. The
    trees are sound: they hold exactly the servers that they should, without cycles.

    With the approach "one-tree" the document must have one tree for all objects, with "tree-each"
    one for each; with one object there is no difference.
    """
    inside = members(problem, approach)
    objects = {name: x for x, name in enumerate(problem.objects)}
    position = {name: i for i, name in enumerate(problem.names)}
    forest = np.full(inside.shape, OUTSIDE, dtype=np.int64)
    forest[:, 0] = ROOT
    missing = dict.fromkeys(range(len(forest)))
    for entry in Record(document).records("trees", count_max=max(len(objects), 1)):
        tree = _tree_of(entry, objects, approach)
        if tree not in missing:
            what = quoted(problem.objects[tree]) if approach == "tree-each" else "all objects"
            raise BadInput(entry.place("objects"), f"{what}: there is an earlier tree for that")
        del missing[tree]
        parents = entry.record("parents")
        for name in parents.keys:
            place = parents.place(name)
            if name not in position:
                raise no_such_name(place, name, position, "a node of the problem")
            server = position[name]
            if server == 0:
                raise BadInput(place, "is the source, which has no parent")
            if not inside[tree, server]:
                raise BadInput(place, "does not belong here: it wants nothing of this tree")
            parent = parents.name(name)
            if parent not in position:
                raise no_such_name(place, parent, position, "a node of the problem")
            if not inside[tree, position[parent]]:
                raise BadInput(place, f"parent {quoted(parent)} wants nothing of this tree")
            forest[tree, server] = position[parent]
        _check_whole(parents.place(), forest[tree], inside[tree], problem.names)
    for tree in missing:
        what = "all objects" if approach == "one-tree" else quoted(problem.objects[tree])
        raise BadInput("trees", f"has no tree for {what}")
    return Forest(approach, forest)


def _tree_of(entry: Record, objects: dict[str, int], approach: str) -> int:
    """Return which tree of the forest an entry is, by the objects that it lists."""
    listed = entry.names("objects", count_max=len(objects))
    for index, name in enumerate(listed):
        if name not in objects:
            place = f"{entry.place('objects')}[{index}]"
            raise no_such_name(place, name, objects, "an object of the problem")
    if approach == "one-tree":
        if len(listed) < len(objects):
            raise BadInput(
                entry.place("objects"),
                f"has {len(listed):,} of {len(objects):,} objects, where one tree carries all",
                hint="trees of single objects go with the approach tree-each",
            )
        return 0
    if len(listed) != 1:
        raise BadInput(
            entry.place("objects"),
            f"has {len(listed):,} objects, where every object has a tree of its own",
            hint="a tree for all objects goes with the approach one-tree",
        )
    return objects[listed[0]]


def _check_whole(place: str, parents: IntArray, inside: BoolArray, names: Sequence[str]) -> None:
    """Raise `BadInput` unless every server of the tree leads up to the source."""
    for server in np.flatnonzero(inside & (parents == OUTSIDE)).tolist():
        raise BadInput(place, f"has no entry for node {quoted(names[server])}")
    reached = np.zeros(len(parents), dtype=np.bool_)
    reached[top_down_order(parents)] = True
    if bool((inside & ~reached).any()):
        # Going up from a server that the source does not reach ends on a cycle.
        at = int(np.flatnonzero(inside & ~reached)[0])
        seen: set[int] = set()
        while at not in seen:
            seen.add(at)
            at = int(parents[at])
        raise BadInput(place, f"node {quoted(names[at])} is on a cycle")
