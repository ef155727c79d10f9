"""Pictures inside of a page that is not ours, such as a notebook."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from distributary.drawing.svg import element, text

__all__ = ["DRAWN_MAX", "drawn_or_told", "embedded"]

DRAWN_MAX = 3_000
"""Of more nodes, a notebook shows figures only: a picture would make it megabytes larger."""


def embedded(svg: str, alt: str) -> str:
    """Return an SVG document as HTML for the middle of any page.

    As an image and not as markup: the style rules of a picture would apply to the whole page, and
    those of the page to the picture.
    """
    data = b64encode(svg.encode()).decode("ascii")
    return element("img", src=f"data:image/svg+xml;base64,{data}", alt=alt, style="max-width: 100%")


def drawn_or_told(result: object, count: int, svg: Callable[[], str]) -> str:
    """Return what a notebook shows of a result with so many nodes: its picture, or its figures."""
    if count > DRAWN_MAX:
        return element("pre", text(repr(result)))
    return embedded(svg(), repr(result))
