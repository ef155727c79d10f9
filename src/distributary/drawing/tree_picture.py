"""A scene as a picture: cards while they fit a screen, rings beyond that."""

from __future__ import annotations

from distributary.arguments import checked
from distributary.drawing.cards import CARDS_MAX, draw_cards
from distributary.drawing.picture import Picture
from distributary.drawing.rings import draw_rings
from distributary.drawing.scene import TreeScene

__all__ = ["tree_picture"]


@checked
def tree_picture(scene: TreeScene) -> Picture:
    """Draw a tree whose links carry several kinds of content."""
    small = len(scene.nodes) <= CARDS_MAX
    return Picture(scene, draw_cards(scene) if small else draw_rings(scene))
