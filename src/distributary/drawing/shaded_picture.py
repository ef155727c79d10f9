"""A shaded tree as a finished file: a standalone SVG picture, or an HTML page to explore."""

from __future__ import annotations

import os
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import numpy as np

from distributary.drawing.legend import legend_markup
from distributary.drawing.page import page
from distributary.drawing.scene import NOT_MADE, TreeScene
from distributary.drawing.shaded import SHADES, ShadedTree, draw_shaded
from distributary.drawing.svg import element, number, text, text_width
from distributary.errors import BadInput, quoted

__all__ = ["shaded_html", "shaded_svg", "write_shaded"]

_RULES = files("distributary.drawing").joinpath("picture.css")
# Every node and link brings its own words as a title; the page has none for measures.
_PAGE_RULES = "#tip { display: none; }\n"

_TITLE_SIZE = 20.0
_SUBTITLE_SIZE = 13.0
_HEAD_HEIGHT = 76.0
_MARGIN = 20.0


class _Banded(TreeScene):
    """A scene whose kinds are bands, for the legend and the page."""

    @cached_property
    def colours(self) -> tuple[str, ...]:
        """A shade per band."""
        return SHADES[: len(self.kinds)]


def shaded_svg(tree: ShadedTree) -> str:
    """Return `tree` as a standalone SVG document with title and legend."""
    scene, drawn = _scene(tree), draw_shaded(tree)
    legend_width, legend_height, legend = legend_markup(scene, drawn)
    scale, margin = drawn.scale, _MARGIN * drawn.scale
    head = _HEAD_HEIGHT * scale
    head_width = max(
        text_width(tree.title, _TITLE_SIZE, bold=True), text_width(tree.subtitle, _SUBTITLE_SIZE)
    )
    width = max(drawn.width + margin + legend_width * scale, head_width * scale) + 2.0 * margin
    height = head + max(drawn.height, legend_height * scale) + margin
    words = element(
        "text", text(tree.title), class_="title", y=_TITLE_SIZE, font_size=_TITLE_SIZE
    ) + element(
        "text", text(tree.subtitle), class_="quiet", y=_TITLE_SIZE + 22.0, font_size=_SUBTITLE_SIZE
    )
    parts = (
        element("title", text(f"{tree.title}. {tree.subtitle}")),
        element("style", _RULES.read_text(encoding="utf-8")),
        element("rect", class_="paper", width=width, height=height),
        _moved(words, margin, margin, scale),
        _moved(drawn.markup, margin - drawn.left, head - drawn.top, 1.0),
        _moved(legend, 2.0 * margin + drawn.width, head, scale),
    )
    svg = element(
        "svg",
        "\n".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width / scale,
        height=height / scale,
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{svg}\n'


def shaded_html(tree: ShadedTree) -> str:
    """Return `tree` as an HTML page that needs nothing but a browser."""
    return page(_scene(tree), draw_shaded(tree), _RULES.read_text(encoding="utf-8") + _PAGE_RULES)


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
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".svg", ".html"):
        raise BadInput(
            option,
            f"{quoted(path)} ends in neither .svg nor .html",
            hint="name the file after the picture you want, as in tree.svg or tree.html",
        )
    content = shaded_svg(tree) if suffix == ".svg" else shaded_html(tree)
    try:
        target = path.resolve()
        draft = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            draft.write_text(content, encoding="utf-8", newline="\n")
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(option, f"{quoted(path)} cannot be written: {reason.lower()}") from None


def _moved(markup: str, x: float, y: float, scale: float) -> str:
    at = f"translate({number(x)} {number(y)}) scale({scale:.4g})"
    return element("g", markup, transform=at)


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
    )
