"""A shaded tree as a picture: its bands become the kinds of a scene."""

from __future__ import annotations

import numpy as np

from distributary.drawing.picture import Picture
from distributary.drawing.scene import NOT_MADE, TreeScene
from distributary.drawing.shaded import SHADES, ShadedTree, draw_shaded

__all__ = ["shaded_picture"]


def shaded_picture(tree: ShadedTree) -> Picture:
    """Draw a tree in which every node has a measure; its bands are what the legend explains."""
    return Picture(_scene(tree), draw_shaded(tree))


def _scene(tree: ShadedTree) -> TreeScene:
    count, bands = len(tree.nodes), len(tree.bands)
    carried = np.zeros((count, bands), dtype=np.bool_)
    carried[np.arange(1, count), tree.band[1:]] = True
    nothing = np.zeros((count, bands), dtype=np.bool_)
    return TreeScene(
        title=tree.title,
        subtitle=tree.subtitle,
        nodes=tree.nodes,
        parents=tree.parents,
        kind_noun=tree.noun,
        kinds=tree.bands,
        carried=carried,
        made_from=np.full((count, bands), NOT_MADE, dtype=np.int64),
        wanted=nothing,
        # Bands that no node is in are part of the scale all the same.
        held=np.ones(bands, dtype=np.bool_),
        link_costs=np.zeros(count),
        node_costs=np.zeros(count),
        legend_columns=("nodes",),
        legend_cells=tuple((f"{int(uses):,}",) for uses in carried.sum(axis=0)),
        details=tree.details,
        palette=SHADES[:bands],
    )
