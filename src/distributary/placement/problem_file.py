"""Placement problems in files.

A problem file is one JSON object::

    {"formats": [{"name": "pdf", "size": 5.0}, {"name": "jpeg", "size": 2.0}],
     "conversions": [{"from": "pdf", "to": "jpeg", "cost": 3.0}],
     "source_format": "pdf", "alpha": 1.0, "beta": 1.0,
     "tree": [{"node": "N1", "parent": null, "wants": []},
              {"node": "N2", "parent": "N1", "wants": ["jpeg"], "link_cost": 1.0}]}

`alpha`, `beta`, `link_cost` and `node_cost` are 1 unless given; `bandwidth` (size units
per second, for time as the objective) is 1 / `link_cost`. The root says `parent: null`
in so many words: a parent that was merely forgotten is an error. With a network only the root has
a `parent`: the others are brokers at places of the network, which says how they are connected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from distributary.arguments import checked
from distributary.content import AdaptationGraph
from distributary.content.documents import read_document
from distributary.content.fields import Record, UnknownKeys, no_such_name
from distributary.content.graph_file import FORMATS_MAX, graph_from
from distributary.errors import BadInput, quoted
from distributary.placement.dissemination import network_tree
from distributary.placement.problem import PlacementProblem
from distributary.topology import DisseminationTree
from distributary.topology.sites import Sites
from distributary.topology.tree import TreeNode

__all__ = ["ProblemFile", "parse_problem", "problem_document", "read_problem"]

NODES_MAX = 1_000_000
# A plan holds a handful of bytes for every format at every node.
CELLS_MAX = 100_000_000

_TOP_KEYS = frozenset({"formats", "conversions", "source_format", "alpha", "beta", "tree"})
_ENTRY_KEYS = {
    "formats[]": frozenset({"name", "size"}),
    "conversions[]": frozenset({"from", "to", "cost"}),
    "tree[]": frozenset({"node", "parent", "wants", "link_cost", "node_cost", "bandwidth"}),
}


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """A problem, and what the file says beyond it.

    The order of the problem does not depend on the file; plans keep `node_order`, which is that of
    the file. Each thing in it that is ignored has a sentence in `warnings`.
    """

    problem: PlacementProblem
    node_order: tuple[str, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Entry:
    """One entry of the tree, as the file has it."""

    node: TreeNode
    wants: tuple[int, ...]


def read_problem(
    path: Path | str, *, graph: AdaptationGraph | None = None, sites: Sites | None = None
) -> ProblemFile:
    """Return the placement problem in a file; see `parse_problem`."""
    return read_document(path, lambda document: parse_problem(document, graph=graph, sites=sites))


@checked
def parse_problem(
    document: object, *, graph: AdaptationGraph | None = None, sites: Sites | None = None
) -> ProblemFile:
    """Return the placement problem in a parsed JSON document, or raise `BadInput`.

    With a graph the document has no formats and conversions of its own, and with sites no links:
    nodes have the names of sites, and the tree is that of the quickest ways from the root, as in
    `dissemination_problem`.
    """
    top = Record(document)
    unknown = UnknownKeys()
    unknown.note(top, _TOP_KEYS)
    if graph is None:
        graph = graph_from(top, visit=lambda entry: unknown.note(entry, _ENTRY_KEYS[entry.section]))
    else:
        for key in ("formats", "conversions"):
            if key in top:
                raise BadInput(
                    key,
                    "is given both here and by the calibrated graph",
                    hint="leave it out of the tree file, or plan without the graph",
                )
    formats = {name: k for k, name in enumerate(graph.names)}
    source = top.name("source_format")
    if source not in formats:
        raise no_such_name("source_format", source, formats, "a format")
    alpha, beta = top.number("alpha", 1.0), top.number("beta", 1.0)
    entries = _tree_entries(top, formats, unknown, sites)
    if sites is not None:
        entries = _connected(entries, sites)
    tree = DisseminationTree.from_nodes(entry.node for entry in entries)
    position = {name: v for v, name in enumerate(tree.names)}
    wants = np.zeros((tree.node_count, len(formats)), dtype=np.bool_)
    wishes = [(position[entry.node.name], k) for entry in entries for k in entry.wants]
    if wishes:
        rows, columns = zip(*wishes, strict=True)
        wants[rows, columns] = True
    held = np.zeros(len(formats), dtype=np.bool_)
    held[formats[source]] = True
    return ProblemFile(
        PlacementProblem(graph, tree, wants, held, alpha, beta),
        tuple(entry.node.name for entry in entries),
        unknown.warnings(),
    )


@checked
def problem_document(
    problem: PlacementProblem, *, node_order: Sequence[str] | None = None
) -> dict[str, object]:
    """Return `problem`, in which one format is held, as `parse_problem` reads it back.

    Nodes are written in `node_order`, in the problem's own unless given.
    """
    graph, tree = problem.graph, problem.tree
    held = np.flatnonzero(problem.held)
    if held.size != 1:
        raise BadInput("held", "a problem file has exactly one source format")
    origins, targets = np.nonzero(np.isfinite(graph.costs))
    position = {name: v for v, name in enumerate(tree.names)}
    nodes: list[dict[str, object]] = []
    for name in tree.names if node_order is None else node_order:
        v = position[name]
        parent = int(tree.parents[v])
        node: dict[str, object] = {
            "node": name,
            "parent": None if parent < 0 else tree.names[parent],
            "wants": [graph.names[k] for k in np.flatnonzero(problem.wants[v])],
        }
        link_cost, bandwidth = float(tree.link_costs[v]), float(tree.bandwidths[v])
        if link_cost != 1.0:
            node["link_cost"] = link_cost
        if tree.node_costs[v] != 1.0:
            node["node_cost"] = float(tree.node_costs[v])
        if bandwidth != (1.0 / link_cost if link_cost else np.inf):
            node["bandwidth"] = bandwidth
        nodes.append(node)
    return {
        "formats": [
            {"name": name, "size": float(size)}
            for name, size in zip(graph.names, graph.sizes, strict=True)
        ],
        "conversions": [
            {"from": graph.names[i], "to": graph.names[j], "cost": float(graph.costs[i, j])}
            for i, j in zip(origins, targets, strict=True)
        ],
        "source_format": graph.names[int(held[0])],
        "alpha": float(problem.alpha),
        "beta": float(problem.beta),
        "tree": nodes,
    }


def _connected(entries: list[_Entry], sites: Sites) -> list[_Entry]:
    """Return the entries with parents and factors of links as the network has them."""
    root_first = sorted(entries, key=lambda entry: entry.node.parent is not None)
    roots = [entry.node.name for entry in entries if entry.node.parent is None]
    if len(roots) != 1:
        said = f"node {quoted(roots[1])} is a second root" if roots else "has no root"
        raise BadInput("tree", said, hint="one node says parent: null, where content comes from")
    chosen = sites.indices((entry.node.name for entry in root_first), "tree[].node")
    parents, lengths = network_tree(sites, chosen)
    return [
        replace(
            entry,
            node=replace(
                entry.node,
                parent=parents[entry.node.name],
                link_cost=lengths.get(entry.node.name, 1.0),
            ),
        )
        for entry in entries
    ]


def _parent(entry: Record, sites: Sites | None) -> str | None:
    """Return the parent of a node; with a network some text, unless the node is the root."""
    if sites is None:
        return entry.name_or_null("parent")
    if "parent" in entry and entry.value("parent") is None:
        return None
    for key in ("parent", "link_cost", "bandwidth"):
        if key in entry:
            raise BadInput(
                entry.place(key),
                "is given both here and by the network",
                hint="leave it out; the root alone says parent: null",
            )
    return sites.file


def _tree_entries(
    top: Record, formats: dict[str, int], unknown: UnknownKeys, sites: Sites | None
) -> list[_Entry]:
    """Return the entries of the tree, checked one by one."""
    entries: list[_Entry] = []
    for entry in top.records("tree", count_max=NODES_MAX):
        wants = entry.names("wants", count_max=FORMATS_MAX)
        for position, wanted in enumerate(wants):
            if wanted not in formats:
                place = f"{entry.place('wants')}[{position}]"
                raise no_such_name(place, wanted, formats, "a format")
        node = TreeNode(
            entry.name("node"),
            _parent(entry, sites),
            entry.number("link_cost", 1.0),
            entry.number("node_cost", 1.0),
            entry.number("bandwidth", positive=True) if "bandwidth" in entry else None,
        )
        unknown.note(entry, _ENTRY_KEYS["tree[]"])
        entries.append(_Entry(node, tuple(formats[wanted] for wanted in wants)))
    if len(entries) * len(formats) > CELLS_MAX:
        raise BadInput(
            "tree",
            f"has {len(entries):,} nodes for {len(formats):,} formats; "
            f"nodes times formats is at most {CELLS_MAX:,}",
        )
    return entries
