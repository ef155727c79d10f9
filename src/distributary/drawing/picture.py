"""A scene as a finished file: cards while they fit a screen, rings beyond that."""

from __future__ import annotations

from pathlib import Path

from distributary.drawing.cards import draw_cards
from distributary.drawing.drawn import DrawnTree
from distributary.drawing.frame import framed_html, framed_svg, write_framed
from distributary.drawing.rings import draw_rings
from distributary.drawing.scene import TreeScene

__all__ = ["CARDS_MAX", "html_picture", "svg_picture", "write_picture"]

# Beyond this many nodes, labels no longer fit a screen and rings take over.
CARDS_MAX = 60


def _drawn(scene: TreeScene) -> DrawnTree:
    return draw_cards(scene) if len(scene.nodes) <= CARDS_MAX else draw_rings(scene)


def svg_picture(scene: TreeScene) -> str:
    """Return `scene` as a standalone SVG document with title and legend."""
    return framed_svg(scene, _drawn(scene))


def html_picture(scene: TreeScene) -> str:
    """Return `scene` as an HTML page that needs nothing but a browser."""
    return framed_html(scene, _drawn(scene))


def write_picture(scene: TreeScene, path: Path | str, *, option: str) -> None:
    """Write `scene` to `path`, as its suffix says, whole or not at all.

    Parameters
    ----------
    scene
        What to draw.
    path
        Where to; ends in `.svg` or `.html`.
    option
        What the caller calls `path`, for the error message.
    """
    write_framed(scene, _drawn(scene), path, option=option, stem="plan")
