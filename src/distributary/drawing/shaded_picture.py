"""A shaded tree as a finished file: its bands become the kinds of a scene."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np

from distributary.drawing.frame import framed_html, framed_svg, write_framed
from distributary.drawing.scene import NOT_MADE, TreeScene
from distributary.drawing.shaded import SHADES, ShadedTree, draw_shaded

__all__ = ["shaded_html", "shaded_svg", "write_shaded"]


class _Banded(TreeScene):
    """A scene whose kinds are bands, for the legend and the page."""

    @cached_property
    def colours(self) -> tuple[str, ...]:
        """A shade per band."""
        return SHADES[: len(self.kinds)]


def shaded_svg(tree: ShadedTree) -> str:
    """Return `tree` as a standalone SVG document with title and legend."""
    return framed_svg(_scene(tree), draw_shaded(tree))


def shaded_html(tree: ShadedTree) -> str:
    """Return `tree` as an HTML page that needs nothing but a browser."""
    return framed_html(_scene(tree), draw_shaded(tree))


def write_shaded(tree: ShadedTree, path: Path | str, *, option: str) -> None:
    """Write `tree` to `path`, as its suffix says, whole or not at all.

    Parameters
    ----------
    tree
        What to draw.
    path
        Where to; ends in `.svg` or `.html`.
    option
        What the caller calls `path`, for the error message.
    """
    write_framed(_scene(tree), draw_shaded(tree), path, option=option, stem="tree")


def _scene(tree: ShadedTree) -> _Banded:
    """Return the bands as the kinds of a scene."""
    count, bands = len(tree.nodes), len(tree.bands)
    carried = np.zeros((count, bands), dtype=np.bool_)
    carried[np.arange(1, count), tree.band[1:]] = True
    nothing = np.zeros((count, bands), dtype=np.bool_)
    return _Banded(
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
    )
