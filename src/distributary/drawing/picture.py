"""A scene as a finished file: a standalone SVG picture, or an HTML page to explore."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from distributary.drawing.cards import draw_cards
from distributary.drawing.drawn import DrawnTree
from distributary.drawing.legend import legend_markup
from distributary.drawing.page import page
from distributary.drawing.rings import draw_rings
from distributary.drawing.scene import TreeScene
from distributary.drawing.svg import element, number, text, text_width
from distributary.errors import BadInput, quoted

__all__ = ["CARDS_MAX", "html_picture", "svg_picture", "write_picture"]

# Beyond this many nodes, labels no longer fit a screen and rings take over.
CARDS_MAX = 60

_TITLE_SIZE = 20.0
_SUBTITLE_SIZE = 13.0
_HEAD_HEIGHT = 76.0
_MARGIN = 20.0
_RULES = files("distributary.drawing").joinpath("picture.css")


def _drawn(scene: TreeScene) -> DrawnTree:
    return draw_cards(scene) if len(scene.nodes) <= CARDS_MAX else draw_rings(scene)


def svg_picture(scene: TreeScene) -> str:
    """Return `scene` as a standalone SVG document with title and legend."""
    tree = _drawn(scene)
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


def html_picture(scene: TreeScene) -> str:
    """Return `scene` as an HTML page that needs nothing but a browser."""
    return page(scene, _drawn(scene), _RULES.read_text(encoding="utf-8"))


def write_picture(scene: TreeScene, path: Path | str, *, option: str) -> None:
    """Write `scene` to `path`, as its suffix says.

    The file appears whole or not at all: it is written beside its place and moved.

    Parameters
    ----------
    scene
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
            hint="name the file after the picture you want, as in plan.svg or plan.html",
        )
    content = svg_picture(scene) if suffix == ".svg" else html_picture(scene)
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
