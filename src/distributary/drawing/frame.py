"""A drawn tree as a finished file: a standalone SVG picture, or an HTML page to explore."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from distributary.drawing.drawn import DrawnTree
from distributary.drawing.legend import legend_markup
from distributary.drawing.page import page
from distributary.drawing.scene import TreeScene
from distributary.drawing.svg import element, number, text, text_width
from distributary.errors import BadInput, quoted

__all__ = ["framed_html", "framed_svg", "write_framed"]

_TITLE_SIZE = 20.0
_SUBTITLE_SIZE = 13.0
_HEAD_HEIGHT = 76.0
_MARGIN = 20.0
_RULES = files("distributary.drawing").joinpath("picture.css")


def framed_svg(scene: TreeScene, tree: DrawnTree) -> str:
    """Return `tree` as a standalone SVG document, with the title and legend of `scene`."""
    legend_width, legend_height, legend = legend_markup(scene, tree)
    scale, margin = tree.scale, _MARGIN * tree.scale
    head = _HEAD_HEIGHT * scale
    body = max(tree.height, legend_height * scale)
    head_width = max(
        text_width(scene.title, _TITLE_SIZE, bold=True), text_width(scene.subtitle, _SUBTITLE_SIZE)
    )
    width = max(tree.width + margin + legend_width * scale, head_width * scale) + 2.0 * margin
    height = head + body + margin
    # A picture of a legend beside two nodes should not hang from the top of the legend.
    drop = (body - tree.height) / 2.0 if tree.height < legend_height * scale / 2.0 else 0.0
    words = element(
        "text", text(scene.title), class_="title", y=_TITLE_SIZE, font_size=_TITLE_SIZE
    ) + element(
        "text", text(scene.subtitle), class_="quiet", y=_TITLE_SIZE + 22.0, font_size=_SUBTITLE_SIZE
    )
    parts = [
        element("title", text(f"{scene.title}. {scene.subtitle}")),
        element("style", _RULES.read_text(encoding="utf-8")),
        element("rect", class_="paper", width=width, height=height),
        element("g", words, transform=f"translate({number(margin)} {number(margin)}) {_by(scale)}"),
        element(
            "g",
            tree.markup,
            class_="tree",
            transform=f"translate({number(margin - tree.left)} {number(head - tree.top + drop)})",
        ),
        element(
            "g",
            legend,
            transform=f"translate({number(2.0 * margin + tree.width)} {number(head)}) {_by(scale)}",
        ),
    ]
    svg = element(
        "svg",
        "\n".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width / scale,
        height=height / scale,
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{svg}\n'


def _by(scale: float) -> str:
    return f"scale({scale:.4g})"


def framed_html(scene: TreeScene, tree: DrawnTree) -> str:
    """Return `tree` as an HTML page that needs nothing but a browser."""
    return page(scene, tree, _RULES.read_text(encoding="utf-8"))


def write_framed(
    scene: TreeScene, tree: DrawnTree, path: Path | str, *, option: str, stem: str
) -> None:
    """Write `tree` to `path`, as its suffix says.

    The file appears whole or not at all: it is written beside its place and moved.

    Parameters
    ----------
    scene
        What the tree shows: its title, its legend and what the page tells.
    tree
        The scene, drawn.
    path
        Where to; ends in `.svg` or `.html`.
    option
        What the caller calls `path`, for the error message.
    stem
        What such a file may be named, for the error message.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".svg", ".html"):
        raise BadInput(
            option,
            f"{quoted(path)} ends in neither .svg nor .html",
            hint=f"name the file after the picture you want, as in {stem}.svg or {stem}.html",
        )
    content = framed_svg(scene, tree) if suffix == ".svg" else framed_html(scene, tree)
    try:
        # Through a symbolic link, what it points to is written, not the link.
        target = path.resolve()
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            part.write_text(content, encoding="utf-8", newline="\n")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(option, f"{quoted(path)} cannot be written: {reason.lower()}") from None
