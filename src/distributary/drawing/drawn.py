"""A drawn tree, before it is framed as a picture or a page."""

from __future__ import annotations

from dataclasses import dataclass

from distributary.arrays import FloatArray

__all__ = ["DrawnTree"]


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
