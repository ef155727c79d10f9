"""A drawn tree, before it is framed as a picture or a page."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.arrays import FloatArray

__all__ = ["LABELLED_MAX", "READABLE", "DrawnTree", "page_scale"]

# What a page leaves for the picture on a screen of 1,400 by 1,000 pixels.
_PAGE_WIDTH, _PAGE_HEIGHT = 1050.0, 930.0

LABELLED_MAX = 120
"""Beyond this many nodes, labels no longer fit a page and rings take over."""
READABLE = 0.85
"""Down to this scale the words in a picture can be read."""


def page_scale(width: float, height: float) -> float:
    """Return at which scale the whole of a picture fits a page; never larger than it is."""
    return min(_PAGE_WIDTH / width, _PAGE_HEIGHT / height, 1.0)


@dataclass(frozen=True, eq=False)
class DrawnTree:
    """The markup of a tree with what a frame around it has to know.

    Attributes
    ----------
    markup
        SVG elements, in the coordinates of the box.
    left, top, width, height
        The box that holds everything drawn.
    scale
        By how much text beside the tree must be larger than usual to be read when
        the whole picture fits a screen.
    xs, ys
        The point that stands for each node, shape (nodes,).
    radii
        How far each node reaches around its point, 0 where it is a card, shape (nodes,).
    key
        Pairs of a small symbol (SVG in a box of 24 by 16) and what it stands for.
    """

    markup: str
    left: float
    top: float
    width: float
    height: float
    scale: float
    xs: FloatArray
    ys: FloatArray
    radii: FloatArray
    key: tuple[tuple[str, str], ...]

    @property
    def page_scale(self) -> float:
        """At which scale the whole of it fits a page."""
        return page_scale(self.width, self.height)
