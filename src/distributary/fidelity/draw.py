"""Drawing a tree of a stream: where fidelity is lost, and who is busy."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from distributary.arguments import checked
from distributary.arrays import FloatArray, IntArray
from distributary.drawing.picture import Picture
from distributary.drawing.shaded import ShadedTree, shaded_picture
from distributary.errors import quoted
from distributary.fidelity._cost_kernels import top_down_order
from distributary.fidelity.problem import FidelityProblem

if TYPE_CHECKING:
    from distributary.fidelity.planner import StreamTrees

__all__ = ["draw_trees", "shaded_tree", "trees_picture"]

# Where bands of loss end, in multiples of the mean loss; the last has no end.
_BAND_ENDS = (0.5, 1.0, 1.5, 2.0)


@checked
def draw_trees(problem: FidelityProblem, result: StreamTrees, path: Path | str) -> None:
    """Write a picture of the tree to a file, whole or not at all.

    Colour shows the loss of fidelity of a server, thickness how busy it is beside the
    busiest. Of several trees, the one with the most servers is drawn. The picture of one
    result is always the same bytes.

    A path that ends in `.svg` gets a standalone picture, `.html` a page with zoom, search and
    details, which needs nothing but a browser.
    """
    trees_picture(problem, result).write(path, option="--draw", stem="tree")


def trees_picture(problem: FidelityProblem, result: StreamTrees) -> Picture:
    """Return the picture of a result."""
    return shaded_picture(shaded_tree(problem, result))


def shaded_tree(problem: FidelityProblem, result: StreamTrees) -> ShadedTree:
    """Return what a picture of the result shows."""
    forest, lost = result.forest, result.loss
    shared = forest.approach == "one-tree"
    drawn = 0 if shared else int(problem.wanted.sum(axis=0).argmax())
    parents = forest.parents[drawn]
    # In the picture parents come before their children, and nobody is left outside.
    order = top_down_order(np.ascontiguousarray(parents))
    position = np.full(problem.node_count, -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    delays = lost.delays[order, drawn]
    if shared:
        losses = lost.servers[order]
        rates = problem.rates[order].sum(axis=1)
    else:
        rates = problem.rates[order, drawn]
        losses = rates * delays
    upward = position[parents[order]]
    upward[0] = -1
    children = np.bincount(upward[1:], minlength=len(order))
    loads = lost.loads[order]
    # Beside the busiest: nodes that are all busy for a few percent of the time still differ.
    busy = np.minimum(loads, 1.0)
    busy /= max(float(busy.max()), np.finfo(np.float64).tiny)
    bands, band = _banded(losses)
    details = tuple(
        _details(v, losses[v], delays[v], loads[v], rates[v], int(children[v]))
        for v in range(len(order))
    )
    return ShadedTree(
        title=f"Which tree the stream follows ({result.method})",
        subtitle=_subtitle(problem, result, drawn, len(order) - 1),
        nodes=tuple(problem.names[i] for i in order.tolist()),
        parents=upward,
        noun="range of loss",
        bands=bands,
        band=band,
        busy=busy,
        details=details,
    )


def _banded(losses: FloatArray) -> tuple[tuple[str, ...], IntArray]:
    """Return ranges of loss in words, and which of them each node is in."""
    servers = losses[1:]
    finite = servers[np.isfinite(servers)]
    mean = float(finite.mean()) if finite.size else 0.0
    names: list[str] = []
    band = np.zeros(len(losses), dtype=np.int64)
    if mean > 0.0:
        ends = [mean * end for end in _BAND_ENDS]
        starts = ["0", *(_figure(end) for end in ends)]
        names = [f"{start} to {end}" for start, end in pairwise(starts)]
        names.append(f"more than {starts[-1]}")
        band = np.searchsorted(np.array(ends), losses)
    elif finite.size or not servers.size:
        names = ["none"]
    if finite.size < servers.size:
        band[np.isinf(losses)] = len(names)
        names.append("without bound")
    return tuple(names), band.astype(np.int64)


def _details(
    v: int, loss: float, delay: float, load: float, rate: float, children: int
) -> tuple[str, ...]:
    """Return the figures of one node, as words."""
    busy = f"load {100.0 * load:.3g} %" + (" (overloaded)" if load >= 1.0 else "")
    lines = ["source", busy]
    if v > 0:
        late = f"{1000.0 * delay:.4g} ms" if np.isfinite(delay) else "without bound"
        lost = _figure(loss) if np.isfinite(loss) else "without bound"
        lines = [f"loss {lost}", f"delay {late}", busy, f"{rate:.3g} updates/s"]
    if children:
        lines.append("1 child" if children == 1 else f"{children:,} children")
    return tuple(lines)


def _subtitle(problem: FidelityProblem, result: StreamTrees, drawn: int, servers: int) -> str:
    """Return the figures of a result on one line, without its running time.

    Two runs of one plan must give the same picture, and no two take the same time.
    """
    average = result.loss.average
    parts = [
        f"average loss {_figure(average)}" if np.isfinite(average) else "overloaded",
        f"busiest node at {100.0 * float(result.loss.loads.max()):.3g} %",
    ]
    if result.loss.overloaded:
        parts.append(f"{len(result.loss.overloaded):,} nodes overloaded")
    if result.forest.approach == "one-tree":
        objects = problem.object_count
        parts.append(f"{objects:,} {'object' if objects == 1 else 'objects'} in one tree")
    else:
        parts.append(
            f"tree of {quoted(problem.objects[drawn])}, the object with most servers, "
            f"out of {problem.object_count:,}"
        )
    parts.append(f"{servers:,} servers")
    return " · ".join(parts)


def _figure(value: float) -> str:
    return f"{value:.3g}"
