"""A scene as a picture: cards while they can be read on a page, then rows, then rings."""

from __future__ import annotations

from distributary.arguments import checked
from distributary.drawing.cards import draw_cards
from distributary.drawing.drawn import LABELLED_MAX, READABLE
from distributary.drawing.picture import Picture
from distributary.drawing.rings import draw_rings
from distributary.drawing.rows import draw_rows
from distributary.drawing.scene import TreeScene

__all__ = ["tree_picture"]


@checked
def tree_picture(scene: TreeScene) -> Picture:
    """Draw a tree whose links carry several kinds of content."""
    if len(scene.nodes) > LABELLED_MAX:
        return Picture(scene, draw_rings(scene))
    cards = draw_cards(scene)
    if cards.page_scale < READABLE:
        rows = draw_rows(scene)
        cards = max(cards, rows, key=lambda drawn: drawn.page_scale)
    return Picture(scene, cards)
